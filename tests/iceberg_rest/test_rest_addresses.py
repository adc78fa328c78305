"""What warehouses, prefixes and namespaces mean."""

from __future__ import annotations

from urllib.parse import unquote

import pytest

from headwater.catalogs import ContentKey
from headwater.errors import NotFoundError, RefusedError
from headwater_server.iceberg_rest.addresses import key_below, parse_namespace, parse_parent
from headwater_server.warehouse_address import WarehouseAddress


@pytest.mark.parametrize(
    ("warehouse", "address"),
    [
        ("acme/lake", WarehouseAddress("acme", "lake")),
        ("acme/lake@dev", WarehouseAddress("acme", "lake", "dev")),
        ("acme/lake@feature/x", WarehouseAddress("acme", "lake", "feature/x")),
        ("acme/lake@main@0123456789abcdef", WarehouseAddress("acme", "lake", "main@0123456789abcdef")),
        ("acme/lake@main~1", WarehouseAddress("acme", "lake", "main~1")),
        ("acme/lake@-", WarehouseAddress("acme", "lake")),
    ],
)
def test_warehouse_names_realm_catalog_and_reference(warehouse: str, address: WarehouseAddress) -> None:
    assert WarehouseAddress.from_warehouse(warehouse) == address


@pytest.mark.parametrize(
    "reference", [None, "dev", "feature/x", "main~1", "main@0123456789abcdef", "main*2026-01-31T12:00:00Z"]
)
def test_prefix_is_read_as_it_was_given(reference: str | None) -> None:
    address = WarehouseAddress("acme", "lake.v2", reference)

    assert "/" not in address.prefix
    assert WarehouseAddress.from_prefix(unquote(address.prefix)) == address


def test_unit_separator_in_a_prefix_is_a_slash() -> None:
    assert WarehouseAddress.from_prefix("acme~lake~feature\x1fx") == WarehouseAddress("acme", "lake", "feature/x")


@pytest.mark.parametrize("warehouse", ["lake", "acme/", "/lake", "acme/lake/more", "acme/lake@", "s3://bucket/lake"])
def test_text_without_realm_and_catalog_is_no_warehouse(warehouse: str) -> None:
    with pytest.raises(NotFoundError, match="REALM/CATALOG"):
        WarehouseAddress.from_warehouse(warehouse)


def test_client_without_a_warehouse_is_told_to_name_one() -> None:
    with pytest.raises(RefusedError, match="no warehouse is named"):
        WarehouseAddress.from_warehouse("")


@pytest.mark.parametrize("prefix", ["lake", "acme~", "~lake", "acme/lake", "acme~lake~"])
def test_prefix_of_a_clients_own_is_refused(prefix: str) -> None:
    with pytest.raises(NotFoundError, match="/v1/config"):
        WarehouseAddress.from_prefix(prefix)


def test_levels_of_a_namespace_may_have_dots_and_slashes() -> None:
    assert parse_namespace("a/b\x1fc.d") == ContentKey(("a/b", "c.d"))
    assert key_below("a\x1fb", "t/x") == ContentKey(("a", "b", "t/x"))
    assert key_below("a", "..") == ContentKey(("a", ".."))


@pytest.mark.parametrize("segment", ["", "a\x1f", "a\x1f\x1fb", "a\nb", "a" * 501])
def test_impossible_namespace_is_refused(segment: str) -> None:
    with pytest.raises(RefusedError):
        parse_namespace(segment)


@pytest.mark.parametrize("parent", [None, ""])
def test_parent_that_is_empty_is_the_top(parent: str | None) -> None:
    assert parse_parent(parent) is None
