"""One worker does a task at a time, and the next one only when that one fell silent."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from fake_clock import FakeClock
from headwater.errors import FencedError
from headwater.store import ObjectId, Store
from headwater.tasks import AttemptEnd, Claim, LeaseWatch, StoodStill, Tasks, TaskState, Verdict


def test_a_claimed_task_runs(tasks: Tasks, waiting: ObjectId) -> None:
    claim = tasks.claim(waiting, "worker-1")

    task = tasks.read(waiting).value
    assert claim is not None
    assert (task.state, task.attempt, task.owner, task.beat) == (TaskState.RUNNING, 1, "worker-1", 0)


def test_of_many_claimers_one_wins(tasks: Tasks, waiting: ObjectId) -> None:
    with ThreadPoolExecutor(8) as pool:
        claims = list(pool.map(lambda number: tasks.claim(waiting, f"worker-{number}"), range(16)))

    assert sum(claim is not None for claim in claims) == 1


def test_a_running_task_is_not_claimed(tasks: Tasks, claim: Claim) -> None:
    assert tasks.claim(claim.id, "worker-2") is None


def test_a_finished_task_is_not_claimed(tasks: Tasks, claim: Claim) -> None:
    claim.finish({})

    assert tasks.claim(claim.id, "worker-2") is None


def test_due_tasks_are_claimable_the_longest_due_first(tasks: Tasks, watch: LeaseWatch, clock: FakeClock) -> None:
    first = tasks.submit("gc", realm="a").id
    clock.advance(1)
    second = tasks.submit("gc", realm="b").id
    tasks.submit("gc", realm="c", due=clock.now() + 1)

    assert [found.id for found in tasks.look(watch)] == [first, second]


def test_a_running_task_is_claimable_when_it_stood_still_for_its_lease(
    tasks: Tasks, watch: LeaseWatch, clock: FakeClock, claim: Claim
) -> None:
    assert tasks.look(watch) == []
    clock.advance(59.9)
    assert tasks.look(watch) == []
    clock.advance(0.1)

    assert [found.id for found in tasks.look(watch)] == [claim.id]


def test_a_beating_task_keeps_its_lease(tasks: Tasks, watch: LeaseWatch, clock: FakeClock, claim: Claim) -> None:
    for _ in range(10):
        tasks.look(watch)
        clock.advance(59)
        claim.heartbeat()

    assert tasks.look(watch) == []


def test_a_watch_that_just_began_takes_nothing_over(tasks: Tasks, clock: FakeClock, store: Store, claim: Claim) -> None:
    clock.advance(100_000)

    assert tasks.look(LeaseWatch(clock, store.settings.task_lease_seconds)) == []


def test_a_shifted_wall_clock_ends_no_lease(tasks: Tasks, claim: Claim, store: Store, clock: FakeClock) -> None:
    far_ahead = FakeClock(clock.now() + 365 * 86_400_000_000)
    watch = LeaseWatch(far_ahead, store.settings.task_lease_seconds)

    assert not watch.stood_still(claim.id, tasks.read(claim.id).token)
    far_ahead.advance(59)
    assert not watch.stood_still(claim.id, tasks.read(claim.id).token)


def test_a_token_that_moved_on_proves_nothing(tasks: Tasks, claim: Claim) -> None:
    seen = tasks.read(claim.id)
    claim.heartbeat()

    assert tasks.claim(claim.id, "worker-2", StoodStill(seen.token)) is None


def test_a_takeover_is_a_new_attempt_and_the_old_one_a_failure(
    tasks: Tasks, watch: LeaseWatch, claim: Claim, let_lease_end: Callable[[], None]
) -> None:
    let_lease_end()
    taken = tasks.claim(claim.id, "worker-2", watch)

    task = tasks.read(claim.id).value
    assert taken is not None
    assert (task.attempt, task.owner, task.failures) == (2, "worker-2", 1)
    assert [attempt.outcome for attempt in task.attempts] == [AttemptEnd.LOST, AttemptEnd.RUNNING]
    assert "no sign of life from worker-1" in task.attempts[0].error


def test_the_token_that_another_saw_stand_still_is_enough(
    tasks: Tasks, watch: LeaseWatch, claim: Claim, let_lease_end: Callable[[], None]
) -> None:
    let_lease_end()
    (found,) = tasks.look(watch)

    assert tasks.claim(found.id, "worker-2", StoodStill(found.token)) is not None


def test_of_many_who_take_over_one_wins(
    tasks: Tasks, watch: LeaseWatch, claim: Claim, let_lease_end: Callable[[], None]
) -> None:
    let_lease_end()
    with ThreadPoolExecutor(8) as pool:
        claims = list(pool.map(lambda number: tasks.claim(claim.id, f"worker-{number}", watch), range(16)))

    assert sum(taken is not None for taken in claims) == 1
    assert tasks.read(claim.id).value.attempt == 2


@pytest.mark.parametrize(
    "late",
    [
        lambda claim: claim.check(),
        lambda claim: claim.finish({}),
        lambda claim: claim.fail("late"),
        lambda claim: claim.hand_back("late"),
    ],
    ids=["check", "finish", "fail", "hand back"],
)
def test_who_was_taken_over_can_do_nothing(
    tasks: Tasks, watch: LeaseWatch, claim: Claim, let_lease_end: Callable[[], None], late: Callable[[Claim], None]
) -> None:
    let_lease_end()
    tasks.claim(claim.id, "worker-2", watch)
    before = tasks.read(claim.id)

    with pytest.raises(FencedError, match="RUNNING, attempt 2 of worker-2 by now: attempt 1 must stop"):
        late(claim)
    assert tasks.read(claim.id) == before


def test_who_was_taken_over_hears_of_it_at_the_next_heartbeat(
    tasks: Tasks, watch: LeaseWatch, claim: Claim, let_lease_end: Callable[[], None]
) -> None:
    let_lease_end()
    tasks.claim(claim.id, "worker-2", watch)

    assert claim.heartbeat() is Verdict.LOST


def test_a_task_that_kills_its_workers_is_dead_lettered_with_its_history(
    tasks: Tasks, watch: LeaseWatch, let_lease_end: Callable[[], None]
) -> None:
    poison = tasks.submit("gc", realm="acme", max_attempts=3).id
    for number in range(3):
        assert tasks.claim(poison, f"worker-{number}", watch) is not None
        let_lease_end()

    assert tasks.claim(poison, "worker-3", watch) is None

    task = tasks.read(poison).value
    assert (task.state, task.attempt, task.failures) == (TaskState.FAILED, 3, 3)
    assert [attempt.outcome for attempt in task.attempts] == [AttemptEnd.LOST] * 3
    assert tasks.look(watch) == []


def test_a_silent_task_that_was_cancelled_is_not_begun_again(
    tasks: Tasks, watch: LeaseWatch, claim: Claim, let_lease_end: Callable[[], None]
) -> None:
    tasks.cancel(claim.id)
    let_lease_end()

    assert tasks.claim(claim.id, "worker-2", watch) is None
    assert tasks.read(claim.id).value.state is TaskState.CANCELLED


def test_twenty_attempts_are_remembered_and_all_are_counted(tasks: Tasks, waiting: ObjectId) -> None:
    for number in range(25):
        claim = tasks.claim(waiting, f"worker-{number}")
        assert claim is not None
        claim.hand_back("a break")

    task = tasks.read(waiting).value
    assert (task.attempt, len(task.attempts), task.attempts[-1].number) == (25, 20, 25)
