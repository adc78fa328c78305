"""The database took the swap and did not tell, or it did not; a process dies between two steps. Effects happen exactly once."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from faulty_backend import FaultyBackend
from headwater.errors import FencedError, UnavailableError, UnknownOutcomeError
from headwater.store import ObjectId, Store
from headwater.tasks import FollowUpTask, LeaseVerdict, LeaseWatch, TaskLease, TaskQueue, TaskState
from headwater.tasks.task import end_as_lost

LOST_ON_ITS_WAY = {"before": True, "fault": UnknownOutcomeError("lost on its way")}
ANSWER_LOST = {"before": False}
unclear = pytest.mark.parametrize("fault", [LOST_ON_ITS_WAY, ANSWER_LOST], ids=["not applied", "applied"])


@pytest.fixture
def tasks(faulty: Store) -> TaskQueue:
    return TaskQueue(faulty, chance=lambda: 0.5)


@pytest.fixture
def watch(faulty: Store) -> LeaseWatch:
    return LeaseWatch(faulty.clock, faulty.settings.task_lease_seconds)


@unclear
def test_unclear_submit_is_one_task(tasks: TaskQueue, faults: FaultyBackend, fault: dict[str, Any]) -> None:
    tasks.submit_task("gc", realm="other")
    faults.fail("swap_reference", **fault)

    submitted = tasks.submit_task("gc", realm="acme")

    assert submitted.created
    assert [seen.id for seen in tasks.list_tasks(realm="acme")] == [submitted.id]


@unclear
def test_unclear_claim_is_one_claim(tasks: TaskQueue, waiting: ObjectId, faults: FaultyBackend, fault: dict[str, Any]) -> None:
    faults.fail("update_object", **fault)

    claim = tasks.claim_task(waiting, "worker-1")

    assert claim is not None
    claim.check_stop()
    assert tasks.read_task(waiting).value.attempt == 1


def test_unclear_claim_that_another_won_is_none(tasks: TaskQueue, waiting: ObjectId, faults: FaultyBackend) -> None:
    faults.fail("update_object", **LOST_ON_ITS_WAY)
    faults.intervene("update_object", lambda: tasks.claim_task(waiting, "worker-2"), at=2)

    assert tasks.claim_task(waiting, "worker-1") is None
    assert tasks.read_task(waiting).value.owner == "worker-2"


@unclear
def test_unclear_heartbeat_beats_once(tasks: TaskQueue, claim: TaskLease, faults: FaultyBackend, fault: dict[str, Any]) -> None:
    faults.fail("update_object", **fault)

    assert claim.heartbeat() is LeaseVerdict.GO_ON
    assert tasks.read_task(claim.id).value.beat == 1


@unclear
def test_unclear_failure_counts_once(tasks: TaskQueue, claim: TaskLease, faults: FaultyBackend, fault: dict[str, Any]) -> None:
    faults.fail("update_object", **fault)

    claim.fail_task("no luck")

    task = tasks.read_task(claim.id).value
    assert (task.state, task.failures, len(task.attempts)) == (TaskState.WAITING, 1, 1)


@unclear
def test_unclear_put_off_puts_off_once(
    tasks: TaskQueue, claim: TaskLease, faults: FaultyBackend, fault: dict[str, Any]
) -> None:
    faults.fail("update_object", **fault)

    claim.put_off("the realm sleeps")

    task = tasks.read_task(claim.id).value
    assert (task.state, task.failures, len(task.attempts)) == (TaskState.WAITING, 0, 1)


def test_task_whose_entries_lag_is_listed_by_its_state(tasks: TaskQueue, claim: TaskLease, faults: FaultyBackend) -> None:
    faults.fail("swap_reference", times=1000)
    claim.fail_task("no use", retry=False)
    faults.heal()

    assert [one.id for one in tasks.list_tasks(state=TaskState.FAILED)] == [claim.id]
    assert tasks.list_tasks(state=TaskState.WAITING) == []


@unclear
def test_unclear_cancel_cancels(tasks: TaskQueue, waiting: ObjectId, faults: FaultyBackend, fault: dict[str, Any]) -> None:
    faults.fail("update_object", **fault)

    assert tasks.cancel_task(waiting).state is TaskState.CANCELLED


@unclear
@pytest.mark.parametrize("method", ["update_object", "write_objects", "swap_reference"])
def test_follow_up_survives_every_unclear_answer_once(
    tasks: TaskQueue, claim: TaskLease, watch: LeaseWatch, faults: FaultyBackend, fault: dict[str, Any], method: str
) -> None:
    faults.fail(method, **fault)

    claim.finish_task({}, FollowUpTask(kind="gc", realm="acme", subject="rest"))
    tasks.find_claimable(watch)

    assert tasks.read_task(claim.id).value.state is TaskState.SUCCEEDED
    assert len(tasks.list_tasks(kind="gc", state=TaskState.WAITING)) == 1


def test_crash_after_the_last_swap_leaves_follow_up_to_lookers(
    tasks: TaskQueue, claim: TaskLease, watch: LeaseWatch, faults: FaultyBackend
) -> None:
    faults.fail("swap_reference", times=1000)
    claim.finish_task({}, FollowUpTask(kind="gc", realm="acme", subject="rest"))
    faults.heal()
    assert tasks.active_tasks("gc", "acme", "rest") is None

    for _ in range(3):
        tasks.find_claimable(watch)

    assert [seen.value.subject for seen in tasks.list_tasks(state=TaskState.WAITING)] == ["rest"]


def test_crash_after_the_last_swap_leaves_follow_up_to_submitters(
    tasks: TaskQueue, claim: TaskLease, faults: FaultyBackend
) -> None:
    faults.fail("swap_reference", times=1000)
    claim.finish_task({}, FollowUpTask(kind="gc", realm="acme", subject="rest"))
    faults.heal()

    assert tasks.submit_task("gc", realm="acme").created
    assert not tasks.submit_task("gc", realm="acme", subject="rest").created
    assert len(tasks.list_tasks()) == 3


def test_crash_after_a_failure_leaves_its_wait_to_whoever_looks(
    tasks: TaskQueue, claim: TaskLease, watch: LeaseWatch, faults: FaultyBackend
) -> None:
    faults.fail("swap_reference", times=1000)
    claim.fail_task("no luck")
    faults.heal()

    assert tasks.find_claimable(watch) == []
    tasks.run_now(claim.id)
    assert [found.id for found in tasks.find_claimable(watch)] == [claim.id]


def test_retry_crashed_after_its_decision_is_completed_by_lookers(
    tasks: TaskQueue, claim: TaskLease, watch: LeaseWatch, faults: FaultyBackend
) -> None:
    claim.fail_task("no luck", retry=False)
    faults.fail("update_object", times=1000)
    with pytest.raises(UnknownOutcomeError, match="will be tried again"):
        tasks.retry_task(claim.id)
    faults.heal()

    tasks.find_claimable(watch)

    assert tasks.read_task(claim.id).value.state is TaskState.WAITING
    assert [found.id for found in tasks.find_claimable(watch)] == [claim.id]


def test_retry_that_crashed_before_its_decision_did_not_happen(
    tasks: TaskQueue, claim: TaskLease, watch: LeaseWatch, faults: FaultyBackend
) -> None:
    claim.fail_task("no luck", retry=False)
    faults.fail("swap_reference", times=1000)
    with pytest.raises(UnavailableError):
        tasks.retry_task(claim.id)
    faults.heal()

    assert tasks.find_claimable(watch) == []
    assert tasks.read_task(claim.id).value.state is TaskState.FAILED


def test_unclear_cancel_stays_unclear_when_the_database_goes_away(
    tasks: TaskQueue, waiting: ObjectId, faults: FaultyBackend
) -> None:
    faults.fail("update_object", before=False)
    faults.fail("read_objects", at=3, times=100_000)

    with pytest.raises(UnknownOutcomeError):
        tasks.cancel_task(waiting)


def test_end_given_by_another_is_not_taken_for_ours(
    tasks: TaskQueue, claim: TaskLease, faults: FaultyBackend, faulty: Store
) -> None:
    last = tasks.read_task(claim.id).value.max_attempts - 1

    def dead_letter() -> None:
        seen = tasks.read_task(claim.id)
        beaten = replace(seen.value, failures=last)
        faulty.system.update_object(seen, end_as_lost(beaten, now=faulty.clock.now(), reason="silent"))

    faults.fail("update_object", **LOST_ON_ITS_WAY)
    faults.intervene("update_object", dead_letter, at=2)

    with pytest.raises(FencedError):
        claim.finish_task({})
    assert tasks.read_task(claim.id).value.state is TaskState.FAILED
