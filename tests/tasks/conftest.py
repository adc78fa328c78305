"""Tasks in a store on a clock that moves when told to."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fake_clock import FakeClock
from faulty_backend import FaultyBackend
from headwater.settings import Settings
from headwater.store import ObjectId, Store, open_store
from headwater.tasks import LeaseWatch, TaskLease, TaskQueue


@pytest.fixture
def tasks(store: Store) -> TaskQueue:
    return TaskQueue(store, chance=lambda: 0.5)


@pytest.fixture
def watch(store: Store) -> LeaseWatch:
    return LeaseWatch(store.clock, store.settings.task_lease_seconds)


@pytest.fixture
def waiting(tasks: TaskQueue) -> ObjectId:
    """A task that is due."""
    return tasks.submit_task("gc", realm="acme").id


@pytest.fixture
def claim(tasks: TaskQueue, waiting: ObjectId) -> TaskLease:
    """The first attempt at the waiting task."""
    claimed = tasks.claim_task(waiting, "worker-1")
    assert claimed is not None
    return claimed


@pytest.fixture
def let_lease_end(tasks: TaskQueue, watch: LeaseWatch, clock: FakeClock) -> Callable[[], None]:
    """Watch all running tasks stand still for a lease."""

    def wait() -> None:
        tasks.find_claimable(watch)
        clock.advance(61)
        tasks.find_claimable(watch)

    return wait


@pytest.fixture
def faulty(clock: FakeClock, settings: Settings) -> Store:
    """A store whose backend fails on demand."""
    return Store(FaultyBackend(open_store("memory://").backend), url="memory://", settings=settings, clock=clock)


@pytest.fixture
def faults(faulty: Store) -> FaultyBackend:
    assert isinstance(faulty.backend, FaultyBackend)
    return faulty.backend
