"""A swap that took effect late notes what it left, unless that was collected before its process learnt of the swap."""

from __future__ import annotations

import pytest

from fake_clock import FakeClock
from faulty_backend import FaultyBackend
from headwater.commits import Transaction, commit_change, read_log
from headwater.index import IndexValue
from headwater.settings import Settings
from headwater.store import ObjectId, RealmId, RealmKey, RealmStore, Store
from headwater.store.backends.memory import MemoryBackend

HOUR = 3600.0


class Late:
    """A writer whose second swap takes effect an hour after it was prepared."""

    def __init__(self, settings: Settings) -> None:
        self.clock = FakeClock()
        self.faults = FaultyBackend(MemoryBackend())
        self.rows, self.others = (self.open(settings, backend) for backend in (self.faults, self.faults.backend))
        self.others.ensure_reference("main")
        self.left = self.put(self.others)
        self.faults.intervene("swap_reference", lambda: self.clock.advance(HOUR))

    def open(self, settings: Settings, backend: object) -> RealmStore:
        store = Store(backend, url="memory://", settings=settings, clock=self.clock)  # type: ignore[arg-type]  # faulty is any backend
        return store.rows(RealmId("acme"), RealmKey(5))

    def put(self, rows: RealmStore) -> ObjectId:
        def change(tx: Transaction) -> None:
            index = tx.index("numbers")
            index.put(f"{len(index)}".encode(), IndexValue(None, b""))

        done = commit_change(rows, "main", change)
        assert done.commit_id is not None
        return done.commit_id

    def collect_what_was_left(self) -> None:
        self.others.delete_unchanged([key for batch in self.others.scan_objects() for key in batch if key.id == self.left])

    def moves(self) -> list[ObjectId]:
        return [move.pointer for move in self.others.read_reference("main", fresh=True).moves]


@pytest.fixture
def late(settings: Settings) -> Late:
    return Late(settings)


def test_commit_that_a_late_swap_left_is_noted(late: Late) -> None:
    late.put(late.rows)

    assert late.moves() == [late.left]


def test_commit_collected_meanwhile_is_not_noted(late: Late) -> None:
    late.faults.intervene("read_references", late.collect_what_was_left, at=2)
    late.put(late.rows)

    assert late.moves() == []
    assert len(list(read_log(late.others, "main"))) == 1
