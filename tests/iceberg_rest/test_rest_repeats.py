"""Requests that clients repeat under their Idempotency-Key."""

from __future__ import annotations

import pytest
from rest_caller import RestCaller, new_key

from headwater import Store
from headwater.catalogs import Catalog
from headwater.realms import RealmRegistry, RealmState
from headwater_server.call import ServedStore

SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "id", "type": "long", "required": True}]}


@pytest.fixture
def orders(sales: RestCaller) -> RestCaller:
    assert sales.post("namespaces/sales/tables", {"name": "orders", "schema": SCHEMA}).status == 200
    return sales


def commits_of(lake: Catalog) -> int:
    return len(list(lake.log()))


def test_creation_that_is_repeated_happens_once(sales: RestCaller, lake: Catalog) -> None:
    key, body = new_key(), {"name": "orders", "schema": SCHEMA}
    first = sales.post("namespaces/sales/tables", body, key=key)
    before = commits_of(lake)

    again = sales.post("namespaces/sales/tables", body, key=key)

    assert (again.status, again.json) == (200, first.json)
    assert commits_of(lake) == before


def test_repeat_knows_the_key_in_another_process(sales: RestCaller, store: Store) -> None:
    key = new_key()
    sales.post("namespaces", {"namespace": ["db"]}, key=key)

    assert RestCaller(ServedStore(store)).post("namespaces", {"namespace": ["db"]}, key=key).status == 200


def test_repeat_shows_the_present_state(sales: RestCaller) -> None:
    key, body = new_key(), {"requirements": [], "updates": [{"action": "set-properties", "updates": {"owner": "ann"}}]}
    sales.post("namespaces/sales/tables", {"name": "orders", "schema": SCHEMA})
    sales.post("namespaces/sales/tables/orders", body, key=key)
    sales.post(
        "namespaces/sales/tables/orders", {"requirements": [], "updates": [{**body["updates"][0], "updates": {"owner": "bob"}}]}
    )

    repeated = sales.post("namespaces/sales/tables/orders", body, key=key)

    assert repeated.json["metadata"]["properties"] == {"owner": "bob"}


def test_drop_that_is_repeated_is_told_as_done(sales: RestCaller) -> None:
    key = new_key()

    assert sales.delete("namespaces/sales", key=key).status == sales.delete("namespaces/sales", key=key).status == 204
    assert sales.delete("namespaces/sales", key=new_key()).status == 404


def test_rename_is_repeated_after_its_target_was_dropped(orders: RestCaller) -> None:
    key = new_key()
    body = {
        "source": {"namespace": ["sales"], "name": "orders"},
        "destination": {"namespace": ["sales"], "name": "moved"},
    }
    assert orders.post("tables/rename", body, key=key).status == 204
    assert orders.delete("namespaces/sales/tables/moved").status == 204

    assert orders.post("tables/rename", body, key=key).status == 204


def test_creation_is_repeated_after_another_took_its_key(sales: RestCaller) -> None:
    key, body = new_key(), {"name": "orders", "schema": SCHEMA}
    first = sales.post("namespaces/sales/tables", body, key=key)
    sales.delete("namespaces/sales/tables/orders")
    assert sales.post("namespaces/sales/tables", body, key=key).json["metadata"] == first.json["metadata"]
    other = sales.post("namespaces/sales/tables", body)

    again = sales.post("namespaces/sales/tables", body, key=key)

    uuids = [answer.json["metadata"]["table-uuid"] for answer in (first, again, other)]
    assert uuids[0] == uuids[1] != uuids[2]


def test_repeated_change_of_properties_names_what_was_missing(sales: RestCaller) -> None:
    sales.post("namespaces", {"namespace": ["db"], "properties": {"a": "1"}})
    key, body = new_key(), {"removals": ["a", "b"], "updates": {"c": "2"}}
    first = sales.post("namespaces/db/properties", body, key=key)

    again = sales.post("namespaces/db/properties", body, key=key)

    assert first.json == again.json == {"updated": ["c"], "removed": ["a"], "missing": ["b"]}


def test_closed_realm_is_not_remembered_for_a_key(sales: RestCaller, store: Store) -> None:
    key, realms = new_key(), RealmRegistry(store)
    realms.move_realm(realms.read_realm("acme"), RealmState.INACTIVE)
    caller = RestCaller(ServedStore(store))
    closed = caller.post("namespaces", {"namespace": ["db"]}, key=key)
    realms.move_realm(realms.read_realm("acme"), RealmState.ACTIVE)

    assert closed.error == (503, "ServiceUnavailableException") and closed.headers["Retry-After"] == "1"
    assert caller.post("namespaces", {"namespace": ["db"]}, key=key).status == 200


def test_key_of_another_request_is_refused(sales: RestCaller) -> None:
    key = new_key()
    sales.post("namespaces", {"namespace": ["db"]}, key=key)

    other = sales.post("namespaces", {"namespace": ["other"]}, key=key)

    assert other.error == (422, "UnprocessableEntityException")
    assert sales.head("namespaces/other").status == 404


def test_final_refusal_is_told_again(sales: RestCaller) -> None:
    key = new_key()
    refused = sales.delete("namespaces/db", key=key)
    sales.post("namespaces", {"namespace": ["db"]})

    assert sales.delete("namespaces/db", key=key).error == refused.error == (404, "NoSuchNamespaceException")
    assert sales.post("namespaces", {"namespace": ["x"]}, key=key).error == (422, "UnprocessableEntityException")
    assert sales.head("namespaces/db").status == 204


@pytest.mark.parametrize("key", ["", "abc", "017f22e279b07cc398c4dc0c0c07398f", "5f0f4bb1-2b3a-4f5e-9d3c-7a1f0c9e8b7d"])
def test_key_must_be_a_uuid_of_version_7(sales: RestCaller, key: str) -> None:
    refused = sales.post("namespaces", {"namespace": ["db"]}, key=key)

    assert refused.error == (400, "BadRequestException") and "version 7" in refused.message
    assert sales.head("namespaces/db").status == 404
