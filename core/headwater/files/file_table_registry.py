"""The registry of a realm's file tables: their definitions, by name and by id.

The realm's reference ``file-tables`` is made with the first file table. Its index ``by-name`` has the tables that have not been
deleted, its index ``by-id`` those too that are being deleted, until the collector has removed the row of their tree. So whatever a
table has is listed before it is made, and as long as it is there:

    create        listed as CREATING -> the scope of its references -> its tree -> ACTIVE
    delete        listed as DELETING, the name is free -> files, references, scope -> the tree's tombstone -> DELETED
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, TypedDict, TypeVar, Unpack

import msgspec

from headwater.commits import Head, Transaction, commit_change, complete_operation, read_head
from headwater.errors import ConflictError, CorruptionError, NotFoundError, RefusedError, SwapConflictError
from headwater.files.file_references import PartitionId
from headwater.files.file_table_definition import (
    FileTableColumn,
    FileTableDefinition,
    FileTableState,
    check_columns,
    checked_table_name,
    parse_tree_reference,
)
from headwater.files.reference_store import FileScope
from headwater.files.row_keys import RowKeyType
from headwater.files.stored_tree import initialize_tree
from headwater.index import IndexValue
from headwater.store import ReadableRows, RealmReader, RealmStore, UnreadableRow, id_text

FILE_TABLES = "file-tables"
"""The realm's reference that lists its file tables. A realm without file tables has none."""
BY_NAME = "by-name"
BY_ID = "by-id"
R = TypeVar("R")
Fence = Callable[[], None]


class FileTableFields(TypedDict, total=False):
    """The fields of a file table that a caller chooses. ``key_type`` is that of the key column's values."""

    key_column: str
    key_type: RowKeyType
    sort_columns: tuple[str, ...]
    columns: tuple[FileTableColumn, ...]


class MakeScope(Protocol):
    """Makes the scope of a table's file references, where it is not there yet."""

    def __call__(self, scope: FileScope) -> object: ...


