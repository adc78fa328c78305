"""A realm that keeps one commit of content, with a lake whose history has old commits, live branches and a deleted one."""

from __future__ import annotations

import pytest
from lakes import HOUR, make_lake, make_realm, put, rows_of

from headwater.catalogs import Catalog
from headwater.clock import FakeClock
from headwater.realms import Realm
from headwater.store import ObjectId, RealmStore, Store


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
