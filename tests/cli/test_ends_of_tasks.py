"""How the command line tells of work that is done, when its task could not be told for certain."""

from __future__ import annotations

from typing import Any

import pytest

from fake_clock import FakeClock
from faulty_backend import FaultyBackend
from headwater import Settings, Store
from headwater.errors import RefusedError, UnknownOutcomeError
from headwater.jobs.local_tasks import TaskAudience, run_task_here
from headwater.store.backends.memory import MemoryBackend
from headwater.tasks import TaskLease, TaskQueue

AUDIENCE = TaskAudience("command line", lambda sentence: None)


def test_end_of_which_nobody_knows_is_told_as_that(settings: Settings, clock: FakeClock) -> None:
    faults = FaultyBackend(MemoryBackend())
    store = Store(faults, url="memory://", settings=settings, clock=clock)  # type: ignore[arg-type]  # it is any backend
    task_id = TaskQueue(store).submit_task("gc", realm="acme").id

    def work(claim: TaskLease) -> dict[str, Any]:
        faults.fail("update_object", before=False)
        faults.fail("update_object", at=2, times=1000)
        return {"deleted": 7}

    with pytest.raises(UnknownOutcomeError):
        run_task_here(AUDIENCE, store, task_id, work)
    faults.heal()
    assert TaskQueue(store).read_task(task_id).value.outcome == {"deleted": 7}


def test_outcome_that_no_task_can_carry_is_its_failure(store: Store) -> None:
    task_id = TaskQueue(store).submit_task("gc", realm="acme").id
    with pytest.raises(RefusedError, match="no payloads"):
        run_task_here(AUDIENCE, store, task_id, lambda claim: {"rows": "x" * 100_000})

    assert TaskQueue(store).read_task(task_id).value.state == "FAILED"
