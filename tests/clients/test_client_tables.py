"""Tables, by the promises of pyiceberg's catalogs; those of one kind only are tested with ``client``."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from lake_doors import REFUSED
from pyiceberg.catalog import Catalog as IcebergCatalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NoSuchIdentifierError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.sorting import NullOrder, SortField, SortOrder
from pyiceberg.transforms import IdentityTransform

from headwater import Store
from headwater.catalogs import Catalog, ContentKey
from headwater.tasks import TaskQueue, TaskState


@pytest.fixture
def sales(catalog: IcebergCatalog) -> IcebergCatalog:
    """The catalog with one namespace."""
    catalog.create_namespace("sales")
    return catalog


@pytest.fixture
def shop(client: IcebergCatalog) -> IcebergCatalog:
    """Ours with one namespace."""
    client.create_namespace("sales")
    return client


def path_of(location: str) -> Path:
    return Path(location.removeprefix("file://"))


def test_table_that_was_created_is_loaded_as_it_was(sales: IcebergCatalog, schema: Schema) -> None:
    table = sales.create_table("sales.orders", schema)

    assert sales.load_table("sales.orders") == table
    assert table.name() == ("sales", "orders")


def test_table_can_be_loaded_by_its_own_name(sales: IcebergCatalog, schema: Schema) -> None:
    table = sales.create_table("sales.orders", schema)

    assert sales.load_table(table.name()) == table


def test_new_table_has_a_metadata_file_in_the_warehouse(sales: IcebergCatalog, schema: Schema, warehouse: str) -> None:
    table = sales.create_table("sales.orders", schema)

    assert table.metadata_location.startswith(f"{warehouse}/sales/orders")
    assert path_of(table.metadata_location).is_file()


def test_table_is_created_once(sales: IcebergCatalog, schema: Schema) -> None:
    sales.create_table("sales.orders", schema)

    with pytest.raises(TableAlreadyExistsError, match=r"Table (already exists: )?sales\.orders( already exists)?"):
        sales.create_table("sales.orders", schema)


def test_table_that_exists_is_loaded_by_creation_if_missing(sales: IcebergCatalog, schema: Schema) -> None:
    table = sales.create_table("sales.orders", schema)

    assert sales.create_table_if_not_exists("sales.orders", schema) == table


@pytest.mark.parametrize("name", ["web.visits", "orders"])
def test_table_needs_a_namespace_that_exists(catalog: IcebergCatalog, schema: Schema, name: str) -> None:
    with pytest.raises((NoSuchNamespaceError, NoSuchIdentifierError)):  # a name without a namespace is no name over REST
        catalog.create_table(name, schema)


@pytest.mark.parametrize("name", ["sales.orders", "web.visits"])
def test_table_that_is_not_there_does_not_exist(catalog: IcebergCatalog, name: str) -> None:
    assert not catalog.table_exists(name)


def test_loading_a_missing_table_names_it(sales: IcebergCatalog) -> None:
    with pytest.raises(NoSuchTableError, match=r"Table does not exist: sales\.orders"):
        sales.load_table("sales.orders")


def test_table_is_made_from_columns_of_arrow(sales: IcebergCatalog, rows: pa.Table) -> None:
    table = sales.create_table("sales.orders", rows.schema)

    assert schema_to_pyarrow(table.schema(), include_field_ids=False).names == ["id", "customer"]


def test_table_keeps_its_order_its_partitions_and_its_properties(sales: IcebergCatalog, schema: Schema) -> None:
    order = SortOrder(SortField(2, transform=IdentityTransform(), null_order=NullOrder.NULLS_FIRST))
    spec = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "customer"))

    sales.create_table("sales.orders", schema, partition_spec=spec, sort_order=order, properties={"number": 42})

    table = sales.load_table("sales.orders")
    assert (table.sort_order().order_id, table.spec().fields[0].name) == (1, "customer")
    assert table.properties == {"number": "42"}


@pytest.mark.parametrize("version", [1, 2])
def test_table_has_the_format_version_that_was_asked_for(sales: IcebergCatalog, schema: Schema, version: int) -> None:
    table = sales.create_table("sales.orders", schema, properties={"format-version": str(version)})

    assert (table.format_version, sales.load_table("sales.orders").format_version) == (version, version)


def test_given_location_is_kept_without_its_last_slash(sales: IcebergCatalog, schema: Schema, warehouse: str) -> None:
    table = sales.create_table("sales.orders", schema, location=f"{warehouse}/mine/")

    assert sales.load_table("sales.orders").location() == table.location() == f"{warehouse}/mine"


def test_location_of_a_namespace_is_that_of_its_tables(sales: IcebergCatalog, schema: Schema, warehouse: str) -> None:
    sales.create_namespace("web", {"location": f"{warehouse}/elsewhere/"})

    assert sales.create_table("web.visits", schema).location().startswith(f"{warehouse}/elsewhere/visits")


def test_tables_are_listed_by_namespace(sales: IcebergCatalog, schema: Schema) -> None:
    sales.create_namespace("sales.eu")
    for name in ("sales.orders", "sales.lines", "sales.eu.orders"):
        sales.create_table(name, schema)

    assert sorted(sales.list_tables("sales")) == [("sales", "lines"), ("sales", "orders")]
    assert sales.list_tables(("sales", "eu")) == [("sales", "eu", "orders")]


def test_renamed_table_is_the_same_under_its_new_name_only(sales: IcebergCatalog, schema: Schema) -> None:
    table = sales.create_table("sales.orders", schema)
    sales.create_namespace("web")

    renamed = sales.rename_table("sales.orders", "web.orders")

    assert (renamed.name(), renamed.metadata_location) == (("web", "orders"), table.metadata_location)
    assert not sales.table_exists("sales.orders")
    assert sales.load_table("web.orders").metadata == table.metadata


def test_table_is_not_renamed_over_another(sales: IcebergCatalog, schema: Schema) -> None:
    for name in ("sales.orders", "sales.lines"):
        sales.create_table(name, schema)

    with pytest.raises(TableAlreadyExistsError):
        sales.rename_table("sales.orders", "sales.lines")


def test_missing_table_is_not_renamed(sales: IcebergCatalog) -> None:
    with pytest.raises(NoSuchTableError):
        sales.rename_table("sales.orders", "sales.lines")


def test_table_is_not_renamed_into_a_missing_namespace(sales: IcebergCatalog, schema: Schema) -> None:
    sales.create_table("sales.orders", schema)

    with pytest.raises(NoSuchNamespaceError):
        sales.rename_table("sales.orders", "web.orders")


def test_dropped_table_is_gone_and_its_files_are_not(sales: IcebergCatalog, schema: Schema) -> None:
    table = sales.create_table("sales.orders", schema)

    sales.drop_table("sales.orders")

    assert not sales.table_exists("sales.orders")
    assert path_of(table.metadata_location).is_file()


def test_missing_table_is_not_dropped(sales: IcebergCatalog) -> None:
    with pytest.raises(NoSuchTableError):
        sales.drop_table("sales.orders")


def test_staged_table_exists_once_its_transaction_is_committed(sales: IcebergCatalog, rows: pa.Table) -> None:
    with sales.create_table_transaction("sales.orders", rows.schema) as transaction:
        transaction.set_properties(owner="ann")
        assert not sales.table_exists("sales.orders")

    assert sales.load_table("sales.orders").properties["owner"] == "ann"


def test_staged_table_comes_with_its_rows(sales: IcebergCatalog, rows: pa.Table) -> None:
    with sales.create_table_transaction("sales.orders", rows.schema) as transaction:
        transaction.append(rows)

    assert sales.load_table("sales.orders").scan().to_arrow().num_rows == 2


def test_staged_table_is_not_created_over_another(sales: IcebergCatalog, schema: Schema) -> None:
    transaction = sales.create_table_transaction("sales.orders", schema)
    sales.create_table("sales.orders", schema)

    with pytest.raises(CommitFailedException, match=r"(?i)table already exists"):
        transaction.commit_transaction()


# ours only


@pytest.mark.parametrize("name", ["", "orders", "a..b", (), ("a\0b",), tuple("abcdefghijklmnopqrstu")])
def test_text_that_cannot_be_a_name_is_no_table(client: IcebergCatalog, name: str | tuple[str, ...]) -> None:
    assert not client.table_exists(name)
    with pytest.raises(NoSuchTableError):
        client.load_table(name)


def test_table_of_an_impossible_name_is_refused_with_the_reason(shop: IcebergCatalog, schema: Schema) -> None:
    with pytest.raises(REFUSED, match="contains the control character"):
        shop.create_table(("sales", "a\nb"), schema)


def test_tables_stand_in_nested_namespaces(shop: IcebergCatalog, schema: Schema, rows: pa.Table) -> None:
    """pyiceberg's own catalog stages only tables of one level."""
    shop.create_namespace("sales.eu.west")

    with shop.create_table_transaction("sales.eu.west.orders", schema) as transaction:
        transaction.append(rows)

    assert shop.list_tables("sales.eu.west") == [("sales", "eu", "west", "orders")]


