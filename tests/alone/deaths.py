"""A piece of work done by a worker that dies at one call to the database, and by the next worker after the lease.

A death is one as SIGKILL's: from that call on the process does nothing more, whatever it would have tidied up.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from fake_clock import FakeClock
from faulty_backend import FaultyBackend
from headwater.clock import Clock
from headwater.settings import Settings
from headwater.store import Backend, ObjectId, ScanSplit, Store
from headwater.store.backends.memory import MemoryBackend
from headwater.tasks import LeaseWatch, Task, TaskQueue
from headwater_workers.task_executor import TASK_BODIES, TaskBody, execute_task

__all__ = ["SETTINGS", "Died", "Widow", "attempt", "copied", "deaths", "open_on", "succeed"]

SETTINGS = Settings(
    unsafe_short_graces=True, writer_grace_seconds=60, reader_grace_seconds=60, purge_hold_seconds=60, delete_batch=3
)
IS_SOAK = os.environ.get("HEADWATER_SOAK") == "1"
SEED = int(os.environ.get("HEADWATER_SEED", "0")) or int.from_bytes(os.urandom(4), "big")


class Died(BaseException):
    """What a process that is no more sees of its calls."""


@dataclass(frozen=True, slots=True)
class Widow:
    """What a worker that died before its ``call``-th call has left behind, and the clock of those who live."""

    call: int
    method: str
    backend: MemoryBackend
    clock: FakeClock

    def open(self) -> Store:
        return open_on(self.backend, self.clock)


def open_on(backend: Backend | FaultyBackend, clock: Clock) -> Store:
    """A process of its own."""
    return Store(backend, url="memory://", settings=SETTINGS, clock=clock)  # type: ignore[arg-type]  # faulty is any backend


def deaths(prepared: Backend, start: int, work: Callable[[Store], object], *, step: int = 1) -> Iterator[Widow]:
    """The work on a copy of the prepared rows for every ``step``-th call that it makes, dead from that call on.

    A seed says with which it begins, another one each time; HEADWATER_SOAK=1 takes every call.
    """
    for call in itertools.count(1, 1) if IS_SOAK else itertools.count(1 + SEED % step, step):
        widow = _death(prepared, start, work, call)
        if widow is None:
            return
        yield widow


def _death(prepared: Backend, start: int, work: Callable[[Store], object], call: int) -> Widow | None:
    backend, clock = copied(prepared), FakeClock(start)
    faulty = FaultyBackend(backend)
    faulty.fail("*", at=call, times=1_000_000_000, fault=Died())
    try:
        work(open_on(faulty, clock))
    except Died:
        return Widow(call, faulty.calls[call - 1], backend, clock)
    return None


def attempt(store: Store, task_id: ObjectId, watch: LeaseWatch, *, kinds: Mapping[str, TaskBody] = TASK_BODIES) -> None:
    """Do the task as a worker does, if it can be claimed."""
    execute_task(store, task_id, watch, owner="a worker", is_stopping=lambda: False, kinds=kinds)


def succeed(store: Store, clock: FakeClock, task_id: ObjectId, *, kinds: Mapping[str, TaskBody] = TASK_BODIES) -> Task:
    """The task after another worker has seen it stand still for a lease, and done it."""
    tasks = TaskQueue(store)
    watch = LeaseWatch(clock, store.settings.task_lease_seconds)
    tasks.find_claimable(watch)
    clock.advance(store.settings.task_lease_seconds + 1)
    attempt(store, task_id, watch, kinds=kinds)
    return tasks.read_task(task_id).value


def copied(backend: Backend) -> MemoryBackend:
    """The same rows in a memory of their own."""
    copy = MemoryBackend()
    for reference in backend.scan_references(ScanSplit(), None, 100_000):
        copy.create_references([row for row in backend.read_references(reference.realm, [reference.name]) if row is not None])
    for key in backend.scan_objects(ScanSplit(), None, 100_000):
        copy.write_objects([row for row in backend.read_objects(key.realm, [(key.id, key.part)]) if row is not None])
    return copy
