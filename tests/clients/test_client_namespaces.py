"""Namespaces, by the promises of pyiceberg's catalogs; those of one kind only are tested with ``client``."""

from __future__ import annotations

import pytest
from lake_doors import NO_NAMESPACE, REFUSED, own_properties
from pyiceberg.catalog import Catalog as IcebergCatalog
from pyiceberg.exceptions import NamespaceAlreadyExistsError, NamespaceNotEmptyError, NoSuchNamespaceError, RESTError
from pyiceberg.schema import Schema

from headwater.catalogs import Catalog, ContentKey, IcebergTable, Namespace, Put


def test_namespace_that_was_created_exists_with_its_properties(catalog: IcebergCatalog) -> None:
    catalog.create_namespace("sales", {"owner": "ann"})

    assert catalog.namespace_exists("sales")
    assert own_properties(catalog, "sales") == {"owner": "ann"}


def test_namespace_is_created_once(catalog: IcebergCatalog) -> None:
    catalog.create_namespace(("sales", "eu"))

    with pytest.raises(NamespaceAlreadyExistsError, match="already exists"):
        catalog.create_namespace(("sales", "eu"))


def test_namespace_that_exists_is_left_by_creation_if_missing(catalog: IcebergCatalog) -> None:
    catalog.create_namespace("sales", {"owner": "ann"})

    catalog.create_namespace_if_not_exists("sales", {"owner": "bob"})

    assert own_properties(catalog, "sales") == {"owner": "ann"}


def test_namespaces_above_a_new_one_exist_with_it(catalog: IcebergCatalog) -> None:
    catalog.create_namespace("db.sales.eu")

    assert catalog.namespace_exists("db") and catalog.namespace_exists("db.sales")
    assert catalog.list_namespaces() == [("db",)]


@pytest.mark.parametrize("nothing", ["", (), ("", ""), " ", "a..b"])
def test_namespace_needs_a_name(catalog: IcebergCatalog, nothing: str | tuple[str, ...]) -> None:
    with pytest.raises(NoSuchNamespaceError):
        catalog.create_namespace(nothing)


def test_namespaces_are_listed_level_by_level(catalog: IcebergCatalog) -> None:
    for name in ("db.ns1.deep", "db.ns2", "db2.ns1", "db%", "db_"):
        catalog.create_namespace(name)

    assert sorted(catalog.list_namespaces()) == [("db",), ("db%",), ("db2",), ("db_",)]
    assert sorted(catalog.list_namespaces("db")) == [("db", "ns1"), ("db", "ns2")]
    assert catalog.list_namespaces("db.ns1.deep") == []


@pytest.mark.parametrize("ask", ["list_namespaces", "list_tables", "load_namespace_properties", "drop_namespace"])
def test_missing_namespace_is_said_to_be_missing(catalog: IcebergCatalog, ask: str) -> None:
    with pytest.raises(NoSuchNamespaceError, match="sales"):
        getattr(catalog, ask)("sales")


def test_properties_are_removed_and_updated_and_the_missing_are_named(catalog: IcebergCatalog) -> None:
    catalog.create_namespace("sales", {"owner": "ann", "comment": "old", "kept": "yes"})

    summary = catalog.update_namespace_properties("sales", {"owner", "nothing"}, {"comment": "new"})

    assert (summary.removed, summary.updated, summary.missing) == (["owner"], ["comment"], ["nothing"])
    assert own_properties(catalog, "sales") == {"comment": "new", "kept": "yes"}


def test_property_cannot_be_removed_and_updated_at_once(catalog: IcebergCatalog) -> None:
    catalog.create_namespace("sales", {"owner": "ann"})

    with pytest.raises((ValueError, RESTError), match=r"overlap|remove and update the same key"):
        catalog.update_namespace_properties("sales", {"owner"}, {"owner": "bob"})


def test_properties_of_a_missing_namespace_cannot_be_updated(catalog: IcebergCatalog) -> None:
    with pytest.raises(NoSuchNamespaceError):
        catalog.update_namespace_properties("sales", updates={"owner": "bob"})


def test_namespace_with_a_table_is_not_dropped(catalog: IcebergCatalog, schema: Schema) -> None:
    catalog.create_namespace("sales")
    catalog.create_table("sales.orders", schema)

    with pytest.raises(NamespaceNotEmptyError, match="sales is not empty"):
        catalog.drop_namespace("sales")


def test_namespace_that_was_emptied_is_dropped(catalog: IcebergCatalog, schema: Schema) -> None:
    catalog.create_namespace("sales")
    catalog.create_table("sales.orders", schema)
    catalog.drop_table("sales.orders")

    catalog.drop_namespace("sales")

    assert not catalog.namespace_exists("sales")


def test_namespace_above_another_is_not_dropped(client: IcebergCatalog) -> None:
    """pyiceberg's own catalog drops it, and has it still, as the other's."""
    client.create_namespace("sales.eu")

    with pytest.raises(NamespaceNotEmptyError, match=r"it holds sales\.eu"):
        client.drop_namespace("sales")


def test_table_is_no_namespace(client: IcebergCatalog, schema: Schema) -> None:
    client.create_namespace("sales")
    client.create_table("sales.orders", schema)

    assert not client.namespace_exists("sales.orders")
    with pytest.raises(NO_NAMESPACE, match=r"sales\.orders is no namespace"):
        client.create_namespace("sales.orders.lines")


@pytest.mark.parametrize("properties", [{"owner": None}, {None: "ann"}])
def test_namespace_takes_no_null_property(client: IcebergCatalog, properties: dict[str, str]) -> None:
    with pytest.raises(REFUSED, match="names and values are text"):
        client.create_namespace("sales", properties)


def test_element_may_hold_what_separates_elements_in_a_text(client: IcebergCatalog) -> None:
    client.create_namespace(("sales.eu",))

    assert client.list_namespaces() == [("sales.eu",)]
    assert not client.namespace_exists("sales.eu")


def test_listing_steps_over_what_lies_below_the_namespaces(lake: Catalog, client: IcebergCatalog) -> None:
    tables = [Put(ContentKey.of("big", f"t{n:04}"), IcebergTable(metadata_location=f"s3://x/{n}")) for n in range(2000)]
    lake.commit("main", [Put(ContentKey.of(name), Namespace()) for name in ("a", "big", "z")] + tables)

    assert client.list_namespaces() == [("a",), ("big",), ("z",)]
    assert len(client.list_tables("big")) == 2000