def test_dropped_tables_place_is_not_used_again(shop: IcebergCatalog, schema: Schema) -> None:
    first = shop.create_table("sales.orders", schema)
    shop.drop_table("sales.orders")

    assert shop.create_table("sales.orders", schema).location() != first.location()


def test_renamed_tables_place_is_not_used_again(shop: IcebergCatalog, schema: Schema) -> None:
    first = shop.create_table("sales.orders", schema)
    shop.rename_table("sales.orders", "sales.old_orders")

    assert shop.create_table("sales.orders", schema).location() != first.location()


def test_two_tables_cannot_have_one_location(shop: IcebergCatalog, schema: Schema, warehouse: str) -> None:
    shop.create_table("sales.orders", schema, location=f"{warehouse}/here")

    with pytest.raises(REFUSED, match="would delete each other's files"):
        shop.create_table("sales.lines", schema, location=f"{warehouse}/here/inside")

    assert not shop.table_exists("sales.lines")


def test_table_lies_where_the_catalog_allows(shop: IcebergCatalog, schema: Schema, tmp_path: Path) -> None:
    with pytest.raises(
        REFUSED,
        match=r"sales\.orders cannot have files at .*/outside: it is outside the locations that catalog 'lake' allows",
    ):
        shop.create_table("sales.orders", schema, location=(tmp_path / "outside").as_uri())

    assert not (tmp_path / "outside").exists()


