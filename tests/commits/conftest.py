"""A reference with a counter on it, and databases that fail on demand."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from backend_fixtures import store_url
from fake_clock import FakeClock
from faulty_backend import FaultyBackend
from headwater.commits import CommitResult, Transaction, commit_change, read_head
from headwater.index import IndexValue
from headwater.settings import Settings
from headwater.store import RealmId, RealmKey, RealmStore, Store
from headwater.store.backends.memory import MemoryBackend

__all__ = ["store_url"]


@pytest.fixture
def rows(rows: RealmStore) -> RealmStore:
    """The root fixture's realm with a reference ``main`` that has no commit yet."""
    rows.ensure_reference("main")
    return rows


@pytest.fixture
def faults() -> FaultyBackend:
    return FaultyBackend(MemoryBackend())


@pytest.fixture
def faulty(faults: FaultyBackend, settings: Settings, clock: FakeClock) -> Iterator[RealmStore]:
    """The same on a database that fails on demand."""
    with Store(faults, url="memory://", settings=settings, clock=clock) as store:
        made = store.rows(RealmId("acme"), RealmKey(store.new_id()))
        made.ensure_reference("main")
        yield made
        faults.heal()


@pytest.fixture
def elsewhere(faults: FaultyBackend, faulty: RealmStore) -> RealmStore:
    """The same rows as another process has them, which no fault meets."""
    store = Store(faults.backend, url="memory://", settings=faulty.settings, clock=faulty.clock)
    return store.rows(faulty.realm, faulty.key)


@pytest.fixture
def put() -> Callable[..., CommitResult[None]]:
    """Commits one key of the index ``things`` to ``main``."""

    def commit_one(rows: RealmStore, key: bytes = b"k", data: bytes = b"", *, reference: str = "main") -> CommitResult[None]:
        def change(tx: Transaction) -> None:
            tx.index("things").put(key, IndexValue(None, data or str(tx.time).encode()))

        return commit_change(rows, reference, change)

    return commit_one


@pytest.fixture
def increment() -> Callable[[RealmStore], CommitResult[int]]:
    """Adds one to the counter on ``main``."""

    def change(tx: Transaction) -> int:
        seen = tx.index("counters").get(b"n")
        number = 1 + (int(seen.data) if seen else 0)
        tx.index("counters").put(b"n", IndexValue(None, str(number).encode()))
        return number

    return lambda rows: commit_change(rows, "main", change)


@pytest.fixture
def count() -> Callable[[RealmStore], int]:
    """Where the counter on ``main`` stands."""

    def read(rows: RealmStore) -> int:
        newest = read_head(rows, "main", fresh=True)
        seen = newest and newest.index("counters").get(b"n")
        return int(seen.data) if seen else 0

    return read
