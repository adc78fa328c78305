"""Iceberg metadata in pieces that versions share: a collection takes what no kept version needs, and nothing else."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from fake_clock import FakeClock
from headwater.catalogs import IDS, Catalog, ContentKey, IcebergTable, Put, stored_metadata_of
from headwater.catalogs.stored_metadata import read_metadata
from headwater.gc import collect_realm
from headwater.iceberg.metadata_json import join_metadata, split_metadata
from headwater.store import RealmStore, Store
from lakes import HOUR, REALM

ORDERS = ContentKey.of("orders")
VERSIONS = 12


def document(version: int) -> dict[str, Any]:
    """Eighty snapshots of which some go and others come, and a wide schema that changes once."""
    return {
        "location": "s3://lake/orders",
        "schemas": [{"schema-id": 0, "fields": [("old" if version < 3 else "new") * 1000]}],
        "snapshots": [{"snapshot-id": number, "note": "x" * 900} for number in range(10 * version, 10 * version + 80)],
    }


def put(catalog: Catalog, version: int) -> None:
    there = catalog.get_content("main", ORDERS)
    content = IcebergTable(id=None if there is None else there.id, metadata_location=f"s3://lake/orders/v{version}.json")
    parts = split_metadata(json.dumps(document(version)).encode())
    catalog.commit("main", [Put(ORDERS, content, metadata=parts)], message=f"v{version}")


def kept(catalog: Catalog, rows: RealmStore, ref: str) -> Any:
    head, table = catalog.resolve(ref), catalog.get_content(ref, ORDERS)
    assert head is not None and table is not None and table.id is not None
    found = stored_metadata_of(head.index(IDS), table.id)
    assert found is not None
    return json.loads(join_metadata(read_metadata(rows, found)))


def types(rows: RealmStore) -> Counter[str]:
    return Counter(key.type for batch in rows.scan_objects() for key in batch)


@pytest.fixture
def versions(lake: Catalog, clock: FakeClock) -> int:
    """How many versions of a table were committed, an hour apart."""
    for version in range(VERSIONS):
        put(lake, version)
        clock.advance(HOUR)
    return VERSIONS


def test_metadata_shared_by_the_newest_version_stays(
    store: Store, lake: Catalog, realm_rows: RealmStore, versions: int
) -> None:
    before = types(realm_rows)
    collect_realm(store, REALM)
    store.cache.clear()

    after = types(realm_rows)
    assert kept(lake, realm_rows, "main") == document(versions - 1)
    assert after["iceberg-metadata"] == 1
    assert after["stripe"] < before["stripe"]


def test_metadata_that_a_tag_keeps_stays_with_all_pieces(
    store: Store, lake: Catalog, realm_rows: RealmStore, clock: FakeClock
) -> None:
    put(lake, 0)
    lake.create_tag("first")
    for version in range(1, VERSIONS):
        clock.advance(HOUR)
        put(lake, version)
    clock.advance(HOUR)
    collect_realm(store, REALM)
    store.cache.clear()

    assert kept(lake, realm_rows, "first") == document(0)
    assert kept(lake, realm_rows, "main") == document(VERSIONS - 1)
    assert types(realm_rows)["iceberg-piece"] == 2


def test_next_version_stands_on_one_that_was_collected_around(
    store: Store, lake: Catalog, realm_rows: RealmStore, clock: FakeClock, versions: int
) -> None:
    collect_realm(store, REALM)
    put(lake, versions)
    clock.advance(HOUR)
    collect_realm(store, REALM)
    store.cache.clear()

    assert kept(lake, realm_rows, "main") == document(versions)
