"""What clients are told when the database fails: by the status they decide whether to repeat a request, and whether to delete files."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from rest_caller import RestAnswer, RestCaller, new_key

from fake_clock import FakeClock
from faulty_backend import FaultyBackend
from headwater import Settings, Store, open_store
from headwater.catalogs import Catalog
from headwater.errors import UnavailableError
from request_keys import make_request

SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "id", "type": "long", "required": True}]}
SET_OWNER = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"owner": "ann"}}]}
FOR_EVER = 1_000_000


@pytest.fixture
def faults() -> Iterator[FaultyBackend]:
    with open_store("memory://") as opened:
        yield FaultyBackend(opened.backend)


@pytest.fixture
def store(faults: FaultyBackend, clock: FakeClock) -> Iterator[Store]:
    with Store(faults, url="memory://", settings=Settings(), clock=clock) as opened:
        yield opened


@pytest.fixture
def orders(sales: RestCaller) -> RestCaller:
    assert sales.post("namespaces/sales/tables", {"name": "orders", "schema": SCHEMA}).status == 200
    return sales


def commit(rest: RestCaller, *, key: str | None = None) -> RestAnswer:
    return rest.post("namespaces/sales/tables/orders", SET_OWNER, key=key)


def owner_of(rest: RestCaller) -> str | None:
    owner: str | None = rest.get("namespaces/sales/tables/orders").json["metadata"].get("properties", {}).get("owner")
    return owner


def test_commit_that_did_not_happen_may_be_sent_again(orders: RestCaller, faults: FaultyBackend) -> None:
    faults.fail("*", times=FOR_EVER)
    refused = commit(orders)
    faults.heal()

    assert refused.error == (503, "ServiceUnavailableException") and refused.headers["Retry-After"] == "1"
    assert owner_of(orders) is None


def test_commit_whose_outcome_is_unknown_is_told_as_such(orders: RestCaller, faults: FaultyBackend) -> None:
    faults.fail("swap_reference", before=False)
    faults.fail("read_reference", times=FOR_EVER, at=2)
    faults.fail("swap_reference", times=FOR_EVER, at=2)
    answer = commit(orders)
    faults.heal()

    assert answer.error == (500, "CommitStateUnknownException") and "Retry-After" not in answer.headers
    assert owner_of(orders) == "ann"


def test_commit_whose_answer_was_lost_on_the_way_is_found(orders: RestCaller, faults: FaultyBackend) -> None:
    faults.fail("swap_reference", before=False)

    assert commit(orders).status == 200
    assert owner_of(orders) == "ann"


def test_repeat_after_an_unknown_outcome_is_applied_once(orders: RestCaller, faults: FaultyBackend, lake: Catalog) -> None:
    key, before = new_key(), len(list(lake.log()))
    faults.fail("swap_reference", before=False)
    faults.fail("read_reference", times=FOR_EVER, at=2)
    faults.fail("swap_reference", times=FOR_EVER, at=2)
    assert commit(orders, key=key).status == 500
    faults.heal()

    assert commit(orders, key=key).status == 200
    assert len(list(lake.log())) == before + 1


def test_load_from_an_absent_database_may_be_sent_again(orders: RestCaller, faults: FaultyBackend, store: Store) -> None:
    store.cache.clear()
    faults.fail("*", times=FOR_EVER, fault=UnavailableError("away"))

    assert orders.get("namespaces/sales/tables/orders").error == (503, "ServiceUnavailableException")


def test_key_is_forgotten_after_half_an_hour(sales: RestCaller, clock: FakeClock) -> None:
    key, body = str(make_request(at=clock.now()).uuid), {"namespace": ["db"]}
    sales.post("namespaces", body, key=key)
    sales.delete("namespaces/db")
    clock.advance(29 * 60)
    assert sales.post("namespaces", body, key=key).status == 200
    assert sales.head("namespaces/db").status == 404

    clock.advance(2 * 60)
    sales.post("namespaces", {"namespace": ["other"]})  # whatever commits drops what has expired

    assert sales.post("namespaces", body, key=key).status == 200
    assert sales.head("namespaces/db").status == 204
