"""Tasks that kill whoever takes them, and workers that are killed for real."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from deaths import SETTINGS, Died, attempt, open_on, succeed
from grounds_of_work import WORKS

from backend_fixtures import STORES
from fake_clock import FakeClock
from faulty_backend import FaultyBackend
from headwater.store import ObjectId, Store, open_backend, open_store
from headwater.store.backends.memory import MemoryBackend
from headwater.store.urls import parse_url
from headwater.tasks import AttemptEnd, LeaseWatch, TaskQueue, TaskState

pytestmark = pytest.mark.long


def test_task_that_kills_its_workers_is_given_up_with_its_history() -> None:
    """Each attempt dies without a word; the one that finds the last of them dead gives the task up."""
    backend, clock = MemoryBackend(), FakeClock()
    store = open_on(backend, clock)
    tasks = TaskQueue(store)
    task_id = tasks.submit_task("poison", realm="acme").id
    watch = LeaseWatch(clock, store.settings.task_lease_seconds)

    def kill(store: Store, claim: object) -> dict[str, Any]:
        raise Died

    for _ in range(store.settings.task_attempts):
        with pytest.raises(Died):
            attempt(store, task_id, watch, kinds={"poison": kill})
        tasks.find_claimable(watch)
        clock.advance(store.settings.task_lease_seconds + 1)
    attempt(store, task_id, watch, kinds={"poison": kill})

    task = tasks.read_task(task_id).value
    assert task.state is TaskState.FAILED
    assert [one.outcome for one in task.attempts] == [AttemptEnd.LOST] * store.settings.task_attempts
    assert tasks.find_claimable(watch) == []


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
@pytest.mark.parametrize("name", WORKS)
def test_worker_killed_for_real_in_its_middle_is_replaced(
    name: str, database: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    url, clock = STORES[database](request), FakeClock()
    (tmp_path / "archives").mkdir()
    with open_store(url, settings=SETTINGS, clock=clock) as store:
        task_id = WORKS[name].submit(store, clock, tmp_path / "archives")
    calls = count_calls(name, tmp_path)
    kill_in_a_child(url, clock.now(), task_id, calls * 2 // 3)

    with open_store(url, settings=SETTINGS, clock=clock) as store:
        left = TaskQueue(store).read_task(task_id).value
        task = succeed(store, clock, task_id)
        assert (left.state, task.state) == (TaskState.RUNNING, TaskState.SUCCEEDED)
        assert WORKS[name].faults(store, clock, tmp_path / "archives") == []


def count_calls(name: str, folder: Path) -> int:
    """How many calls the work makes on a database in memory."""
    (folder / "counted").mkdir()
    backend, clock = MemoryBackend(), FakeClock()
    task_id = WORKS[name].submit(open_on(backend, clock), clock, folder / "counted")
    faulty = FaultyBackend(backend)
    attempt(open_on(faulty, clock), task_id, LeaseWatch(clock, 60))
    return len(faulty.calls)


def kill_in_a_child(url: str, now: int, task_id: ObjectId, at: int) -> None:
    """Another process takes the task, and gets SIGKILL at its ``at``-th call."""

    pid = os.fork()
    if not pid:
        try:
            faulty = FaultyBackend(open_backend(parse_url(url)))
            faulty.intervene("*", lambda: os.kill(os.getpid(), signal.SIGKILL), at=at)
            attempt(open_on(faulty, FakeClock(now)), task_id, LeaseWatch(FakeClock(), 60))
        finally:
            os._exit(0)
    _, status = os.waitpid(pid, 0)
    assert os.WIFSIGNALED(status), "it ended before it could be killed"
