"""Workers that are stopped for longer than their lease, and work that is longer than a lease."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from deaths import IS_SOAK, SEED, SETTINGS, attempt, copied, open_on, succeed
from grounds_of_work import WORKS

from fake_clock import FakeClock
from faulty_backend import FaultyBackend
from headwater.errors import FencedError, HeadwaterError
from headwater.jobs.task_runs import list_runs
from headwater.store import Backend, ObjectId, Store
from headwater.store.backends.memory import MemoryBackend
from headwater.tasks import LeaseWatch, TaskQueue, TaskState
from headwater_workers.task_executor import TASK_BODIES

pytestmark = pytest.mark.long

STEP = 1 if IS_SOAK else 7


class SlowBackend:
    """A database of which each call takes so many seconds of a clock; others look at the tasks in between.

    The work's next call waits for a heartbeat that is overdue, as the thread that sends it lives by real time.
    """

    def __init__(self, backend: Backend, clock: FakeClock, *, seconds: float, meanwhile: Callable[[], None]) -> None:
        self.backend, self.capabilities = backend, backend.capabilities
        self._clock, self._seconds, self._meanwhile = clock, seconds, meanwhile
        self._beaten_at = clock.monotonic()

    def __getattr__(self, name: str) -> Any:
        call = getattr(self.backend, name)
        if name.endswith("_fork"):  # of a later test, maybe: the store is not closed, and the others wait for the fork
            return call
        return partial(self._call, call)

    def _call(self, call: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        if threading.current_thread().name == "heartbeat":
            self._beaten_at = self._clock.monotonic()
            return call(*arguments, **named)
        self._await_heartbeat()
        self._clock.advance(self._seconds)
        self._meanwhile()
        return call(*arguments, **named)

    def _await_heartbeat(self) -> None:
        """At most three real seconds for each heartbeat: none comes while the work itself sends one, or ends the attempt."""
        due = self._beaten_at + 1.4 * SETTINGS.task_heartbeat_seconds  # before the work sends one itself
        for _ in range(300):
            if self._clock.monotonic() < due or self._beaten_at >= due or not is_beating():
                return
            time.sleep(0.01)
        self._beaten_at = self._clock.monotonic()


def is_beating() -> bool:
    return any(thread.name == "heartbeat" for thread in threading.enumerate())


@pytest.mark.parametrize("name", ["gc", "purge", "load"])  # an export on a slow database does not fit into graces of a minute
def test_work_longer_than_its_lease_is_not_taken_over(name: str, tmp_path: Path) -> None:
    backend, clock = MemoryBackend(), FakeClock()
    task_id = WORKS[name].submit(open_on(backend, clock), clock, tmp_path)
    other = open_on(backend, clock)
    watch, taken, started = LeaseWatch(clock, other.settings.task_lease_seconds), list[ObjectId](), clock.now()

    def look() -> None:
        taken.extend(found.id for found in TaskQueue(other).find_claimable(watch) if found.token is not None)

    slow = open_on(SlowBackend(backend, clock, seconds=2, meanwhile=look), clock)  # type: ignore[arg-type]  # it is any backend
    attempt(slow, task_id, LeaseWatch(clock, other.settings.task_lease_seconds))

    task = TaskQueue(other).read_task(task_id).value
    assert (task.state, len(task.attempts), taken) == (TaskState.SUCCEEDED, 1, [])
    assert clock.now() - started > 1.5 * other.settings.task_lease_seconds * 1_000_000
    assert WORKS[name].faults(other, clock, tmp_path) == []


@pytest.mark.parametrize("name", ["gc", "purge", "load"])
def test_worker_after_its_lease_changes_nothing_of_the_next(name: str, tmp_path: Path) -> None:
    """It is stopped before one of its calls in turn, and that one call it still makes when it wakes."""
    prepared, clock = MemoryBackend(), FakeClock()
    task_id = WORKS[name].submit(open_on(prepared, clock), clock, tmp_path)
    stopped_at, met = 1 + SEED % STEP, 0
    while (overtaken := overtake(prepared, clock.now(), task_id, stopped_at)) is not None:
        store, its_clock, told = overtaken
        after = [TaskQueue(store).read_task(task_id).value, list_runs(store)]
        assert after == told, stopped_at
        assert (after[0].state, after[0].error) == (TaskState.SUCCEEDED, ""), stopped_at
        assert WORKS[name].faults(store, its_clock, tmp_path) == [], stopped_at
        stopped_at, met = stopped_at + STEP, met + 1
    assert met > 3


def overtake(
    prepared: MemoryBackend, start: int, task_id: ObjectId, stopped_at: int
) -> tuple[Store, FakeClock, list[Any]] | None:
    """A worker that sleeps before one of its calls while another one ends the task; what that one left: its task and runs.

    returns       None when the work has no such call
    """
    backend, clock, told = copied(prepared), FakeClock(start), list[Any]()
    store = open_on(backend, clock)

    def others() -> None:
        told.extend([succeed(store, clock, task_id), list_runs(store)])

    faulty = FaultyBackend(backend)
    asleep = open_on(faulty, clock)
    claim = TaskQueue(asleep).claim_task(task_id, "one that is stopped")
    assert claim is not None
    faulty.intervene("*", lambda: in_a_thread(others), at=stopped_at)  # it may sleep within a commit, where none can begin
    try:
        claim.finish_task(TASK_BODIES[claim.task.kind](asleep, claim))
    except FencedError:
        assert told
    except HeadwaterError as fault:  # beaten, for example; its worker would write that into the task
        with pytest.raises(FencedError):
            claim.fail_task(str(fault))
    return (store, clock, told) if told else None


def in_a_thread(work: Callable[[], None]) -> None:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
