"""Answers to loads that are kept: what they spare, what they must never be wrong about, and how much of them is kept."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from rest_caller import RestCaller

from faulty_backend import FaultyBackend
from headwater import Store
from headwater.catalogs import Catalog, ContentKey, IcebergTable, Put
from headwater.iceberg_catalog import VersionMark
from headwater.store import ObjectId, RealmKey
from headwater_server.call import ServedStore
from headwater_server.iceberg_rest.table_bodies import TableBodies, table_bodies
from headwater_server.lake_sessions import LakeSessions
from headwater_server.warehouse_address import WarehouseAddress

ORDERS = "namespaces/sales/tables/orders"
SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "id", "type": "long", "required": True}]}
BODY = bytes(1000)


@pytest.fixture
def orders(sales: RestCaller) -> RestCaller:
    assert sales.post("namespaces/sales/tables", {"name": "orders", "schema": SCHEMA}).status == 200
    return sales


@pytest.fixture
def mark(orders: RestCaller, lake: Catalog, store: Store) -> VersionMark:
    session = LakeSessions(ServedStore(store)).open_session(WarehouseAddress("acme", "lake"))
    return session.lake.tables.mark(ContentKey.of("sales", "orders"))


def numbered(mark: VersionMark, number: int) -> VersionMark:
    return replace(mark, objects=(RealmKey(1002), ObjectId(number), ObjectId(number)))


class CountingBackend(FaultyBackend):
    """Counts the objects that are asked for."""

    objects = 0

    def _call(self, name: str, *arguments: Any, **named: Any) -> Any:
        if name == "read_objects":
            self.objects += len(arguments[1])
        return super()._call(name, *arguments, **named)


def test_table_that_is_loaded_again_is_not_read(orders: RestCaller, store: Store) -> None:
    backend = CountingBackend(store.backend)
    cold = Store(backend, url="memory://", settings=store.settings, clock=store.clock)
    rest = RestCaller(ServedStore(cold))
    tag = rest.get(ORDERS).headers["ETag"]

    def objects_read(**headers: str) -> int:
        cold.cache.clear()
        before = backend.objects
        rest.get(ORDERS, headers=headers)
        return backend.objects - before

    assert objects_read() == objects_read(**{"if-none-match": tag}) > 0


def test_load_after_a_commit_has_the_new_version(orders: RestCaller) -> None:
    before = orders.get(ORDERS)
    orders.post(ORDERS, {"requirements": [], "updates": [{"action": "set-properties", "updates": {"owner": "ann"}}]})

    after = orders.get(ORDERS)

    assert after.json["metadata"]["properties"] == {"owner": "ann"}
    assert after.headers["ETag"] != before.headers["ETag"]


def test_load_of_fewer_snapshots_has_a_body_of_its_own(orders: RestCaller) -> None:
    whole = orders.get(ORDERS)
    trimmed = orders.get(ORDERS, snapshots="refs")

    assert trimmed.headers["ETag"] != whole.headers["ETag"]
    assert orders.served.part(table_bodies).taken_bytes > len(whole.content) + len(trimmed.content)


def test_table_that_was_replaced_by_another_is_read(orders: RestCaller, lake: Catalog) -> None:
    """The other has the first one's file, and so the same tag, but no document in the catalog."""
    first = orders.get(ORDERS)
    key = ContentKey.of("sales", "orders")
    stored = lake.get_content(None, key)
    assert isinstance(stored, IcebergTable)
    assert orders.delete(ORDERS).status == 204
    lake.commit(None, [Put(key, IcebergTable(metadata_location=stored.metadata_location, table_uuid=stored.table_uuid))])
    kept = orders.served.part(table_bodies).taken_bytes

    assert orders.get(ORDERS).json["metadata"] == first.json["metadata"]
    assert orders.served.part(table_bodies).taken_bytes == kept


def test_bodies_that_were_used_least_recently_go(mark: VersionMark) -> None:
    bodies = TableBodies(20_000)
    bodies.keep(numbered(mark, 1), "tag", BODY)
    for number in range(2, 20):
        bodies.keep(numbered(mark, number), "tag", BODY)
        bodies.find(numbered(mark, 1), "tag")

    assert bodies.taken_bytes <= 20_000
    assert bodies.find(numbered(mark, 1), "tag") == bodies.find(numbered(mark, 19), "tag") == BODY
    assert bodies.find(numbered(mark, 2), "tag") is None


def test_body_that_would_push_out_many_is_not_kept(mark: VersionMark) -> None:
    bodies = TableBodies(20_000)
    bodies.keep(mark, "tag", bytes(2400))

    assert (bodies.find(mark, "tag"), bodies.taken_bytes) == (None, 0)


def test_body_that_is_kept_twice_counts_once(mark: VersionMark) -> None:
    bodies = TableBodies(20_000)
    bodies.keep(mark, "tag", BODY)
    taken = bodies.taken_bytes
    bodies.keep(mark, "tag", BODY)

    assert bodies.taken_bytes == taken
