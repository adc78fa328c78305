"""A realm with one file table, without the database of its references."""

from __future__ import annotations

import pytest

from headwater.files import FileScope, FileTableColumn, FileTableDefinition, FileTableFields, FileTables, RowKeyType
from headwater.store import RealmStore


@pytest.fixture
def fields() -> FileTableFields:
    return FileTableFields(
        key_column="id",
        key_type=RowKeyType.LONG,
        sort_columns=("day",),
        columns=(FileTableColumn(name="id", type="long"), FileTableColumn(name="day", type="date")),
    )


@pytest.fixture
def scopes() -> list[FileScope]:
    """The scopes that were made."""
    return []


@pytest.fixture
def tables(rows: RealmStore, scopes: list[FileScope]) -> FileTables:
    return FileTables(rows, scopes.append)


@pytest.fixture
def orders(tables: FileTables, fields: FileTableFields) -> FileTableDefinition:
    return tables.create_table("orders", location="s3://lake/tables", **fields)