class FileTables:
    """The file tables of the realm that ``rows`` is a handle on.

    make_scope    makes a scope in the database of the references; a repeated call changes nothing
    """

    def __init__(self, rows: RealmStore, make_scope: MakeScope) -> None:
        self._rows = rows
        self._make_scope = make_scope

    def create_table(
        self,
        name: str,
        *,
        location: str,
        splits: Mapping[PartitionId, bytes] | None = None,
        **fields: Unpack[FileTableFields],
    ) -> FileTableDefinition:
        """Create a file table, or complete one that was created before with the same fields. A repeated call changes nothing.

        location      a folder; the table gets one of its own in there, named by its id
        splits        of its first partition tree; None: one root, or whatever tree it has
        raises        RefusedError for a bad name, location or column; ConflictError when it is there with other fields, or began
                      with another tree; UnknownOutcomeError when it is there and may be incomplete
        """
        checked_table_name(name)
        base = checked_base(location)
        check_columns(fields.get("columns", ()), fields.get("key_column", ""), fields.get("sort_columns", ()))
        table_id = id_text(self._rows.new_id())

        def change(tx: Transaction) -> FileTableDefinition:
            existing = _definition_in(tx, BY_NAME, name)
            if existing is not None:
                _check_same(self._rows.realm, existing, base, fields)
                return existing
            _check_apart(self._rows.realm, tx, base)
            state, folder = FileTableState.CREATING, f"{base}/{table_id}"
            made = FileTableDefinition(
                id=table_id, name=name, state=state, location=folder, created=tx.time, updated=tx.time, **fields
            )
            store_table(tx, made)
            return made

        check_list_is_there(self._rows)
        self._rows.ensure_reference(FILE_TABLES)
        definition = self._commit(change, f"create file table {name}")
        return complete_operation(
            self._rows,
            lambda: self._complete(definition, splits),
            done=f"file table {name!r} of realm {self._rows.realm!r} was created, and may be incomplete: create it again",
            passed_on=(ConflictError,),
        )

    def _complete(self, definition: FileTableDefinition, splits: Mapping[PartitionId, bytes] | None) -> FileTableDefinition:
        if definition.state is not FileTableState.CREATING:
            if splits is not None:
                initialize_tree(self._rows, definition, splits)  # refuses another tree than it began with
            return definition
        # The scope before the tree: a table with a tree and no scope would look complete to a reader of the realm alone.
        self._make_scope(FileScope(self._rows.key, definition.id))
        initialize_tree(self._rows, definition, splits or {})
        return self.change_state(definition, FileTableState.ACTIVE)

    def add_table(self, definition: FileTableDefinition, *, fence: Fence | None = None) -> FileTableDefinition:
        """List a table that is made of another one, unless one of the same source is listed, whose definition is returned then.

        A table that is still CREATING does not take a name that another one has.
        """

        def change(tx: Transaction) -> FileTableDefinition:
            copies = (each for each in _definitions_in(tx) if each.source == definition.source)
            copy = next((each for each in copies if each.state is not FileTableState.DELETED), None)
            if copy is None:
                copy = msgspec.structs.replace(definition, updated=tx.time)
                store_table(tx, copy)
            return copy

        check_list_is_there(self._rows)
        self._rows.ensure_reference(FILE_TABLES)
        return self._commit(change, f"list file table {definition.name}", fence)

    def replace_table(
        self, old: FileTableDefinition, new: FileTableDefinition, *, fence: Fence | None = None
    ) -> FileTableDefinition:
        """Give the name of one table to another one, which becomes ACTIVE, and begin the deletion of the first. A repeated call changes
        nothing.

        raises        SwapConflictError when one of them has changed since
        """

        def change(tx: Transaction) -> FileTableDefinition:
            stored_old, stored_new = _definition_in(tx, BY_ID, old.id), _definition_in(tx, BY_ID, new.id)
            if stored_new is not None and stored_new.state is FileTableState.ACTIVE:
                return stored_new
            if (
                stored_old is None
                or stored_old.state is not old.state
                or stored_new is None
                or stored_new.state is not new.state
            ):
                raise SwapConflictError(
                    f"file table {old.name!r} of realm {self._rows.realm!r} was changed meanwhile: look again"
                )
            store_table(tx, msgspec.structs.replace(stored_old, state=FileTableState.DELETING, updated=tx.time))
            active = msgspec.structs.replace(stored_new, state=FileTableState.ACTIVE, updated=tx.time)
            store_table(tx, active)
            return active

        return self._commit(change, f"file table {old.name} is {new.id}", fence)

    def change_state(self, seen: FileTableDefinition, to: FileTableState, *, fence: Fence | None = None) -> FileTableDefinition:
        """Move a table from the state that was seen to another one; when it is in that one already, nothing is changed.

        raises        SwapConflictError when it is in a third one by now; NotFoundError when it is gone
        """

        def change(tx: Transaction) -> FileTableDefinition:
            stored = _definition_in(tx, BY_ID, seen.id)
            if stored is None:
                raise NotFoundError(f"file table {seen.name!r} ({seen.id}) is gone from realm {self._rows.realm!r}")
            if stored.state is to:
                return stored
            if stored.state is not seen.state:
                raise SwapConflictError(
                    f"file table {seen.name!r} of realm {self._rows.realm!r} is {stored.state} by now, not {seen.state}: look again"
                )
            moved = msgspec.structs.replace(stored, state=to, updated=tx.time)
            store_table(tx, moved)
            return moved

        return self._commit(change, f"file table {seen.name} is {to}", fence)

    def _commit(self, change: Callable[[Transaction], R], message: str, fence: Fence | None = None) -> R:
        return commit_change(self._rows, FILE_TABLES, change, message=message, fence=fence).result


def find_file_table(rows: RealmReader, *, name: str | None = None, table_id: str | None = None) -> FileTableDefinition | None:
    """The current definition of a file table by its name, or by its id, which finds one that is being deleted, too."""
    head = _tables_head(rows)
    if head is None:
        return None
    value = head.index(BY_ID if name is None else BY_NAME).get((table_id or "" if name is None else name).encode())
    return None if value is None else _read_value(rows, value)


def read_file_table(rows: RealmReader, name: str) -> FileTableDefinition:
    """The current definition of a file table; raises NotFoundError that names those that there are."""
    definition = find_file_table(rows, name=name)
    if definition is not None:
        return definition
    head = _tables_head(rows)
    names = [] if head is None else [key.decode() for key, _ in head.index(BY_NAME).range()]
    there = f"; there are {', '.join(names[:5])}{', ...' if len(names) > 5 else ''}" if names else ""
    raise NotFoundError(f"realm {rows.realm!r} has no file table {name!r}{there}")


def list_file_tables(rows: RealmReader, *, with_deleted: bool = False) -> ReadableRows[FileTableDefinition]:
    """The definitions by name, or by id with those of tables that are being deleted; unreadable ones by their key."""
    head = _tables_head(rows)
    return ReadableRows() if head is None else file_tables_in(head, with_deleted=with_deleted)


