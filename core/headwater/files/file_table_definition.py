"""The definition of a file table: an immutable value, which every change replaces as a whole."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum

from headwater.clock import Micros
from headwater.errors import RefusedError
from headwater.files.file_errors import FileTableClosedError
from headwater.files.file_references import check_text
from headwater.files.row_keys import RowKeyType
from headwater.store import StoredObject, StoredPart, object_type

_TREE = re.compile(r"files/(?P<id>[0-9a-f]{16})/tree")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")


class FileTableState(StrEnum):
    """CREATING: its references or its tree may be missing. DELETING: its files and references go. DELETED: they are gone."""

    CREATING = "CREATING"
    ACTIVE = "ACTIVE"
    READ_ONLY = "READ_ONLY"
    DELETING = "DELETING"
    DELETED = "DELETED"


class FileTableColumn(StoredPart, frozen=True, kw_only=True):
    """One column of a file table. ``type`` is Spark's name of it, such as ``long`` or ``array<string>``."""

    known_by = ("name",)

    name: str
    type: str
    nullable: bool = True


@object_type("file-table")
class FileTableDefinition(StoredObject, frozen=True, kw_only=True):
    """One file table of a realm.

    id            16 hex digits, never used again; also names the scope of its references, its tree, and its folder
    location      the folder of this table alone; it ends in the id
    key_column    the column whose ranges are the partitions
    sort_columns  by which rows of equal key are sorted
    source        the id of the table of which this one was made: imported, or copied to take its place
    is_foreign    its files belong to another store, from which it was imported: this one never deletes them
    """

    id: str
    name: str
    state: FileTableState = FileTableState.ACTIVE
    location: str
    key_column: str
    key_type: RowKeyType
    sort_columns: tuple[str, ...] = ()
    columns: tuple[FileTableColumn, ...]
    created: Micros = Micros(0)
    updated: Micros = Micros(0)
    source: str = ""
    is_foreign: bool = False

    @property
    def data_folder(self) -> str:
        """Where its data files are; ends in a slash."""
        return f"{self.location}/data/"

    @property
    def tree_reference(self) -> str:
        return tree_reference(self.id)

    def check_writable(self, realm: str) -> None:
        """Pass if the table may be changed.

        raises        FileTableClosedError that says why not, and how to make it writable
        """
        if self.state is FileTableState.ACTIVE:
            return
        raise FileTableClosedError(f"file table {self.name!r} of realm {realm!r} {_WHY_CLOSED[self.state]}")


_WHY_CLOSED = {
    FileTableState.CREATING: "is not complete: create it again with the same fields",
    FileTableState.READ_ONLY: (
        "is read-only, for it was imported and its files may belong to another store:"
        " copy them with `headwater file-table adopt`, which makes it writable"
    ),
    FileTableState.DELETING: "is being deleted",
    FileTableState.DELETED: "was deleted",
}


def tree_reference(table_id: str) -> str:
    return f"files/{table_id}/tree"


def parse_tree_reference(reference: str) -> str | None:
    """The id of the table whose tree a reference is; None if it is no tree's."""
    match = _TREE.fullmatch(reference)
    return None if match is None else match["id"]


def checked_table_name(name: str) -> str:
    """Check the name of a file table and return it.

    raises        RefusedError that says which names are valid
    """
    if not _NAME.fullmatch(name):
        raise RefusedError(
            f"{name!r} is not a file table name: use 1 to 128 of the characters A-Z a-z 0-9 _ . -, with a letter, a digit or _ first"
        )
    return name


def check_columns(columns: Sequence[FileTableColumn], key_column: str, sort_columns: Sequence[str]) -> None:
    """Check that key and sort columns are among the columns, each once; raises RefusedError."""
    names = [column.name for column in columns]
    for column in columns:
        check_text(column.name, "a column name")
        check_text(column.type, f"a type of column {column.name!r}")
    if len({name.casefold() for name in names}) < len(names):
        raise RefusedError("two columns have the same name, apart from upper and lower case")
    sorted_by = [key_column, *sort_columns]
    if missing := [name for name in sorted_by if name not in names]:
        raise RefusedError(f"there is no column {missing[0]!r} to sort by; columns are {', '.join(names) or 'none'}")
    if len(set(sorted_by)) < len(sorted_by):
        raise RefusedError("the key column and the sort columns must be different columns")
