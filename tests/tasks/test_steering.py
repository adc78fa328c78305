"""What a person does to a task: cancel, retry, run now, look at the history."""

from __future__ import annotations

import pytest

from fake_clock import FakeClock
from headwater.errors import ConflictError, RefusedError, UnknownOutcomeError
from headwater.store import ObjectId
from headwater.tasks import Claim, LeaseWatch, StoppedError, Task, Tasks, TaskState, Verdict


@pytest.fixture
def dead(tasks: Tasks, claim: Claim) -> ObjectId:
    """A dead-lettered task."""
    claim.fail("no luck", retry=False)
    return claim.id


def test_a_waiting_task_is_cancelled_at_once(tasks: Tasks, waiting: ObjectId) -> None:
    assert tasks.cancel(waiting).state is TaskState.CANCELLED
    assert tasks.claim(waiting, "worker-1") is None
    assert tasks.active("gc", "acme") is None


def test_cancelling_twice_is_cancelling(tasks: Tasks, waiting: ObjectId) -> None:
    tasks.cancel(waiting)

    assert tasks.cancel(waiting).state is TaskState.CANCELLED


def test_a_running_task_is_cancelled_when_its_worker_hands_it_back(tasks: Tasks, claim: Claim) -> None:
    assert tasks.cancel(claim.id).state is TaskState.RUNNING
    assert claim.heartbeat() is Verdict.STOP
    with pytest.raises(StoppedError, match="it was cancelled"):
        claim.check()

    claim.hand_back("it was cancelled")

    assert tasks.read(claim.id).value.state is TaskState.CANCELLED


def test_a_cancelled_task_that_was_done_meanwhile_is_done(tasks: Tasks, claim: Claim) -> None:
    tasks.cancel(claim.id)

    claim.finish({"deleted": 7})

    assert tasks.read(claim.id).value.state is TaskState.SUCCEEDED


def test_a_finished_task_is_not_cancelled(tasks: Tasks, claim: Claim) -> None:
    claim.finish({})

    with pytest.raises(RefusedError, match=r"gc of realm 'acme'\) is SUCCEEDED: only a waiting or running task"):
        tasks.cancel(claim.id)


def test_a_retried_task_waits_again_with_its_history(tasks: Tasks, dead: ObjectId, clock: FakeClock, watch: LeaseWatch) -> None:
    clock.advance(100)

    task = tasks.retry(dead)

    assert (task.state, task.failures, task.attempt, task.due) == (TaskState.WAITING, 0, 1, clock.now())
    assert task.error == "no luck"
    assert [found.id for found in tasks.look(watch)] == [dead]
    assert not tasks.submit("gc", realm="acme").created


def test_a_retried_task_can_be_done_and_retried_no_more(tasks: Tasks, dead: ObjectId) -> None:
    tasks.retry(dead)
    claim = tasks.claim(dead, "worker-2")
    assert claim is not None
    claim.finish({})

    with pytest.raises(RefusedError, match="only a dead-lettered or cancelled task"):
        tasks.retry(dead)
    assert [seen.id for seen in tasks.list()] == [dead]


def test_a_retried_task_can_be_cancelled_and_retried_again(tasks: Tasks, dead: ObjectId) -> None:
    for _ in range(3):
        assert tasks.retry(dead).state is TaskState.WAITING
        assert tasks.cancel(dead).state is TaskState.CANCELLED

    assert [seen.value.state for seen in tasks.list()] == [TaskState.CANCELLED]


def test_a_task_that_has_a_successor_is_not_retried(tasks: Tasks, dead: ObjectId) -> None:
    tasks.submit("gc", realm="acme")

    with pytest.raises(ConflictError, match="is active in its place"):
        tasks.retry(dead)


def test_a_task_of_the_future_can_be_run_now(tasks: Tasks, clock: FakeClock, watch: LeaseWatch) -> None:
    later = tasks.submit("gc", realm="acme", due=clock.now() + 3_600_000_000).id

    assert tasks.run_now(later).due == clock.now()
    assert [found.id for found in tasks.look(watch)] == [later]


def test_running_a_finished_task_now_is_refused(tasks: Tasks, dead: ObjectId) -> None:
    with pytest.raises(RefusedError, match="only a waiting task"):
        tasks.run_now(dead)


def test_tasks_are_listed_by_state_kind_and_realm(tasks: Tasks, claim: Claim) -> None:
    purge = tasks.submit("purge", realm="acme").id
    other = tasks.submit("gc", realm="other").id

    assert [seen.id for seen in tasks.list(state=TaskState.RUNNING)] == [claim.id]
    assert [seen.id for seen in tasks.list(kind="purge")] == [purge]
    assert [seen.id for seen in tasks.list(realm="other")] == [other]
    assert len(tasks.list(limit=2)) == 2


def test_active_tasks_are_listed_first_then_the_newest(tasks: Tasks, clock: FakeClock) -> None:
    ended = []
    for realm in ("a", "b"):
        ended.append(tasks.submit("gc", realm=realm).id)
        tasks.cancel(ended[-1])
        clock.advance(1)
    active = tasks.submit("gc", realm="c").id

    assert [seen.id for seen in tasks.list()] == [active, *reversed(ended)]


def test_finished_tasks_are_forgotten_after_their_retention(tasks: Tasks, dead: ObjectId, clock: FakeClock) -> None:
    clock.advance(89 * 86_400)
    assert tasks.forget_finished() == 0
    clock.advance(2 * 86_400)

    assert tasks.forget_finished() == 1
    assert tasks.list() == []


def test_retry_with_arguments_beside_an_active_task_changes_nothing(tasks: Tasks, dead: ObjectId) -> None:
    tasks.submit("gc", realm="acme")
    before = tasks.read(dead)
    with pytest.raises(ConflictError, match="is active in its place"):
        tasks.retry(dead, arguments=lambda task: {"dry": True})

    assert tasks.read(dead) == before


def test_retry_with_arguments_of_a_forgotten_task_changes_nothing(tasks: Tasks, dead: ObjectId, clock: FakeClock) -> None:
    before = tasks.read(dead)
    clock.advance(100 * 86400)
    assert tasks.forget_finished() == 1
    with pytest.raises(RefusedError, match="no longer in the history"):
        tasks.retry(dead, arguments=lambda task: {"dry": True})

    assert tasks.read(dead) == before


def test_retry_with_arguments_that_loses_its_place_is_unclear(tasks: Tasks, dead: ObjectId) -> None:
    def arguments(task: Task) -> dict[str, bool]:
        tasks.submit("gc", realm="acme")  # as another process may at this moment
        return {"dry": True}

    with pytest.raises(UnknownOutcomeError, match=r"has other arguments, and may not be tried again.*is active in its place"):
        tasks.retry(dead, arguments=arguments)


def test_retry_with_arguments_waits_with_them(tasks: Tasks, dead: ObjectId) -> None:
    task = tasks.retry(dead, arguments=lambda task: {"dry": True})

    assert (task.state, task.arguments) == (TaskState.WAITING, {"dry": True})
