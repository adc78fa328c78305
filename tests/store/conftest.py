"""Stores whose backend fails on demand, and small objects to store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from backend_fixtures import store_url
from fake_clock import FakeClock
from faulty_backend import FaultyBackend
from headwater.settings import Settings
from headwater.store import ObjectId, RealmId, RealmKey, RealmStore, Reference, Store
from headwater.store.backends.memory import MemoryBackend

__all__ = ["store_url"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The file of a store on SQLite, not there yet."""
    return tmp_path / "store.db"


@pytest.fixture
def faults() -> FaultyBackend:
    return FaultyBackend(MemoryBackend())


@pytest.fixture
def faulty(faults: FaultyBackend, settings: Settings, clock: FakeClock) -> Iterator[RealmStore]:
    """The rows of a realm whose database fails on demand."""
    with Store(faults, url="memory://", settings=settings, clock=clock) as store:
        yield store.rows(RealmId("acme"), RealmKey(store.new_id()))
        faults.heal()


@pytest.fixture
def reference(rows: RealmStore) -> Reference:
    return rows.create_reference("branch", ObjectId(100))


@pytest.fixture
def tombstone(rows: RealmStore, reference: Reference) -> Reference:
    return rows.delete_reference(reference)
