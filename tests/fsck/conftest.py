"""Two databases that cost nothing, and one that keeps no order; a realm with a table that changed three times."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from harm import HOUR, make_lake, make_realm, open_on, put, rows_of

from backend_fixtures import BACKENDS
from fake_clock import FakeClock
from headwater import Settings
from headwater.catalogs import Catalog
from headwater.store import ObjectId, RealmStore, Store


@pytest.fixture(params=["memory", "unordered"])
def store(request: pytest.FixtureRequest, settings: Settings, clock: FakeClock) -> Iterator[Store]:
    with open_on(BACKENDS[request.param](request), settings, clock) as opened:
        yield opened


@pytest.fixture
def lake(store: Store) -> Catalog:
    make_realm(store)
    return make_lake(store)


@pytest.fixture
def realm_rows(store: Store, lake: Catalog) -> RealmStore:
    return rows_of(store)


@pytest.fixture
def commits(lake: Catalog, clock: FakeClock) -> list[ObjectId]:
    """Three commits of main, an hour apart; the last is HEAD since an hour."""
    made = []
    for version in (1, 2, 3):
        made.append(put(lake, version))
        clock.advance(HOUR)
    return made
