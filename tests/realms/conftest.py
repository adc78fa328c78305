"""Fixtures: the realms of a store on every embedded backend, and credentials that cost no time to make twice."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fake_clock import FakeClock
from headwater.realms import Credentials, CredentialsHash, Realm, RealmRegistry, RealmState, hash_credentials, new_credentials
from headwater.settings import Settings
from headwater.store import Backend, Store

PATHS = {
    RealmState.CREATED: (),
    RealmState.INITIALIZING: (RealmState.INITIALIZING,),
    RealmState.LOADING: (RealmState.LOADING,),
    RealmState.ACTIVE: (RealmState.INITIALIZING, RealmState.ACTIVE),
    RealmState.INACTIVE: (RealmState.INITIALIZING, RealmState.INACTIVE),
    RealmState.PURGING: (RealmState.PURGING,),
    RealmState.PURGED: (RealmState.PURGING, RealmState.PURGED),
}


@pytest.fixture
def settings() -> Settings:
    """Shipped defaults: holds and their floor are tested as they are."""
    return Settings()


@pytest.fixture
def make_store(settings: Settings, clock: FakeClock) -> Callable[[Backend], Store]:
    def make(backend: Backend) -> Store:
        return Store(backend, url="memory://", settings=settings, clock=clock)

    return make


@pytest.fixture
def realms(store: Store) -> RealmRegistry:
    return RealmRegistry(store)


@pytest.fixture
def make_realm(realms: RealmRegistry) -> Callable[..., Realm]:
    def make(realm_id: str = "acme", *, state: RealmState = RealmState.ACTIVE) -> Realm:
        realm = realms.create_realm(realm_id)
        for step in PATHS[state]:
            realm = realms.move_realm(realm, step)
        return realm

    return make


@pytest.fixture(scope="session")
def credentials() -> Credentials:
    return new_credentials()


@pytest.fixture(scope="session")
def credentials_hash(credentials: Credentials) -> CredentialsHash:
    return hash_credentials(credentials)
