"""The two row spaces as two tables of one SQLite file."""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, repeat
from operator import itemgetter
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from headwater.clock import Micros
from headwater.errors import CorruptionError, NotFoundError, RefusedError, SwapConflictError
from headwater.store.backend import (
    Capabilities,
    ObjectKey,
    ObjectPosition,
    ObjectRow,
    ReferenceKey,
    ReferenceMove,
    ReferencePosition,
    ReferenceRow,
    ScanSplit,
    collision,
)
from headwater.store.backends.sqlite.database_file import SqliteFile, is_folder
from headwater.store.ids import ObjectId, RealmKey
from headwater.store.urls import BackendKind, StoreUrl, UrlOption, as_seconds

K = TypeVar("K", bound=tuple[Any, ...])
_new: Any = tuple.__new__
SCHEMA_VERSION = 1
_TABLES = {
    "refs": """
        realm INTEGER NOT NULL, name TEXT NOT NULL, pointer INTEGER, version INTEGER NOT NULL, created INTEGER NOT NULL,
        recent BLOB NOT NULL, moves BLOB NOT NULL, deleted INTEGER, PRIMARY KEY (realm, name)) WITHOUT ROWID""",
    "objs": """
        realm INTEGER NOT NULL, id INTEGER NOT NULL, part INTEGER NOT NULL, type TEXT NOT NULL, created INTEGER NOT NULL,
        token TEXT, parts INTEGER NOT NULL, value BLOB NOT NULL, PRIMARY KEY (realm, id, part))""",
}
_REFERENCE = "SELECT realm, name, pointer, version, created, recent, moves, deleted FROM refs"
_REFERENCE_KEY = "SELECT realm, name, pointer, version, created, deleted FROM refs"
_IS_OURS = (
    "realm < '' AND id < '' AND part < '' AND created < '' AND parts < '' AND type >= '' AND type < x''"
    " AND (token IS NULL OR token >= '' AND token < x'')"
)
"""Whether the columns other than the value hold values of our types: SQLite lets any value into any column, and puts numbers before texts
before bytes. A comparison costs a tenth of what a look at the type costs here."""
_OBJECT = "SELECT id, type, value, created, token, parts FROM objs"
_OBJECT_KEY = f"SELECT realm, id, part, type, created, token, parts, CASE WHEN {_IS_OURS} THEN length(value) END FROM objs"
_INSERT_REFERENCE = "INSERT INTO refs VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
_SWAP = (
    "UPDATE refs SET pointer = ?, version = ?, created = ?, recent = ?, moves = ?, deleted = ?"
    " WHERE realm = ? AND name = ? AND version = ? AND pointer IS ?"
)
_INSERT_OBJECTS = "INSERT INTO objs (realm, id, part, type, created, token, parts, value) VALUES "
_OBJECT_PLACE = "(?, ?, ?, ?, ?, ?, ?, ?)"
_REPLACE = (
    " ON CONFLICT (realm, id, part) DO UPDATE SET type = excluded.type, created = excluded.created, token = excluded.token,"
    " parts = excluded.parts, value = excluded.value"
)
_IDS_AT_ONCE = 250
"""Ids that one SELECT statement looks for; no quicker with more."""
_ROWS_AT_ONCE = 100
"""Rows of one INSERT statement: twice as fast as one statement per row; no faster with more."""
_OBJECT_TYPES = {(str, bytes, int, str, int), (str, bytes, int, type(None), int)}
_NUMBER: set[type] = {int}
_TEXT: set[type] = {str}
_BYTES: set[type] = {bytes}
_NUMBER_OR_NONE: set[type] = {int, type(None)}
_REFERENCE_KEY_TYPES = (_NUMBER, _TEXT, _NUMBER_OR_NONE, _NUMBER, _NUMBER, _NUMBER_OR_NONE)
_REFERENCE_TYPES = (*_REFERENCE_KEY_TYPES[:5], _BYTES, _BYTES, _NUMBER_OR_NONE)