def file_tables_in(head: Head, *, with_deleted: bool = False) -> ReadableRows[FileTableDefinition]:
    """The definitions that were listed at a commit of ``file-tables``."""
    entries = list(head.index(BY_ID if with_deleted else BY_NAME).range())
    targets = [value.object_id for _, value in entries if value.object_id is not None]
    read = dict(zip(targets, head.rows.read_each(targets, FileTableDefinition), strict=True))
    readable: list[FileTableDefinition] = []
    unreadable: list[UnreadableRow] = []
    for key, value in entries:
        definition = None if value.object_id is None else read[value.object_id]
        if isinstance(definition, FileTableDefinition):
            readable.append(definition)
            continue
        fault = "its definition is not there" if definition is None else str(definition)
        text = repr(key.decode(errors="replace"))
        unreadable.append(
            UnreadableRow(what="file table", id=value.object_id or 0, name=text, realm=head.rows.realm, fault=fault)  # type: ignore[arg-type]
        )
    return ReadableRows(readable, unreadable)


def store_table(tx: Transaction, definition: FileTableDefinition) -> None:
    """Put a definition into the indexes that its state requires."""
    value = IndexValue(tx.add_object(definition), b"")
    tx.index(BY_ID).put(definition.id.encode(), value)
    named = _definition_in(tx, BY_NAME, definition.name)
    if named is not None and named.id != definition.id:  # another table has the name
        return
    if definition.state not in (FileTableState.DELETING, FileTableState.DELETED):
        tx.index(BY_NAME).put(definition.name.encode(), value)
    elif named is not None:
        tx.index(BY_NAME).remove(definition.name.encode())


def check_list_is_there(rows: RealmStore) -> None:
    """Pass if the list of file tables is there, or there are no file tables. A tree is listed before its row is made.

    raises        CorruptionError when trees have rows, and the list has none: it was lost
    """
    if rows.find_reference(FILE_TABLES, fresh=True) is not None:
        return
    trees = [row.name for row in rows.scan_references() if row.deleted is None and parse_tree_reference(row.name)]
    if trees and rows.find_reference(FILE_TABLES, fresh=True) is None:
        raise CorruptionError(
            f"realm {rows.realm!r} has no reference {FILE_TABLES!r}, but trees of file tables ({', '.join(sorted(trees)[:3])}): it was"
            " lost; nothing of the realm is deleted until it is restored from a backup of the database"
        )


def _tables_head(rows: RealmReader) -> Head | None:
    try:
        return read_head(rows, FILE_TABLES, fresh=True)
    except NotFoundError:
        return None  # it is made with the first file table


def _definition_in(tx: Transaction, index: str, key: str) -> FileTableDefinition | None:
    value = tx.index(index).get(key.encode())
    return None if value is None else _read_value(tx.reader, value)


def _definitions_in(tx: Transaction) -> list[FileTableDefinition]:
    targets = [value.object_id for _, value in tx.index(BY_ID).range() if value.object_id is not None]
    return [definition for definition in tx.reader.read_many(targets, FileTableDefinition) if definition is not None]


def _read_value(rows: RealmReader, value: IndexValue) -> FileTableDefinition:
    if value.object_id is None:
        raise CorruptionError(f"an entry of reference {FILE_TABLES!r} of realm {rows.realm!r} points to no definition")
    return rows.read_object(value.object_id, FileTableDefinition)


def checked_base(location: str) -> str:
    base = location.rstrip("/")
    if not base or not location.isprintable() or len(location) > 500:
        raise RefusedError(f"{location[:200]!r} is not the location of a file table: give the URL or the path of a folder")
    return base


def _check_same(realm: str, existing: FileTableDefinition, base: str, fields: FileTableFields) -> None:
    differences = [name for name, value in fields.items() if getattr(existing, name) != value]
    if existing.location != f"{base}/{existing.id}":
        differences.append("location")
    if differences:
        raise ConflictError(
            f"file table {existing.name!r} of realm {realm!r} is there already, with another {', '.join(differences)}"
        )


def _check_apart(realm: str, tx: Transaction, base: str) -> None:
    """Two tables never share a folder: the collection of one would delete the other's files as its own strays."""
    for definition in _definitions_in(tx):
        if f"{base}/".startswith(f"{definition.location}/"):
            raise RefusedError(
                f"{base!r} lies in the folder of file table {definition.name!r} of realm {realm!r}: give a folder outside of it"
            )
