"""File tables for tests."""

from __future__ import annotations

from collections.abc import Mapping

from headwater.files import FileTableColumn, FileTableDefinition, FileTableFields, FileTables, PartitionId, RowKeyType
from headwater.store import RealmStore

FIELDS = FileTableFields(
    key_column="id",
    key_type=RowKeyType.LONG,
    sort_columns=("day",),
    columns=(FileTableColumn(name="id", type="long"), FileTableColumn(name="day", type="date")),
)


def make_tree(
    rows: RealmStore,
    name: str = "orders",
    *,
    location: str = "s3://lake/tables",
    splits: Mapping[PartitionId, bytes] | None = None,
) -> FileTableDefinition:
    """A file table without the database of its references."""
    return FileTables(rows, lambda scope: None).create_table(name, location=location, splits=splits, **FIELDS)