class SqliteBackend:
    """References and objects as two tables of one file."""

    capabilities = Capabilities(ordered_keys=True, bulk_realm_deletion=True, atomic_commits=True)

    def __init__(self, path: Path, *, timeout_seconds: float = 10.0, create: bool = True) -> None:
        if not create and not _has_content(path):
            raise NotFoundError(f"there is no store in {path}")
        if not is_folder(path.parent):
            raise RefusedError(f"the folder of {path} does not exist: create it, or name another file in the store's URL")
        self._path = path
        self._file = SqliteFile(path, timeout_seconds=timeout_seconds)
        try:
            if _has_content(path):
                # Before anything opens the file: SQLite would create a new, empty log and hide that commits are missing.
                self._file.check_log_is_there()
            # The first look does not switch to a write-ahead log: that would change a file that may belong to another program.
            is_there = _has_content(path) and self._file.look("open", self._is_set_up)
            if not is_there and not create:
                raise NotFoundError(f"there is no store in {path}")
            if not self._file.read("open", self._is_set_up):
                self._file.write("set up", self._set_up)
        except BaseException:
            self.close()
            raise

    @property
    def file(self) -> SqliteFile:
        """The file, for tables beside those of rows."""
        return self._file

    def _is_set_up(self, connection: sqlite3.Connection) -> bool:
        # One statement reads the version and the tables: between two, another process could set the file up, and version 0 with
        # our tables would look like another program's database.
        rows = connection.execute(
            "SELECT user_version, name FROM pragma_user_version LEFT JOIN sqlite_master ON type = 'table'"
        )
        [found, *_], names = zip(*rows, strict=True)
        if found > SCHEMA_VERSION:
            raise RefusedError(
                f"{self._path} was written by a newer Headwater (schema {found}, this one knows {SCHEMA_VERSION}): upgrade this one"
            )
        tables = {name for name in names if name is not None}
        is_ours = tables >= _TABLES.keys() if found else not tables
        if not is_ours:
            there = ", ".join(sorted(tables)) or "none"
            raise RefusedError(f"{self._path} is the database of another program (its tables: {there}): name another file")
        return bool(found)

    def _set_up(self, connection: sqlite3.Connection) -> None:
        # Checked again inside the write transaction: another process may have set the file up since the first check.
        if not self._is_set_up(connection):
            for name, columns in _TABLES.items():
                connection.execute(f"CREATE TABLE {name} ({columns}")
            # In the same transaction as the tables: a crash leaves all of them, or an empty file.
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")

    def _change(self, what: str, statement: str, values: Sequence[Any]) -> int:
        return self._file.write(what, lambda connection: connection.execute(statement, values).rowcount)

    def create_reference(self, row: ReferenceRow) -> None:
        if not self._change("create a reference", _INSERT_REFERENCE, _reference_values(row)):
            raise SwapConflictError(f"reference {row.name!r} of realm key {row.realm} is there already")

    def create_references(self, rows: Sequence[ReferenceRow]) -> list[bool]:
        def create(connection: sqlite3.Connection) -> list[bool]:
            return [connection.execute(_INSERT_REFERENCE, _reference_values(row)).rowcount == 1 for row in rows]

        return self._file.write("create references", create) if rows else []

    def read_references(self, realm: RealmKey, names: Sequence[str]) -> list[ReferenceRow | None]:
        statement = f"{_REFERENCE} WHERE realm = ? AND name = ?"

        def read(connection: sqlite3.Connection) -> list[Any]:
            return [connection.execute(statement, (realm, name)).fetchone() for name in names]

        return [None if row is None else self._reference(row) for row in self._file.read("read references", read)]

    def swap_reference(self, seen: ReferenceRow, new: ReferenceRow) -> None:
        if not self._change("swap a reference", _SWAP, _swap_values(seen, new)):
            raise _beaten(seen)

    def write_and_swap(self, rows: Sequence[ObjectRow], seen: ReferenceRow, new: ReferenceRow) -> None:
        """Write objects and swap the reference in one transaction, with one wait for the disk."""

        def write(connection: sqlite3.Connection) -> bool:
            # The swap comes first: a lost one writes no objects. Both are one transaction, so no reader sees the reference
            # without its objects, and a collision of ids rolls the swap back.
            if not connection.execute(_SWAP, _swap_values(seen, new)).rowcount:
                return False
            _write(connection, rows, are_new=True)
            return True

        if not self._file.write("write objects and swap a reference", write):
            raise _beaten(seen)

    def remove_reference(self, seen: ReferenceRow) -> None:
        statement = "DELETE FROM refs WHERE realm = ? AND name = ? AND version = ? AND pointer IS ?"
        if not self._change("remove a reference", statement, (seen.realm, seen.name, seen.version, seen.pointer)):
            raise _beaten(seen)

    def read_objects(self, realm: RealmKey, keys: Sequence[tuple[ObjectId, int]]) -> list[ObjectRow | None]:
        if len(keys) == 1:
            statement, [(object_id, part)] = f"{_OBJECT} WHERE realm = ? AND id = ? AND part = ?", keys
            one = self._file.read("read an object", lambda c: c.execute(statement, (realm, object_id, part)).fetchone())
            return [None if one is None else self._objects(realm, part, [one])[object_id]]
        parts: dict[int, dict[ObjectId, None]] = {}
        for object_id, part in keys:
            parts.setdefault(part, {})[object_id] = None

        def read(connection: sqlite3.Connection) -> dict[int, list[tuple[Any, ...]]]:
            return {part: _find(connection, realm, part, list(ids)) for part, ids in parts.items()}

        found = self._file.read("read objects", read)
        rows = {part: self._objects(realm, part, there) for part, there in found.items()}
        return [rows[part].get(object_id) for object_id, part in keys]

    def write_objects(self, rows: Sequence[ObjectRow], *, are_new: bool = False) -> None:
        if rows:
            self._file.write("write objects", lambda connection: _write(connection, rows, are_new=are_new))

    def insert_object(self, row: ObjectRow) -> None:
        if not self._change("insert an object", f"{_insertion(1)} ON CONFLICT DO NOTHING", _object_values(row)):
            raise SwapConflictError(f"object {row.id:016x} of realm key {row.realm} is there already")

    def update_object(self, row: ObjectRow, seen_token: str) -> None:
        statement = (
            "UPDATE objs SET type = ?, created = ?, token = ?, parts = ?, value = ?"
            " WHERE realm = ? AND id = ? AND part = ? AND token = ?"
        )
        values = (*_object_values(row)[3:], row.realm, row.id, row.part, seen_token)
        if not self._change("update an object", statement, values):
            raise SwapConflictError(f"object {row.id:016x} of realm key {row.realm} was changed by another")

    def delete_objects(self, keys: Sequence[ObjectKey]) -> int:
        # Creation time and token make the deletion conditional: a row that was rewritten after the scan stays.
        statement = "DELETE FROM objs WHERE realm = ? AND id = ? AND part = ? AND created = ? AND token IS ?"
        values = [(k.realm, k.id, k.part, k.created, k.token) for k in keys]
        return self._file.write("delete objects", lambda c: c.executemany(statement, values).rowcount) if keys else 0

    def scan_references(
        self, split: ScanSplit[ReferencePosition], after: ReferencePosition | None, limit: int
    ) -> list[ReferenceKey]:
        keys = self._scan(_REFERENCE_KEY, ("realm", "name"), split, after, limit, ReferenceKey)
        for key in keys:
            self._check(key, _REFERENCE_KEY_TYPES)
        return keys

    def scan_objects(self, split: ScanSplit[ObjectPosition], after: ObjectPosition | None, limit: int) -> list[ObjectKey]:
        keys = self._scan(_OBJECT_KEY, ("realm", "id", "part"), split, after, limit, ObjectKey)
        if None in map(itemgetter(-1), keys):
            self._refuse_foreign("objs", next(key for key in keys if key.bytes is None))
        return keys

    def _scan(
        self, select: str, key: tuple[str, ...], split: ScanSplit[Any], after: tuple[Any, ...] | None, limit: int, cls: type[K]
    ) -> list[K]:
        starts = [start for start in (split.after, after) if start is not None]
        condition, values = _condition(key, split.realm, max(starts, default=None), split.until)
        statement = f"{select}{condition} ORDER BY {', '.join(key)} LIMIT ?"

        def scan(connection: sqlite3.Connection) -> list[K]:
            found = connection.execute(statement, (*values, limit)).fetchall()
            return list(map(_new, repeat(cls), found))  # a third quicker than _make, and a tenth than a partial row by row

        return self._file.read("scan", scan)

    def split_references(self, realm: RealmKey | None, count: int) -> list[ScanSplit[ReferencePosition]]:
        return self._split("refs", ("realm", "name"), realm, count)

    def split_objects(self, realm: RealmKey | None, count: int) -> list[ScanSplit[ObjectPosition]]:
        return self._split("objs", ("realm", "id", "part"), realm, count)

    def _split(self, table: str, key: tuple[str, ...], realm: RealmKey | None, count: int) -> list[ScanSplit[Any]]:
        """Split at every ``size``-th key, which SQLite finds by counting along the index."""

        def find_ends(connection: sqlite3.Connection) -> list[tuple[Any, ...]]:
            condition, values = _condition(key, realm, None, None)
            rows = connection.execute(f"SELECT count(*) FROM {table}{condition}", values).fetchone()[0]
            size = -(-rows // count)
            ends: list[tuple[Any, ...]] = []
            for _ in range(1, -(-rows // size) if rows else 1):
                condition, values = _condition(key, realm, ends[-1] if ends else None, None)
                statement = f"SELECT {', '.join(key)} FROM {table}{condition} ORDER BY {', '.join(key)} LIMIT 1 OFFSET ?"
                ends += connection.execute(statement, (*values, size - 1)).fetchall()
            return ends

        ends = self._file.read("split a scan", find_ends)
        return [ScanSplit(realm, after, until) for after, until in zip([None, *ends], [*ends, None], strict=True)]

    def delete_realm(self, realm: RealmKey, limit: int) -> int:
        references = "DELETE FROM refs WHERE realm = ? AND name IN (SELECT name FROM refs WHERE realm = ? LIMIT ?)"
        objects = "DELETE FROM objs WHERE rowid IN (SELECT rowid FROM objs WHERE realm = ? LIMIT ?)"

        def delete(connection: sqlite3.Connection) -> int:
            deleted = connection.execute(references, (realm, realm, limit)).rowcount
            return deleted + connection.execute(objects, (realm, limit - deleted)).rowcount

        return self._file.write("delete a realm's rows", delete)

    def server_time(self) -> None:
        return None

    def before_fork(self) -> None:
        self._file.before_fork()

    def after_fork(self, *, is_child: bool) -> None:
        self._file.after_fork(is_child=is_child)

    def close(self) -> None:
        self._file.close()

    def _check(self, row: tuple[Any, ...], types: tuple[set[type], ...]) -> None:
        if not all(type(value) in expected for value, expected in zip(row, types, strict=True)):
            self._refuse_foreign("refs", row)

    def _refuse_foreign(self, table: str, row: tuple[Any, ...]) -> NoReturn:
        raise CorruptionError(
            f"{self._path}: table {table}: the row of realm key {row[0]!r}, {row[1]!r} was not written by Headwater"
        )

    def _reference(self, row: tuple[Any, ...]) -> ReferenceRow:
        realm, name, pointer, version, created, recent, moves, deleted = row
        self._check(row, _REFERENCE_TYPES)
        if len(recent) % 8 or len(moves) % 16:
            self._refuse_foreign("refs", row)
        return ReferenceRow(
            realm=realm,
            name=name,
            pointer=pointer,
            version=version,
            created=created,
            recent=tuple(ObjectId(i) for i in struct.unpack(f">{len(recent) // 8}q", recent)),
            moves=tuple(ReferenceMove(ObjectId(pointer), Micros(time)) for pointer, time in struct.iter_unpack(">qq", moves)),
            deleted=deleted,
        )

    def _objects(self, realm: RealmKey, part: int, found: list[tuple[Any, ...]]) -> dict[ObjectId, ObjectRow]:
        """Convert database rows of different ids; CorruptionError for a row whose columns have other types than ours."""
        rows = {
            object_id: ObjectRow(
                realm=realm, id=object_id, part=part, type=name, value=value, created=created, token=token, parts=parts
            )
            for object_id, name, value, created, token, parts in found
            if (type(name), type(value), type(created), type(token), type(parts)) in _OBJECT_TYPES
        }
        if len(rows) < len(found):
            self._refuse_foreign("objs", next((realm, row[0]) for row in found if row[0] not in rows))
        return rows


def _beaten(seen: ReferenceRow) -> SwapConflictError:
    return SwapConflictError(f"reference {seen.name!r} of realm key {seen.realm} is not at version {seen.version} any more")


def _condition(
    key: tuple[str, ...], realm: RealmKey | None, after: tuple[Any, ...] | None, until: tuple[Any, ...] | None
) -> tuple[str, tuple[Any, ...]]:
    """The condition for keys after ``after`` and up to ``until``.

    Within a realm the key is compared without the realm: given both, SQLite takes ``realm = ?`` for the whole range of the index and looks
    at every row of the realm before the page.
    """
    terms: list[tuple[str, tuple[Any, ...]]] = []
    if realm is not None:
        terms.append(("realm = ?", (realm,)))
        if after is not None and after[0] != realm:
            terms.append(("FALSE", ()) if after[0] > realm else ("TRUE", ()))
            after = None
        if until is not None and until[0] != realm:
            terms.append(("FALSE", ()) if until[0] < realm else ("TRUE", ()))
            until = None
        key = key[1:]
    names, places = ", ".join(key), ", ".join("?" * len(key))
    for sign, end in ((">", after), ("<=", until)):
        if end is not None:
            terms.append((f"({names}) {sign} ({places})", end[-len(key) :]))
    condition = " WHERE " + " AND ".join(text for text, _ in terms) if terms else ""
    return condition, tuple(value for _, values in terms for value in values)


def _find(connection: sqlite3.Connection, realm: RealmKey, part: int, ids: list[ObjectId]) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = []
    for start in range(0, len(ids), _IDS_AT_ONCE):
        batch = ids[start : start + _IDS_AT_ONCE]
        statement = f"{_OBJECT} WHERE realm = ? AND part = ? AND id IN ({', '.join('?' * len(batch))})"
        found += connection.execute(statement, (realm, part, *batch))
    return found


def _insertion(rows: int) -> str:
    return _INSERT_OBJECTS + ", ".join([_OBJECT_PLACE] * rows)


def _batches(rows: Sequence[ObjectRow]) -> Iterable[Sequence[ObjectRow]]:
    return (rows[start : start + _ROWS_AT_ONCE] for start in range(0, len(rows), _ROWS_AT_ONCE))


def _values(rows: Sequence[ObjectRow]) -> tuple[Any, ...]:
    return tuple(chain.from_iterable(map(_object_values, rows)))


def _write(connection: sqlite3.Connection, rows: Sequence[ObjectRow], *, are_new: bool) -> None:
    """Insert or replace. New ids cost one look at their range of the index, and the insertion."""
    # Asked before the insertion, which would answer it with its own rows.
    may_replace = _has_rows_between(connection, rows)
    if not _insert_new(connection, rows):
        if are_new:
            # Before the first replacement. Rows inserted so far are equal to themselves, and a CollisionError rolls them back.
            _check_equal(connection, rows)
        for batch in _batches(rows):
            connection.execute(_insertion(len(batch)) + _REPLACE, _values(batch))
    if may_replace:
        # Surplus parts of an earlier, longer version go: a reader must not put parts of two versions together.
        connection.executemany(
            "DELETE FROM objs WHERE realm = ? AND id = ? AND part >= ?",
            [(row.realm, row.id, row.parts) for row in rows if row.part == 0],
        )


def _has_rows_between(connection: sqlite3.Connection, rows: Sequence[ObjectRow]) -> bool:
    """Whether any row lies between the smallest and the largest of the ids. False only if none of them has a row."""
    realms = {row.realm for row in rows}  # none for no rows
    ids = [row.id for row in rows]
    statement = "SELECT 1 FROM objs WHERE realm = ? AND id BETWEEN ? AND ? LIMIT 1"
    return any(connection.execute(statement, (realm, min(ids), max(ids))).fetchone() for realm in realms)


def _insert_new(connection: sqlite3.Connection, rows: Sequence[ObjectRow]) -> bool:
    """Insert rows batch by batch. Returns False at the first batch that contains a row that exists."""
    for batch in _batches(rows):
        if connection.execute(f"{_insertion(len(batch))} ON CONFLICT DO NOTHING", _values(batch)).rowcount < len(batch):
            return False
    return True


def _check_equal(connection: sqlite3.Connection, rows: Sequence[ObjectRow]) -> None:
    """Raise CollisionError if a row exists with another type or value than the one to be written."""
    statement = "SELECT type, value FROM objs WHERE realm = ? AND id = ? AND part = ?"
    for row in rows:
        there = connection.execute(statement, (row.realm, row.id, row.part)).fetchone()
        if there is not None and there != (row.type, row.value):
            raise collision(row)


def _reference_values(row: ReferenceRow) -> tuple[Any, ...]:
    recent = struct.pack(f">{len(row.recent)}q", *row.recent)
    moves = b"".join(struct.pack(">qq", *move) for move in row.moves)
    return (row.realm, row.name, row.pointer, row.version, row.created, recent, moves, row.deleted)


def _swap_values(seen: ReferenceRow, new: ReferenceRow) -> tuple[Any, ...]:
    return (*_reference_values(new)[2:], seen.realm, seen.name, seen.version, seen.pointer)


def _object_values(row: ObjectRow) -> tuple[Any, ...]:
    return (row.realm, row.id, row.part, row.type, row.created, row.token, row.parts, row.value)


def _has_content(path: Path) -> bool:
    """Whether there is a non-empty file, or something that is not a file, so that SQLite reports what is wrong with it."""
    try:
        return path.stat().st_size > 0
    except FileNotFoundError:
        return False
    except OSError:
        return True


def _open(url: StoreUrl, options: Mapping[str, Any], create: bool) -> SqliteBackend:
    if url.place or not url.path.strip("/"):
        raise RefusedError(f"store {url.shown!r}: write sqlite:///file.db, or sqlite:////folder/file.db for an absolute path")
    if url.path == ":memory:":
        raise RefusedError(
            f"store {url.shown!r}: write memory:// for a store in memory, and sqlite:///./:memory: for such a file"
        )
    return SqliteBackend(Path(url.path).absolute(), timeout_seconds=options["timeout"], create=create)


KIND = BackendKind(
    example="sqlite:///file.db",
    open=_open,
    options=(UrlOption("timeout", "how long a call waits for what other threads and processes write", "10s", as_seconds),),
)
