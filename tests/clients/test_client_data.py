"""Rows of tables, written and read through pyarrow; both kinds of catalog promise all of it."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog as IcebergCatalog
from pyiceberg.expressions import EqualTo
from pyiceberg.table import Table
from pyiceberg.types import StringType


@pytest.fixture
def table(catalog: IcebergCatalog, rows: pa.Table) -> Table:
    """A table with two rows."""
    catalog.create_namespace("sales")
    made = catalog.create_table("sales.orders", rows.schema)
    made.append(rows)
    return made


def ids(table: pa.Table) -> list[int]:
    return sorted(table["id"].to_pylist())


def test_appended_rows_are_read_back(table: Table, catalog: IcebergCatalog, rows: pa.Table) -> None:
    table.append(rows)

    assert ids(catalog.load_table("sales.orders").scan().to_arrow()) == [1, 1, 2, 2]


def test_overwritten_rows_take_the_place_of_others(table: Table, catalog: IcebergCatalog, rows: pa.Table) -> None:
    table.overwrite(rows.slice(1))

    assert ids(catalog.load_table("sales.orders").scan().to_arrow()) == [2]


def test_deleted_rows_are_gone(table: Table, catalog: IcebergCatalog) -> None:
    table.delete(EqualTo("customer", "ann"))

    assert ids(catalog.load_table("sales.orders").scan().to_arrow()) == [2]


def test_rows_from_before_a_new_column_have_none_there(table: Table, catalog: IcebergCatalog, rows: pa.Table) -> None:
    table.update_schema().add_column("region", StringType()).commit()
    table.append(rows.append_column("region", pa.array(["eu", "us"])))

    regions = catalog.load_table("sales.orders").scan().to_arrow()["region"].to_pylist()
    assert sorted(regions, key=str) == [None, None, "eu", "us"]


def test_tables_own_history_is_read_by_snapshot(table: Table, catalog: IcebergCatalog, rows: pa.Table) -> None:
    first = table.metadata.current_snapshot_id
    table.append(rows)

    assert ids(catalog.load_table("sales.orders").scan(snapshot_id=first).to_arrow()) == [1, 2]


def test_tables_own_branches_and_tags_are_kept(table: Table, catalog: IcebergCatalog, rows: pa.Table) -> None:
    first = table.metadata.current_snapshot_id
    assert first is not None
    table.manage_snapshots().create_tag(first, "audited").create_branch(first, "trial").commit()
    table.append(rows, branch="trial")

    loaded = catalog.load_table("sales.orders")
    assert {name: ref.snapshot_ref_type.value for name, ref in loaded.refs().items()} == {
        "main": "branch",
        "audited": "tag",
        "trial": "branch",
    }
    assert ids(loaded.scan().use_ref("trial").to_arrow()) == [1, 1, 2, 2]


def test_transaction_of_several_changes_is_one_version(table: Table, catalog: IcebergCatalog, rows: pa.Table) -> None:
    with table.transaction() as transaction:
        transaction.append(rows)
        transaction.delete(EqualTo("customer", "bob"))
        transaction.set_properties(owner="ann")

    loaded = catalog.load_table("sales.orders")
    assert (ids(loaded.scan().to_arrow()), loaded.properties["owner"]) == ([1, 1], "ann")
    assert len(loaded.metadata.metadata_log) == 2
