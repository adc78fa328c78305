"""A purge holds the place that it empties, for as long as it takes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest

from headwater import Store
from headwater.catalogs import PURGING, Claim, Claims
from headwater.clients.pyiceberg import HeadwaterCatalog
from headwater.errors import RefusedError
from headwater.maintenance import PURGE_TABLE, Wish
from headwater.maintenance.purging_tables.gating import Hold, hold
from headwater.realms import Realms
from headwater.store import RealmStore
from headwater.tasks import NotYetError, Tasks


@pytest.fixture
def realm_rows(store: Store) -> RealmStore:
    return Realms(store).open("acme")


@pytest.fixture
def wish(shop: HeadwaterCatalog, store: Store, place: Path) -> Wish:
    """Of a table that was dropped, and is in the history of its branch."""
    shop.purge_table("sales.orders")
    return Wish.of(Tasks(store).list(kind=PURGE_TABLE)[0].value)


@pytest.fixture
def held(wish: Wish, realm_rows: RealmStore, pass_time: Callable[[], None]) -> Hold:
    pass_time()
    return hold(realm_rows, wish, fence=lambda: None)


def test_a_place_that_is_held_stays_so_over_collections(
    held: Hold, pass_time: Callable[[], None], realm_rows: RealmStore, place: Path
) -> None:
    held.check()
    pass_time()
    held.check()

    owner = Claims(realm_rows).find_location(place.as_uri())
    assert owner is not None and owner.catalog_id == PURGING


def test_nothing_more_is_deleted_in_a_place_that_was_lost(
    held: Hold, pass_time: Callable[[], None], realm_rows: RealmStore, place: Path
) -> None:
    """Its process stood still for so long that a collection released the claim."""
    held.check()
    pass_time()
    Claims(realm_rows).take([Claim("00000000000000ab", uuid4(), place.as_uri())])

    with pytest.raises(RefusedError, match="a place of another table: no more is deleted"):
        held.check()


def test_a_look_that_comes_too_early_claims_nothing(wish: Wish, realm_rows: RealmStore, place: Path) -> None:
    with pytest.raises(NotYetError, match="commits that are kept may hold content"):
        hold(realm_rows, wish, fence=lambda: None)

    owner = Claims(realm_rows).find_location(place.as_uri())
    assert owner is not None and (owner.catalog_id, owner.content_id) == (wish.catalog_id, wish.content_id)
