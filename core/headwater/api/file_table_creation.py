"""File tables that are made: what a person says of their columns and key, checked before anything is written."""

from __future__ import annotations

from collections.abc import Sequence

from headwater.api.locations import folder_location
from headwater.errors import RefusedError
from headwater.files import (
    FileScope,
    FileTableColumn,
    FileTableDefinition,
    FileTables,
    RowKeyType,
    balanced_splits,
    open_file_references,
)
from headwater.files.row_schema import RowSchema
from headwater.store import RealmStore, Store

_KEY_TYPES = {"bigint": "long", "integer": "int"}


def make_file_table(
    store: Store,
    rows: RealmStore,
    name: str,
    *,
    location: str,
    columns: Sequence[tuple[str, str]],
    key: str,
    sort: Sequence[str] = (),
    split_points: Sequence[str] = (),
) -> FileTableDefinition:
    """Create a file table, or complete one that was created before in the same way.

    columns       names with types, as Spark calls them
    split_points  keys as text, binary ones in hex
    raises        RefusedError for columns and keys that do not fit; ConflictError where it is there with others
    """
    key_type = _key_type(columns, key)
    _check_types(columns, key_type, key, sort)
    points = sorted(key_type.encode_key(key_type.parse_key(point)) for point in split_points)

    def make_scope(scope: FileScope) -> None:
        open_file_references(store, scope, create=True).close()

    return FileTables(rows, make_scope).create_table(
        name,
        location=folder_location(location),
        splits=balanced_splits(points) if points else None,
        columns=tuple(FileTableColumn(name=each, type=kind, nullable=each != key) for each, kind in columns),
        key_column=key,
        key_type=key_type,
        sort_columns=tuple(sort),
    )


def _key_type(columns: Sequence[tuple[str, str]], key: str) -> RowKeyType:
    kinds = {name: kind.lower() for name, kind in columns}
    if key not in kinds:
        raise RefusedError(f"there is no column {key!r} for the key; columns are {', '.join(kinds)}")
    kind = _KEY_TYPES.get(kinds[key], kinds[key])
    if kind not in list(RowKeyType):
        raise RefusedError(f"column {key!r} of type {kind} cannot be the key: its type must be int, long, string or binary")
    return RowKeyType(kind)


def _check_types(columns: Sequence[tuple[str, str]], key_type: RowKeyType, key: str, sort: Sequence[str]) -> None:
    """Refuse what no data file can hold or sort; later, the table would be there and no row could be added."""
    known = tuple(name for name in sort if name in dict(columns))  # the others are refused with the table
    RowSchema(table="", columns=tuple(columns), key=key, key_type=key_type, sort=known).check_types()
