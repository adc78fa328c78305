"""A task that waits for something that is not there yet: no failure, and one line in its story however long it takes."""

from __future__ import annotations

from fake_clock import FakeClock
from headwater.store import ObjectId
from headwater.tasks import AttemptEnd, LeaseWatch, TaskLease, TaskQueue, TaskState

DAY = 86400


def put_off(tasks: TaskQueue, task_id: ObjectId, reason: str) -> None:
    claim = tasks.claim_task(task_id, "worker-1")
    assert claim is not None
    claim.put_off(reason)


def test_task_put_off_is_due_later_and_has_not_failed(
    tasks: TaskQueue, claim: TaskLease, watch: LeaseWatch, clock: FakeClock
) -> None:
    claim.put_off("the realm sleeps")

    task = tasks.read_task(claim.id).value
    assert (task.state, task.failures, task.due) == (TaskState.WAITING, 0, clock.now() + 60_000_000)
    assert tasks.find_claimable(watch) == []
    clock.advance(60)
    assert [found.id for found in tasks.find_claimable(watch)] == [claim.id]


def test_task_that_waits_for_days_tells_it_in_one_line(tasks: TaskQueue, waiting: ObjectId, clock: FakeClock) -> None:
    began = clock.now()
    for _ in range(30):
        put_off(tasks, waiting, "the realm sleeps")
        clock.advance(61)

    task = tasks.read_task(waiting).value
    assert task.state is TaskState.WAITING
    [record] = task.attempts
    assert (record.outcome, record.number, record.started) == (AttemptEnd.PUT_OFF, 30, began)


def test_another_reason_is_another_line(tasks: TaskQueue, waiting: ObjectId, clock: FakeClock) -> None:
    for reason in ("the realm sleeps", "the realm sleeps", "the realm loads"):
        put_off(tasks, waiting, reason)
        clock.advance(61)

    assert [record.error for record in tasks.read_task(waiting).value.attempts] == ["the realm sleeps", "the realm loads"]


def test_cancelled_task_is_not_put_off(tasks: TaskQueue, claim: TaskLease) -> None:
    tasks.cancel_task(claim.id)
    claim.put_off("the realm sleeps")

    assert tasks.read_task(claim.id).value.state is TaskState.CANCELLED


def test_task_that_was_put_off_is_run_now_on_demand(tasks: TaskQueue, claim: TaskLease) -> None:
    claim.put_off("the realm sleeps")
    tasks.run_now(claim.id)

    assert tasks.claim_task(claim.id, "worker-2") is not None
