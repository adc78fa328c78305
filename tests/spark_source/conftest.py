"""A realm with two catalogs, in memory, whose database counts what is asked of it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from source_queries import CountingBackend, make_realm

from fake_clock import FakeClock
from headwater import Settings, Store
from headwater.catalogs import Catalog, Catalogs, ContentKey, IcebergTable, Namespace, Put
from headwater.realms import RealmRegistry


@pytest.fixture
def store(settings: Settings, clock: FakeClock) -> Store:
    return Store(CountingBackend(), url="memory://", settings=settings, clock=clock)


@pytest.fixture
def backend(store: Store) -> CountingBackend:
    assert isinstance(store.backend, CountingBackend)
    return store.backend


@pytest.fixture
def make_catalog(store: Store) -> Callable[[str, str], Catalog]:
    """A catalog with one commit on main: the namespace ``sales`` and the tables ``orders`` and ``paid.2024`` in it."""

    def make(realm: str, name: str) -> Catalog:
        realms = RealmRegistry(store)
        if realms.find_realm(realm) is None:
            make_realm(store, realm)
        catalogs = Catalogs(realms.open_realm(realm))
        catalogs.create_catalog(name, base_location=f"s3://{name}/")
        catalog = catalogs.open_catalog(name)
        keys = [ContentKey.of("sales", "orders"), ContentKey.of("sales", "paid.2024")]
        tables = [Put(key, IcebergTable(metadata_location=f"s3://{name}/{key.name}.json")) for key in keys]
        catalog.commit("main", [Put(ContentKey.of("sales"), Namespace(properties={"owner": "ann"})), *tables], authors=["ann"])
        return catalog

    return make


@pytest.fixture
def lake(make_catalog: Callable[[str, str], Catalog]) -> Catalog:
    return make_catalog("acme", "lake")
