"""How an attempt ends, and what comes after it."""

from __future__ import annotations

import pytest

from fake_clock import FakeClock
from headwater.errors import FencedError, RefusedError
from headwater.store import ObjectId, Store
from headwater.tasks import (
    AttemptEnd,
    FollowUpTask,
    LeaseVerdict,
    LeaseWatch,
    TaskLease,
    TaskProgress,
    TaskQueue,
    TaskState,
    TaskStoppedError,
)


def test_heartbeat_shows_the_progress_that_was_reported(tasks: TaskQueue, claim: TaskLease) -> None:
    claim.report_progress(3, 10, "rows")

    assert claim.heartbeat() is LeaseVerdict.GO_ON
    task = tasks.read_task(claim.id).value
    assert (task.beat, task.progress) == (1, TaskProgress(done=3, total=10, unit="rows"))


def test_work_that_missed_heartbeats_beats_at_its_next_check(tasks: TaskQueue, claim: TaskLease, clock: FakeClock) -> None:
    claim.check_stop()
    assert tasks.read_task(claim.id).value.beat == 0
    clock.advance(30)
    claim.check_stop()

    assert tasks.read_task(claim.id).value.beat == 1


def test_finished_task_keeps_its_outcome(tasks: TaskQueue, claim: TaskLease, watch: LeaseWatch) -> None:
    claim.finish_task({"deleted": 7})

    task = tasks.read_task(claim.id).value
    assert (task.state, task.outcome) == (TaskState.SUCCEEDED, {"deleted": 7})
    assert task.attempts[-1].outcome is AttemptEnd.SUCCEEDED
    assert tasks.find_claimable(watch) == []


def test_finished_task_shows_the_progress_that_was_reported_last(tasks: TaskQueue, claim: TaskLease) -> None:
    claim.report_progress(7500, 8000, "tables")
    claim.heartbeat()
    claim.report_progress(8000, 8000, "tables")
    claim.finish_task({})

    assert tasks.read_task(claim.id).value.progress == TaskProgress(done=8000, total=8000, unit="tables")


def test_task_is_finished_once(claim: TaskLease) -> None:
    claim.finish_task({})

    with pytest.raises(FencedError, match="SUCCEEDED"):
        claim.finish_task({})


@pytest.mark.parametrize("outcome", [{"big": "x" * 70_000}, {"when": object()}])
def test_outcome_that_is_none_leaves_the_task_running(tasks: TaskQueue, claim: TaskLease, outcome: dict[str, object]) -> None:
    with pytest.raises(RefusedError, match="outcome of task"):
        claim.finish_task(outcome)
    assert tasks.read_task(claim.id).value.state is TaskState.RUNNING


def test_follow_up_is_submitted_when_its_task_succeeds(tasks: TaskQueue, claim: TaskLease, clock: FakeClock) -> None:
    claim.finish_task({}, FollowUpTask(kind="gc", realm="acme", subject="rest", delay_seconds=60))

    follow_up = tasks.active_tasks("gc", "acme", "rest")
    assert follow_up is not None
    assert follow_up.due == clock.now() + 60_000_000


def test_task_may_follow_itself(tasks: TaskQueue, claim: TaskLease) -> None:
    claim.finish_task({}, FollowUpTask(kind="gc", realm="acme"))

    follow_up = tasks.find_active("gc", "acme")
    assert follow_up is not None
    assert follow_up.id != claim.id


def test_follow_up_that_is_active_already_is_not_doubled(tasks: TaskQueue, claim: TaskLease) -> None:
    there = tasks.submit_task("gc", realm="acme", subject="rest").id

    claim.finish_task({}, FollowUpTask(kind="gc", realm="acme", subject="rest"))

    assert [seen.id for seen in tasks.list_tasks(state=TaskState.WAITING)] == [there]


def test_failed_task_waits_longer_each_time(tasks: TaskQueue, waiting: ObjectId, clock: FakeClock) -> None:
    waits = []
    for _ in range(4):
        claim = tasks.claim_task(waiting, "worker-1")
        assert claim is not None
        claim.fail_task("no luck")
        waits.append((tasks.read_task(waiting).value.due - clock.now()) / 1e6)
        clock.advance(waits[-1])

    assert waits == [10, 20, 40, 80]


def test_wait_has_a_limit(store: Store, clock: FakeClock) -> None:
    tasks = TaskQueue(store, chance=lambda: 1.0)
    task_id = tasks.submit_task("gc", realm="acme", max_attempts=50).id
    for _ in range(49):
        claim = tasks.claim_task(task_id, "worker-1")
        assert claim is not None
        claim.fail_task("no luck")
        wait = (tasks.read_task(task_id).value.due - clock.now()) / 1e6
        clock.advance(wait)

    assert wait == pytest.approx(600 * 1.2)


def test_tasks_that_fail_together_do_not_return_together(store: Store) -> None:
    tasks = TaskQueue(store)
    dues = set()
    for number in range(5):
        claim = tasks.claim_task(tasks.submit_task("gc", realm=f"realm-{number}").id, "worker-1")
        assert claim is not None
        claim.fail_task("the database is away")
        dues.add(tasks.read_task(claim.id).value.due)

    assert len(dues) == 5


def test_task_is_dead_lettered_after_its_attempts(tasks: TaskQueue, waiting: ObjectId, clock: FakeClock) -> None:
    for _ in range(5):
        claim = tasks.claim_task(waiting, "worker-1")
        assert claim is not None
        claim.fail_task("no luck")
        clock.advance(1000)

    task = tasks.read_task(waiting).value
    assert (task.state, task.failures, task.error) == (TaskState.FAILED, 5, "no luck")
    assert tasks.active_tasks("gc", "acme") is None


def test_task_without_hope_is_dead_lettered_at_once(tasks: TaskQueue, claim: TaskLease) -> None:
    claim.fail_task("the catalog is gone", retry=False)

    assert tasks.read_task(claim.id).value.state is TaskState.FAILED


def test_handing_back_is_no_failure_and_leaves_the_task_due(tasks: TaskQueue, claim: TaskLease) -> None:
    claim.hand_back("the worker stops")

    task = tasks.read_task(claim.id).value
    assert (task.state, task.failures, task.owner) == (TaskState.WAITING, 0, "")
    assert task.attempts[-1].outcome is AttemptEnd.HANDED_BACK
    assert tasks.claim_task(claim.id, "worker-2") is not None


def test_claim_asked_to_stop_says_so_at_the_next_check(claim: TaskLease) -> None:
    claim.check_stop()
    claim.request_stop("the worker stops")

    with pytest.raises(TaskStoppedError, match="the worker stops"):
        claim.check_stop()
