"""A process that is stopped between reading a reference and reading its commit, for so long that the commit was collected, looks again."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fake_clock import FakeClock
from faulty_backend import FaultyBackend
from headwater.commits import Transaction, commit_change, load_head, read_head
from headwater.errors import CorruptionError, ExpiredError
from headwater.index import IndexValue
from headwater.settings import Settings
from headwater.store import ObjectId, RealmId, RealmKey, RealmStore, Store
from headwater.store.backends.memory import MemoryBackend


class Stopped:
    """Rows of a process that is stopped before it reads a commit, while another one commits and the first commit is collected."""

    def __init__(self, settings: Settings) -> None:
        self.faults = FaultyBackend(MemoryBackend())
        stores = [
            Store(backend, url="memory://", settings=settings, clock=FakeClock())  # type: ignore[arg-type]  # faulty is any backend
            for backend in (self.faults, self.faults.backend)
        ]
        self.rows, self.others = (store.rows(RealmId("acme"), RealmKey(5)) for store in stores)
        self.others.ensure_reference("main")
        self.first = self.put(self.others)

    def put(self, rows: RealmStore) -> ObjectId:
        def change(tx: Transaction) -> None:
            index = tx.index("numbers")
            index.put(f"{len(index)}".encode(), IndexValue(None, b""))

        done = commit_change(rows, "main", change)
        assert done.commit_id is not None
        return done.commit_id

    def collect_the_first(self, *, is_succeeded: bool = True) -> None:
        if is_succeeded:
            self.put(self.others)
        self.others.delete_unchanged([key for batch in self.others.scan_objects() for key in batch if key.id == self.first])


@pytest.fixture
def stopped(settings: Settings) -> Iterator[Stopped]:
    made = Stopped(settings)
    yield made
    made.rows.store.backend.close()


def test_reader_of_the_head_gets_the_one_there_now(stopped: Stopped) -> None:
    stopped.faults.intervene("read_objects", stopped.collect_the_first)

    found = read_head(stopped.rows, "main", fresh=True)
    assert found is not None
    assert found.commit.seq == 2


def test_commit_is_made_on_the_head_that_is_there_now(stopped: Stopped) -> None:
    stopped.faults.intervene("read_objects", stopped.collect_the_first)
    stopped.put(stopped.rows)

    found = read_head(stopped.others, "main", fresh=True)
    assert found is not None
    assert found.commit.seq == 3


def test_holder_of_the_old_row_is_told_it_expired(stopped: Stopped) -> None:
    row = stopped.rows.read_reference("main", fresh=True)
    stopped.collect_the_first()

    with pytest.raises(ExpiredError, match="read it again"):
        load_head(stopped.rows, row)


def test_reference_that_still_points_there_dangles(stopped: Stopped) -> None:
    stopped.collect_the_first(is_succeeded=False)

    with pytest.raises(CorruptionError, match="fsck"):
        read_head(stopped.rows, "main", fresh=True)
