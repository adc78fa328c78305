"""A table that comes back claims its places first: those that its metadata tells, not the folder of a file."""

from __future__ import annotations

import json
from uuid import uuid4

import pytest
from pasts import contents, drop, passed, request, restored, rows_of

from fake_clock import FakeClock
from headwater import Store
from headwater.catalogs import Catalog, ContentKey, IcebergTable, Put, TableClaim, TableClaims
from headwater.clock import Micros
from headwater.iceberg.metadata_json import split_metadata

OTHER = "00000000000000bb"
ORDERS = ContentKey.of("orders")
DOCUMENT = {
    "location": "s3://lake/orders",
    "properties": {"write.metadata.path": "s3://meta", "write.data.path": "s3://data/orders"},
}


@pytest.fixture
def moment(store: Store, clock: FakeClock, lake: Catalog) -> Micros:
    """When the table was there; it was dropped since, and nobody has claimed anything."""
    content = IcebergTable(metadata_location="s3://meta/v1.json")
    lake.commit("main", [Put(ORDERS, content, metadata=split_metadata(json.dumps(DOCUMENT).encode()))])
    then = passed(clock)
    drop(lake, "orders")
    return then


def test_places_of_a_restored_table_are_claimed(store: Store, moment: Micros) -> None:
    restored(store, request("lake/main", moment))

    claims = TableClaims(rows_of(store))
    assert set(claims.find_locations(["s3://lake/orders", "s3://meta", "s3://data/orders"])) == {
        "s3://lake/orders",
        "s3://meta",
        "s3://data/orders",
    }


@pytest.mark.parametrize("place", ["s3://lake/orders/in", "s3://meta", "s3://data"])
def test_table_does_not_come_back_to_what_is_anothers_now(store: Store, lake: Catalog, moment: Micros, place: str) -> None:
    owner = TableClaim(OTHER, uuid4(), place)
    TableClaims(rows_of(store)).take_claims([owner])

    outcome = restored(store, request("lake/main", moment))

    assert contents(lake) == {}
    assert not [one for one in (OTHER, str(owner.content_id)) if one in str(outcome)]
