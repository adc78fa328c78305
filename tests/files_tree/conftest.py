"""A realm with one file table, without the database of its references."""

from __future__ import annotations

import pytest

from file_tables import FIELDS
from headwater.files import FileScope, FileTableDefinition, FileTableFields, FileTables
from headwater.store import RealmStore


@pytest.fixture
def fields() -> FileTableFields:
    return FIELDS


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
