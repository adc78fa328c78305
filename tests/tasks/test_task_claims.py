"""One worker does a task at a time, and the next one only when that one fell silent."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from fake_clock import FakeClock
from headwater.errors import FencedError
from headwater.store import ObjectId, Store
from headwater.tasks import AttemptEnd, DueWindow, LeaseExpiry, LeaseVerdict, LeaseWatch, TaskLease, TaskQueue, TaskState


def test_claimed_task_runs(tasks: TaskQueue, waiting: ObjectId) -> None:
    claim = tasks.claim_task(waiting, "worker-1")

    task = tasks.read_task(waiting).value
    assert claim is not None
    assert (task.state, task.attempt, task.owner, task.beat) == (TaskState.RUNNING, 1, "worker-1", 0)


def test_claim_by_many_has_one_winner(tasks: TaskQueue, waiting: ObjectId) -> None:
    with ThreadPoolExecutor(8) as pool:
        claims = list(pool.map(lambda number: tasks.claim_task(waiting, f"worker-{number}"), range(16)))

    assert sum(claim is not None for claim in claims) == 1


def test_running_task_is_not_claimed(tasks: TaskQueue, claim: TaskLease) -> None:
    assert tasks.claim_task(claim.id, "worker-2") is None


def test_finished_task_is_not_claimed(tasks: TaskQueue, claim: TaskLease) -> None:
    claim.finish_task({})

    assert tasks.claim_task(claim.id, "worker-2") is None


def test_due_tasks_are_claimable_the_longest_due_first(tasks: TaskQueue, watch: LeaseWatch, clock: FakeClock) -> None:
    first = tasks.submit_task("gc", realm="a").id
    clock.advance(1)
    second = tasks.submit_task("gc", realm="b").id
    tasks.submit_task("gc", realm="c", due=clock.now() + 1)

    assert [found.id for found in tasks.find_claimable(watch)] == [first, second]


def test_looks_of_a_window_go_through_all_due_tasks(tasks: TaskQueue, watch: LeaseWatch) -> None:
    ids = [tasks.submit_task("gc", realm=f"realm-{number}").id for number in range(5)]
    window = DueWindow(2)
    looks = [[found.id for found in tasks.find_claimable(watch, window=window)] for _ in range(4)]

    assert looks == [ids[:2], ids[2:4], ids[4:], ids[:2]]


def test_running_task_is_watched_beyond_the_window(tasks: TaskQueue, watch: LeaseWatch, clock: FakeClock) -> None:
    first, *_ = (tasks.submit_task("gc", realm=f"realm-{number}").id for number in range(9))
    tasks.claim_task(first, "worker-1")
    window = DueWindow(2)
    tasks.find_claimable(watch, window=window)
    clock.advance(61)

    assert first in [found.id for found in tasks.find_claimable(watch, window=window)]


def test_running_task_is_claimable_after_a_lease_of_silence(
    tasks: TaskQueue, watch: LeaseWatch, clock: FakeClock, claim: TaskLease
) -> None:
    assert tasks.find_claimable(watch) == []
    clock.advance(59.9)
    assert tasks.find_claimable(watch) == []
    clock.advance(0.1)

    assert [found.id for found in tasks.find_claimable(watch)] == [claim.id]


def test_beating_task_keeps_its_lease(tasks: TaskQueue, watch: LeaseWatch, clock: FakeClock, claim: TaskLease) -> None:
    for _ in range(10):
        tasks.find_claimable(watch)
        clock.advance(59)
        claim.heartbeat()

    assert tasks.find_claimable(watch) == []


def test_watch_that_just_began_takes_nothing_over(tasks: TaskQueue, clock: FakeClock, store: Store, claim: TaskLease) -> None:
    clock.advance(100_000)

    assert tasks.find_claimable(LeaseWatch(clock, store.settings.task_lease_seconds)) == []


def test_shifted_wall_clock_ends_no_lease(tasks: TaskQueue, claim: TaskLease, store: Store, clock: FakeClock) -> None:
    far_ahead = FakeClock(clock.now() + 365 * 86_400_000_000)
    watch = LeaseWatch(far_ahead, store.settings.task_lease_seconds)

    assert not watch.has_expired(claim.id, tasks.read_task(claim.id).token)
    far_ahead.advance(59)
    assert not watch.has_expired(claim.id, tasks.read_task(claim.id).token)


def test_token_that_moved_on_proves_nothing(tasks: TaskQueue, claim: TaskLease) -> None:
    seen = tasks.read_task(claim.id)
    claim.heartbeat()

    assert tasks.claim_task(claim.id, "worker-2", LeaseExpiry(seen.token)) is None


def test_takeover_is_a_new_attempt_and_a_failure_of_the_old(
    tasks: TaskQueue, watch: LeaseWatch, claim: TaskLease, let_lease_end: Callable[[], None]
) -> None:
    let_lease_end()
    taken = tasks.claim_task(claim.id, "worker-2", watch)

    task = tasks.read_task(claim.id).value
    assert taken is not None
    assert (task.attempt, task.owner, task.failures) == (2, "worker-2", 1)
    assert [attempt.outcome for attempt in task.attempts] == [AttemptEnd.LOST, AttemptEnd.RUNNING]
    assert "no sign of life from worker-1" in task.attempts[0].error


def test_token_that_another_saw_stand_still_is_enough(
    tasks: TaskQueue, watch: LeaseWatch, claim: TaskLease, let_lease_end: Callable[[], None]
) -> None:
    let_lease_end()
    (found,) = tasks.find_claimable(watch)

    assert tasks.claim_task(found.id, "worker-2", LeaseExpiry(found.token)) is not None


def test_takeover_by_many_has_one_winner(
    tasks: TaskQueue, watch: LeaseWatch, claim: TaskLease, let_lease_end: Callable[[], None]
) -> None:
    let_lease_end()
    with ThreadPoolExecutor(8) as pool:
        claims = list(pool.map(lambda number: tasks.claim_task(claim.id, f"worker-{number}", watch), range(16)))

    assert sum(taken is not None for taken in claims) == 1
    assert tasks.read_task(claim.id).value.attempt == 2


@pytest.mark.parametrize(
    "late",
    [
        lambda claim: claim.check_stop(),
        lambda claim: claim.finish_task({}),
        lambda claim: claim.fail_task("late"),
        lambda claim: claim.hand_back("late"),
    ],
    ids=["check", "finish", "fail", "hand back"],
)
def test_worker_that_was_taken_over_can_do_nothing(
    tasks: TaskQueue, watch: LeaseWatch, claim: TaskLease, let_lease_end: Callable[[], None], late: Callable[[TaskLease], None]
) -> None:
    let_lease_end()
    tasks.claim_task(claim.id, "worker-2", watch)
    before = tasks.read_task(claim.id)

    with pytest.raises(FencedError, match="RUNNING, attempt 2 of worker-2 by now: attempt 1 must stop"):
        late(claim)
    assert tasks.read_task(claim.id) == before


def test_worker_that_was_taken_over_hears_at_its_next_heartbeat(
    tasks: TaskQueue, watch: LeaseWatch, claim: TaskLease, let_lease_end: Callable[[], None]
) -> None:
    let_lease_end()
    tasks.claim_task(claim.id, "worker-2", watch)

    assert claim.heartbeat() is LeaseVerdict.LOST


def test_task_that_kills_its_workers_is_dead_lettered(
    tasks: TaskQueue, watch: LeaseWatch, let_lease_end: Callable[[], None]
) -> None:
    poison = tasks.submit_task("gc", realm="acme", max_attempts=3).id
    for number in range(3):
        assert tasks.claim_task(poison, f"worker-{number}", watch) is not None
        let_lease_end()

    assert tasks.claim_task(poison, "worker-3", watch) is None

    task = tasks.read_task(poison).value
    assert (task.state, task.attempt, task.failures) == (TaskState.FAILED, 3, 3)
    assert [attempt.outcome for attempt in task.attempts] == [AttemptEnd.LOST] * 3
    assert tasks.find_claimable(watch) == []


def test_silent_task_that_was_cancelled_is_not_begun_again(
    tasks: TaskQueue, watch: LeaseWatch, claim: TaskLease, let_lease_end: Callable[[], None]
) -> None:
    tasks.cancel_task(claim.id)
    let_lease_end()

    assert tasks.claim_task(claim.id, "worker-2", watch) is None
    assert tasks.read_task(claim.id).value.state is TaskState.CANCELLED


def test_twenty_attempts_are_remembered_and_all_are_counted(tasks: TaskQueue, waiting: ObjectId) -> None:
    for number in range(25):
        claim = tasks.claim_task(waiting, f"worker-{number}")
        assert claim is not None
        claim.hand_back("a break")

    task = tasks.read_task(waiting).value
    assert (task.attempt, len(task.attempts), task.attempts[-1].number) == (25, 20, 25)
