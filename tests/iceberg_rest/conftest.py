"""A store in memory with the catalog ``acme/lake``, served over Iceberg REST."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from rest_caller import RestCaller

from headwater import Store, open_store
from headwater.catalogs import Catalog, Catalogs
from headwater.realms import REALM_REFERENCES, RealmRegistry, RealmState
from headwater_server.call import ServedStore


@pytest.fixture
def store() -> Iterator[Store]:
    with open_store("memory://") as opened:
        yield opened


@pytest.fixture
def warehouse(tmp_path: Path) -> str:
    return (tmp_path / "warehouse").as_uri()


@pytest.fixture
def lake(store: Store, warehouse: str) -> Catalog:
    realms = RealmRegistry(store)
    realms.move_realm(realms.create_realm("acme"), RealmState.INITIALIZING)
    realms.open_realm_for("acme", RealmState.INITIALIZING).ensure_references(REALM_REFERENCES)
    realms.move_realm(realms.read_realm("acme"), RealmState.ACTIVE)
    catalogs = Catalogs(realms.open_realm("acme"))
    catalogs.create_catalog("lake", base_location=warehouse)
    return catalogs.open_catalog("lake")


@pytest.fixture
def rest(store: Store, lake: Catalog) -> RestCaller:
    return RestCaller(ServedStore(store))


@pytest.fixture
def sales(rest: RestCaller) -> RestCaller:
    """A caller of the lake with the namespace ``sales``."""
    assert rest.post("namespaces", {"namespace": ["sales"]}).status == 200
    return rest
