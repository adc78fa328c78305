"""What a person does to a task: cancel, retry, run now, look at the history."""

from __future__ import annotations

import pytest

from fake_clock import FakeClock
from headwater.errors import ConflictError, RefusedError, UnknownOutcomeError
from headwater.store import ObjectId
from headwater.tasks import LeaseVerdict, LeaseWatch, Task, TaskLease, TaskQueue, TaskState, TaskStoppedError


@pytest.fixture
def dead(tasks: TaskQueue, claim: TaskLease) -> ObjectId:
    """A dead-lettered task."""
    claim.fail_task("no luck", retry=False)
    return claim.id


def test_waiting_task_is_cancelled_at_once(tasks: TaskQueue, waiting: ObjectId) -> None:
    assert tasks.cancel_task(waiting).state is TaskState.CANCELLED
    assert tasks.claim_task(waiting, "worker-1") is None
    assert tasks.active_tasks("gc", "acme") is None


def test_cancelling_twice_is_cancelling(tasks: TaskQueue, waiting: ObjectId) -> None:
    tasks.cancel_task(waiting)

    assert tasks.cancel_task(waiting).state is TaskState.CANCELLED


def test_running_task_is_cancelled_when_its_worker_hands_it_back(tasks: TaskQueue, claim: TaskLease) -> None:
    assert tasks.cancel_task(claim.id).state is TaskState.RUNNING
    assert claim.heartbeat() is LeaseVerdict.STOP
    with pytest.raises(TaskStoppedError, match="it was cancelled"):
        claim.check_stop()

    claim.hand_back("it was cancelled")

    assert tasks.read_task(claim.id).value.state is TaskState.CANCELLED


def test_cancelled_task_that_was_done_meanwhile_is_done(tasks: TaskQueue, claim: TaskLease) -> None:
    tasks.cancel_task(claim.id)

    claim.finish_task({"deleted": 7})

    assert tasks.read_task(claim.id).value.state is TaskState.SUCCEEDED


def test_finished_task_is_not_cancelled(tasks: TaskQueue, claim: TaskLease) -> None:
    claim.finish_task({})

    with pytest.raises(RefusedError, match=r"gc of realm 'acme'\) is SUCCEEDED: only a waiting or running task"):
        tasks.cancel_task(claim.id)


def test_retried_task_waits_again_with_its_history(
    tasks: TaskQueue, dead: ObjectId, clock: FakeClock, watch: LeaseWatch
) -> None:
    clock.advance(100)

    task = tasks.retry_task(dead)

    assert (task.state, task.failures, task.attempt, task.due) == (TaskState.WAITING, 0, 1, clock.now())
    assert task.error == "no luck"
    assert [found.id for found in tasks.find_claimable(watch)] == [dead]
    assert not tasks.submit_task("gc", realm="acme").created


def test_retried_task_can_be_done_and_retried_no_more(tasks: TaskQueue, dead: ObjectId) -> None:
    tasks.retry_task(dead)
    claim = tasks.claim_task(dead, "worker-2")
    assert claim is not None
    claim.finish_task({})

    with pytest.raises(RefusedError, match="only a dead-lettered or cancelled task"):
        tasks.retry_task(dead)
    assert [seen.id for seen in tasks.list_tasks()] == [dead]


def test_retried_task_can_be_cancelled_and_retried_again(tasks: TaskQueue, dead: ObjectId) -> None:
    for _ in range(3):
        assert tasks.retry_task(dead).state is TaskState.WAITING
        assert tasks.cancel_task(dead).state is TaskState.CANCELLED

    assert [seen.value.state for seen in tasks.list_tasks()] == [TaskState.CANCELLED]


def test_task_that_has_a_successor_is_not_retried(tasks: TaskQueue, dead: ObjectId) -> None:
    tasks.submit_task("gc", realm="acme")

    with pytest.raises(ConflictError, match="is active in its place"):
        tasks.retry_task(dead)


def test_task_of_the_future_can_be_run_now(tasks: TaskQueue, clock: FakeClock, watch: LeaseWatch) -> None:
    later = tasks.submit_task("gc", realm="acme", due=clock.now() + 3_600_000_000).id

    assert tasks.run_now(later).due == clock.now()
    assert [found.id for found in tasks.find_claimable(watch)] == [later]


def test_running_a_finished_task_now_is_refused(tasks: TaskQueue, dead: ObjectId) -> None:
    with pytest.raises(RefusedError, match="only a waiting task"):
        tasks.run_now(dead)


def test_tasks_are_listed_by_state_kind_and_realm(tasks: TaskQueue, claim: TaskLease) -> None:
    purge = tasks.submit_task("purge", realm="acme").id
    other = tasks.submit_task("gc", realm="other").id

    assert [seen.id for seen in tasks.list_tasks(state=TaskState.RUNNING)] == [claim.id]
    assert [seen.id for seen in tasks.list_tasks(kind="purge")] == [purge]
    assert [seen.id for seen in tasks.list_tasks(realm="other")] == [other]
    assert len(tasks.list_tasks(limit=2)) == 2


def test_active_tasks_are_listed_first_then_the_newest(tasks: TaskQueue, clock: FakeClock) -> None:
    ended = []
    for realm in ("a", "b"):
        ended.append(tasks.submit_task("gc", realm=realm).id)
        tasks.cancel_task(ended[-1])
        clock.advance(1)
    active = tasks.submit_task("gc", realm="c").id

    assert [seen.id for seen in tasks.list_tasks()] == [active, *reversed(ended)]


def test_finished_tasks_are_forgotten_after_their_retention(tasks: TaskQueue, dead: ObjectId, clock: FakeClock) -> None:
    clock.advance(89 * 86_400)
    assert tasks.forget_finished() == 0
    clock.advance(2 * 86_400)

    assert tasks.forget_finished() == 1
    assert tasks.list_tasks() == []


def test_retry_with_arguments_beside_an_active_task_changes_nothing(tasks: TaskQueue, dead: ObjectId) -> None:
    tasks.submit_task("gc", realm="acme")
    before = tasks.read_task(dead)
    with pytest.raises(ConflictError, match="is active in its place"):
        tasks.retry_task(dead, arguments=lambda task: {"dry": True})

    assert tasks.read_task(dead) == before


def test_retry_with_arguments_of_a_forgotten_task_changes_nothing(tasks: TaskQueue, dead: ObjectId, clock: FakeClock) -> None:
    before = tasks.read_task(dead)
    clock.advance(100 * 86400)
    assert tasks.forget_finished() == 1
    with pytest.raises(RefusedError, match="no longer in the history"):
        tasks.retry_task(dead, arguments=lambda task: {"dry": True})

    assert tasks.read_task(dead) == before


def test_retry_with_arguments_that_loses_its_place_is_unclear(tasks: TaskQueue, dead: ObjectId) -> None:
    def arguments(task: Task) -> dict[str, bool]:
        tasks.submit_task("gc", realm="acme")  # as another process may at this moment
        return {"dry": True}

    with pytest.raises(UnknownOutcomeError, match=r"has other arguments, and may not be tried again.*is active in its place"):
        tasks.retry_task(dead, arguments=arguments)


def test_retry_with_arguments_waits_with_them(tasks: TaskQueue, dead: ObjectId) -> None:
    task = tasks.retry_task(dead, arguments=lambda task: {"dry": True})

    assert (task.state, task.arguments) == (TaskState.WAITING, {"dry": True})
