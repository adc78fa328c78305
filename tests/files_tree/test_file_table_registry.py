"""Which file tables a realm has."""

from __future__ import annotations

import pytest

from headwater.errors import ConflictError, NotFoundError, RefusedError
from headwater.files import (
    FILE_TABLES,
    FileScope,
    FileTableClosedError,
    FileTableDefinition,
    FileTableFields,
    FileTables,
    FileTableState,
    find_file_table,
    list_file_tables,
    read_file_table,
)
from headwater.store import RealmStore


def test_created_table_is_found_by_name_and_id(rows: RealmStore, orders: FileTableDefinition) -> None:
    assert read_file_table(rows, "orders") == orders == find_file_table(rows, table_id=orders.id)
    assert orders.state is FileTableState.ACTIVE


def test_table_has_a_folder_of_its_own(orders: FileTableDefinition) -> None:
    assert orders.data_folder == f"s3://lake/tables/{orders.id}/data/"


def test_table_has_a_scope_of_its_own(rows: RealmStore, orders: FileTableDefinition, scopes: list[FileScope]) -> None:
    assert scopes == [FileScope(rows.key, orders.id)]


def test_realm_without_file_tables_has_no_list_of_them(rows: RealmStore) -> None:
    assert list(list_file_tables(rows)) == []
    assert rows.find_row(FILE_TABLES) is None


def test_missing_table_is_told_with_those_that_are_there(rows: RealmStore, orders: FileTableDefinition) -> None:
    with pytest.raises(NotFoundError, match="no file table 'sales'; there are orders"):
        read_file_table(rows, "sales")


def test_creating_the_same_table_again_changes_nothing(
    rows: RealmStore, tables: FileTables, fields: FileTableFields, orders: FileTableDefinition
) -> None:
    before = rows.find_row(FILE_TABLES)

    assert tables.create_table("orders", location="s3://lake/tables/", **fields) == orders
    assert rows.find_row(FILE_TABLES) == before


def test_another_table_of_the_same_name_is_refused(
    tables: FileTables, fields: FileTableFields, orders: FileTableDefinition
) -> None:
    with pytest.raises(ConflictError, match="another sort_columns"):
        tables.create_table("orders", location="s3://lake/tables", **fields | FileTableFields(sort_columns=()))


def test_table_inside_the_folder_of_another_is_refused(
    tables: FileTables, fields: FileTableFields, orders: FileTableDefinition
) -> None:
    with pytest.raises(RefusedError, match="in the folder of file table 'orders'"):
        tables.create_table("sales", location=orders.data_folder, **fields)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (FileTableFields(key_column="no"), "no column 'no'"),
        (FileTableFields(sort_columns=("id",)), "different columns"),
        (FileTableFields(columns=()), "columns are none"),
    ],
)
def test_columns_that_cannot_be_sorted_by_are_refused(
    tables: FileTables, fields: FileTableFields, changed: FileTableFields, message: str
) -> None:
    with pytest.raises(RefusedError, match=message):
        tables.create_table("orders", location="s3://lake", **fields | changed)


def test_bad_name_is_refused(tables: FileTables, fields: FileTableFields) -> None:
    with pytest.raises(RefusedError, match="not a file table name"):
        tables.create_table("or ders", location="s3://lake", **fields)


def test_read_only_table_says_how_to_make_it_writable(tables: FileTables, orders: FileTableDefinition) -> None:
    imported = tables.change_state(orders, FileTableState.READ_ONLY)

    with pytest.raises(FileTableClosedError, match=r"read-only.*headwater file-table adopt"):
        imported.check_writable("acme")


def test_table_that_is_being_deleted_frees_its_name(
    rows: RealmStore, tables: FileTables, fields: FileTableFields, orders: FileTableDefinition
) -> None:
    tables.change_state(orders, FileTableState.DELETING)
    again = tables.create_table("orders", location="s3://lake/tables", **fields)

    assert read_file_table(rows, "orders") == again != orders
    assert {table.id for table in list_file_tables(rows, with_deleted=True)} == {orders.id, again.id}
