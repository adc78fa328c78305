"""However a body ends, its task tells."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from billiard.exceptions import SoftTimeLimitExceeded
from structlog.testing import capture_logs

from fake_clock import FakeClock
from faulty_backend import FaultyBackend
from headwater.errors import ConflictError, FencedError, NotFoundError, RefusedError, UnavailableError
from headwater.settings import Settings
from headwater.store import ObjectId, Store, open_store
from headwater.store.backends.memory import MemoryBackend
from headwater.tasks import AttemptEnd, LeaseExpiry, Task, TaskLease, TaskNotReadyError, TaskQueue, TaskState
from headwater_workers.task_executor import execute_task

Work = Callable[[TaskLease], dict[str, Any]]
Run = Callable[[Work], Task]


@pytest.fixture
def run(store: Store, tasks: TaskQueue, waiting: ObjectId) -> Run:
    """Run the waiting task with this work as its body; returns the task as it is afterwards."""

    def run(work: Work, *, is_stopping: Callable[[], bool] = lambda: False) -> Task:
        def body(store: Store, claim: TaskLease) -> dict[str, Any]:
            return work(claim)

        with capture_logs():
            execute_task(store, waiting, LeaseExpiry(None), owner="here", is_stopping=is_stopping, kinds={"gc": body})
        return tasks.read_task(waiting).value

    return run


def raising(error: BaseException) -> Work:
    def work(claim: TaskLease) -> dict[str, Any]:
        raise error

    return work


def checking(claim: TaskLease) -> dict[str, Any]:
    """Works in steps, and checks before each."""
    for _ in range(500):
        claim.check_stop()
        time.sleep(0.01)
    return {}


def test_value_that_a_body_returns_is_the_outcome(run: Run) -> None:
    task = run(lambda claim: {"deleted": 7})

    assert (task.state, task.outcome) == (TaskState.SUCCEEDED, {"deleted": 7})


@pytest.mark.parametrize("error", [RefusedError("never"), NotFoundError("gone")])
def test_work_that_can_never_succeed_is_not_tried_again(run: Run, error: Exception) -> None:
    task = run(raising(error))

    assert (task.state, task.error) == (TaskState.FAILED, str(error))


@pytest.mark.parametrize(
    "error", [UnavailableError("away"), ConflictError("others"), ValueError("a bug"), SoftTimeLimitExceeded()]
)
def test_work_that_may_succeed_later_is_tried_again(run: Run, error: Exception) -> None:
    task = run(raising(error))

    assert (task.state, task.failures) == (TaskState.WAITING, 1)


@pytest.mark.parametrize(("is_expected", "level"), [(True, "info"), (False, "warning")])
def test_task_put_off_warns_of_what_is_unusual(store: Store, waiting: ObjectId, is_expected: bool, level: str) -> None:
    def body(store: Store, claim: TaskLease) -> dict[str, Any]:
        raise TaskNotReadyError("not now", is_expected=is_expected)

    with capture_logs() as logs:
        execute_task(store, waiting, LeaseExpiry(None), owner="here", is_stopping=lambda: False, kinds={"gc": body})

    assert [log["log_level"] for log in logs if log["event"] == "task put off"] == [level]


def test_time_limit_is_named(run: Run) -> None:
    assert run(raising(SoftTimeLimitExceeded())).error == "it ran longer than the time limit of 6h"


def test_work_over_its_time_limit_fails_at_its_next_check(settings: Settings) -> None:
    hasty = replace(settings, task_time_limit_seconds=0.001)
    with open_store("memory://", settings=hasty) as other, capture_logs():
        task_id = TaskQueue(other).submit_task("gc", realm="acme").id
        execute_task(
            other,
            task_id,
            LeaseExpiry(None),
            owner="here",
            is_stopping=lambda: False,
            kinds={"gc": lambda store, claim: checking(claim)},
        )
        task = TaskQueue(other).read_task(task_id).value

    assert (task.state, task.failures) == (TaskState.WAITING, 1)
    assert task.error == "it ran longer than the time limit of 1ms"


def test_outcome_that_is_none_fails_the_task_with_a_sentence(run: Run) -> None:
    task = run(lambda claim: {"big": "x" * 70_000})

    assert task.state is TaskState.FAILED
    assert "give counts, names and ids, no payloads" in task.error


def test_work_with_an_untold_end_is_no_failure(settings: Settings) -> None:
    faults = FaultyBackend(MemoryBackend())
    store = Store(faults, url="memory://", settings=settings, clock=FakeClock())  # type: ignore[arg-type]  # it is any backend
    task_id = TaskQueue(store).submit_task("gc", realm="acme").id

    def work(store: Store, claim: TaskLease) -> dict[str, Any]:
        faults.fail("update_object", before=False)
        faults.fail("update_object", at=2, times=1000)
        return {"deleted": 7}

    with capture_logs() as logs:
        execute_task(store, task_id, LeaseExpiry(None), owner="here", is_stopping=lambda: False, kinds={"gc": work})
    faults.heal()

    assert TaskQueue(store).read_task(task_id).value.outcome == {"deleted": 7}
    assert [line.get("event_lost") for line in logs if line["log_level"] == "warning"] == ["task finished"]


def test_worker_that_was_taken_over_writes_nothing(run: Run, tasks: TaskQueue, waiting: ObjectId) -> None:
    def work(claim: TaskLease) -> dict[str, Any]:
        tasks.claim_task(claim.id, "other", LeaseExpiry(tasks.read_task(claim.id).token))
        claim.check_stop()
        return {}

    task = run(work)

    assert (task.state, task.owner, task.attempt) == (TaskState.RUNNING, "other", 2)


def test_fenced_body_is_not_a_failed_one(run: Run) -> None:
    task = run(raising(FencedError("taken over")))

    assert (task.state, task.failures) == (TaskState.RUNNING, 0)


def test_worker_that_stops_hands_its_task_back(run: Callable[..., Task]) -> None:
    task = run(checking, is_stopping=lambda: True)

    assert (task.state, task.failures) == (TaskState.WAITING, 0)
    assert task.attempts[-1].outcome is AttemptEnd.HANDED_BACK
    assert task.attempts[-1].error == "its worker stops"


def test_cancelled_task_ends_at_its_next_check(run: Run, tasks: TaskQueue) -> None:
    def work(claim: TaskLease) -> dict[str, Any]:
        tasks.cancel_task(claim.id)
        claim.heartbeat()
        return checking(claim)

    assert run(work).state is TaskState.CANCELLED


def test_task_that_is_done_already_is_not_done_again(run: Run) -> None:
    run(lambda claim: {"deleted": 7})

    assert run(raising(AssertionError("done twice"))).outcome == {"deleted": 7}


def test_kind_that_this_worker_does_not_know_is_left_alone(store: Store, tasks: TaskQueue) -> None:
    unknown = tasks.submit_task("brew", realm="acme").id
    with capture_logs() as logs:
        execute_task(store, unknown, LeaseExpiry(None), owner="here", is_stopping=lambda: False)

    assert tasks.read_task(unknown).value.state is TaskState.WAITING
    assert [line["kind"] for line in logs] == ["brew"]
