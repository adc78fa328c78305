from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from expiring_lake import ExpiringLake
from fake_clock import FakeClock
from headwater import Store
from headwater.catalogs import Catalogs
from headwater.realms import REALM_REFERENCES, RealmRegistry, RealmState
from headwater.settings import Settings
from headwater.store.backends.memory import MemoryBackend


@pytest.fixture
def store(clock: FakeClock) -> Iterator[Store]:
    with Store(MemoryBackend(), url="memory://", settings=Settings(), clock=clock) as opened:
        yield opened


@pytest.fixture
def lake(store: Store, clock: FakeClock, tmp_path: Path) -> ExpiringLake:
    """The catalog ``lake`` of realm ``acme``, with the namespace ``sales``."""
    realms = RealmRegistry(store)
    realms.move_realm(realms.create_realm("acme"), RealmState.INITIALIZING)
    realms.open_realm_for("acme", RealmState.INITIALIZING).ensure_references(REALM_REFERENCES)
    realms.move_realm(realms.read_realm("acme"), RealmState.ACTIVE)
    warehouse = tmp_path / "warehouse"
    Catalogs(realms.open_realm("acme")).create_catalog("lake", base_location=warehouse.as_uri())
    made = ExpiringLake(store, clock, warehouse)
    made.on().namespaces.create(made.key("x").parent, {})
    return made
