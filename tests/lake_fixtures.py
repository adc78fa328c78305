"""Fixtures: each backend, also one that can only do the minimum; and a realm that keeps one commit of content of a lake with some
history.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from backend_fixtures import BACKENDS
from fake_clock import FakeClock
from headwater import Settings
from headwater.catalogs import Catalog
from headwater.realms import Realm
from headwater.store import ObjectId, RealmStore, Store
from lakes import HOUR, make_lake, make_realm, open_on, put, rows_of
from tiers import long_but_for


@pytest.fixture(params=long_but_for({"memory"}, ["memory", "sqlite", "unordered"]))
def store(request: pytest.FixtureRequest, settings: Settings, clock: FakeClock) -> Iterator[Store]:
    with open_on(BACKENDS[request.param](request), settings, clock) as opened:
        yield opened


@pytest.fixture
def realm(store: Store) -> Realm:
    return make_realm(store)


@pytest.fixture
def lake(store: Store, realm: Realm) -> Catalog:
    return make_lake(store)


@pytest.fixture
def realm_rows(store: Store, realm: Realm) -> RealmStore:
    return rows_of(store)


@pytest.fixture
def old_commits(lake: Catalog, clock: FakeClock) -> list[ObjectId]:
    """Three commits of main, an hour apart; the last is HEAD since an hour."""
    commits = []
    for version in (1, 2, 3):
        commits.append(put(lake, version))
        clock.advance(HOUR)
    return commits