def test_table_name_unfit_for_a_folder_makes_one_anyway(shop: IcebergCatalog, schema: Schema) -> None:
    shop.create_namespace(("..", "a/b?c#d"))

    table = shop.create_table(("..", "a/b?c#d", "größe %"), schema)

    assert "/_/a_b_c_d/größe___" in table.location()


def test_rename_keeps_the_content_id(shop: IcebergCatalog, lake: Catalog, schema: Schema) -> None:
    shop.create_table("sales.orders", schema)
    before = lake.get_content(None, ContentKey.of("sales", "orders"))

    shop.rename_table("sales.orders", "sales.lines")

    assert lake.get_content(None, ContentKey.of("sales", "lines")) == before


def test_purged_table_is_gone_at_once(shop: IcebergCatalog, store: Store, schema: Schema) -> None:
    shop.create_table("sales.orders", schema)

    shop.purge_table("sales.orders")

    assert not shop.table_exists("sales.orders")
    assert [(seen.value.kind, seen.value.state) for seen in TaskQueue(store).list_tasks()] == [
        ("purge-table", TaskState.WAITING)
    ]


def test_table_that_must_not_be_purged_is_not_dropped(shop: IcebergCatalog, store: Store, schema: Schema) -> None:
    shop.create_table("sales.orders", schema, properties={"gc.enabled": "false"})

    with pytest.raises(REFUSED, match=r"sales\.orders was not dropped: .* has the property gc\.enabled=false"):
        shop.purge_table("sales.orders")

    assert shop.table_exists("sales.orders")
    assert TaskQueue(store).list_tasks() == []


def test_purging_a_missing_table_says_that_it_is_missing(shop: IcebergCatalog) -> None:
    with pytest.raises(NoSuchTableError):
        shop.purge_table("sales.orders")


def test_log_says_what_was_done_and_by_whom(shop: IcebergCatalog, lake: Catalog, rows: pa.Table) -> None:
    shop.create_table("sales.orders", rows.schema).append(rows)
    shop.rename_table("sales.orders", "sales.lines")

    told = [(entry.message, entry.meta.authors) for entry in lake.log(limit=3)]
    assert told == [
        ("rename table sales.orders to sales.lines", ("ada",)),
        ("append table sales.orders", ("ada",)),
        ("create table sales.orders", ("ada",)),
    ]


def test_table_without_its_metadata_file_loads_from_the_catalog(shop: IcebergCatalog, rows: pa.Table) -> None:
    table = shop.create_table("sales.orders", rows.schema)
    table.append(rows)

    path_of(table.metadata_location).unlink()

    assert shop.load_table("sales.orders").scan().to_arrow().num_rows == 2
