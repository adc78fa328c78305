"""File tables for tests."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from headwater.files import (
    FileReference,
    FileTable,
    FileTableColumn,
    FileTableDefinition,
    FileTableFields,
    FileTables,
    PartitionId,
    RowKeyType,
    TrackedFile,
    open_file_references,
    open_file_table,
)
from headwater.store import RealmStore, Store, id_text

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


def make_table(
    store: Store,
    rows: RealmStore,
    name: str = "orders",
    *,
    location: str = "s3://lake/tables",
    splits: Mapping[PartitionId, bytes] | None = None,
) -> FileTableDefinition:
    """A file table with the scope of its references."""
    tables = FileTables(rows, lambda scope: open_file_references(store, scope, create=True))
    return tables.create_table(name, location=location, splits=splits, **FIELDS)


def open_table(store: Store, rows: RealmStore, name: str = "orders") -> FileTable:
    return open_file_table(rows, name, partial(open_file_references, store))


def track_file(table: FileTable, *partitions: str, content: bytes = b"rows") -> str:
    """Write a data file, if the table lies on this machine, and track it with ten rows in each of these partitions."""
    filename = f"{table.definition.data_folder}{id_text(table.rows.new_id())}-0.parquet"
    if filename.startswith("/"):
        Path(filename).parent.mkdir(parents=True, exist_ok=True)
        Path(filename).write_bytes(content)
    references = [
        FileReference(filename=filename, partition=PartitionId(partition), rows=10, is_whole_file=len(partitions) == 1)
        for partition in partitions
    ]
    table.references.add_files([TrackedFile(filename=filename, references=tuple(references))])
    return filename
