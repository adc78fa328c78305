"""A purge holds the place that it empties, for as long as it takes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest

from headwater import Store
from headwater.catalogs import PURGING, TableClaim, TableClaims
from headwater.clients.pyiceberg import HeadwaterCatalog
from headwater.errors import RefusedError
from headwater.jobs import PURGE_TABLE
from headwater.jobs.table_tasks import LocationLock, lock_locations
from headwater.purge import PurgeRequest
from headwater.realms import RealmRegistry
from headwater.store import RealmStore
from headwater.tasks import TaskNotReadyError, TaskQueue


@pytest.fixture
def realm_rows(store: Store) -> RealmStore:
    return RealmRegistry(store).open_realm("acme")


@pytest.fixture
def wish(shop: HeadwaterCatalog, store: Store, place: Path) -> PurgeRequest:
    """Of a table that was dropped, and is in the history of its branch."""
    shop.purge_table("sales.orders")
    return PurgeRequest.from_task(TaskQueue(store).list_tasks(kind=PURGE_TABLE)[0].value)


@pytest.fixture
def held(wish: PurgeRequest, realm_rows: RealmStore, pass_time: Callable[[], None]) -> LocationLock:
    pass_time()
    return lock_locations(realm_rows, wish, fence=lambda: None)


def test_place_that_is_held_stays_so_over_collections(
    held: LocationLock, pass_time: Callable[[], None], realm_rows: RealmStore, place: Path
) -> None:
    held.renew()
    pass_time()
    held.renew()

    owner = TableClaims(realm_rows).find_location(place.as_uri())
    assert owner is not None and owner.catalog_id == PURGING


def test_lost_place_has_nothing_more_deleted(
    held: LocationLock, pass_time: Callable[[], None], realm_rows: RealmStore, place: Path
) -> None:
    """Its process stood still for so long that a collection released the claim."""
    held.renew()
    pass_time()
    TableClaims(realm_rows).take_claims([TableClaim("00000000000000ab", uuid4(), place.as_uri())])

    with pytest.raises(RefusedError, match="a place of another table: no more is deleted"):
        held.renew()


def test_look_that_comes_too_early_claims_nothing(wish: PurgeRequest, realm_rows: RealmStore, place: Path) -> None:
    with pytest.raises(TaskNotReadyError, match="commits that are kept may hold content"):
        lock_locations(realm_rows, wish, fence=lambda: None)

    claims = TableClaims(realm_rows)
    assert claims.find_location(place.as_uri()) is None  # the drop with purge released it
    assert claims.find_released(wish.catalog_id) == {wish.content_id}
