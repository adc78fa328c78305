"""A bootstrapped realm with a catalog ``lake``."""

from __future__ import annotations

import pytest
from pasts import lake_of, make_realm, rows_of

from headwater import Settings, Store
from headwater.catalogs import Catalog, Catalogs
from headwater.realms import Realm
from headwater.store import RealmStore


@pytest.fixture
def settings() -> Settings:
    return Settings()


@pytest.fixture
def realm(store: Store) -> Realm:
    return make_realm(store)


@pytest.fixture
def rows(store: Store, realm: Realm) -> RealmStore:
    return rows_of(store)


@pytest.fixture
def lake(store: Store, rows: RealmStore) -> Catalog:
    Catalogs(rows).create_catalog("lake", base_location="s3://lake/")
    return lake_of(store)
