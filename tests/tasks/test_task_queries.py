"""What is asked of many tasks at once: those of one realm, and all of them as numbers."""

from __future__ import annotations

from fake_clock import FakeClock
from faulty_backend import FaultyBackend
from headwater.clock import Micros
from headwater.store import ObjectId, Store
from headwater.tasks import TaskLease, TaskQueue, TaskState

DAY = 86400


def test_realm_has_its_active_tasks_first(tasks: TaskQueue, claim: TaskLease) -> None:
    claim.finish_task({})
    active = tasks.submit_task("gc", realm="acme").id
    tasks.submit_task("gc", realm="other")

    assert [one.id for one in tasks.of_realm("acme")] == [active, claim.id]


def test_realm_shows_the_last_task_of_each_kind_and_subject(tasks: TaskQueue, clock: FakeClock) -> None:
    ended = []
    for subject in ("lake/a", "lake/b", "lake/a"):
        clock.advance(1)
        task = tasks.submit_task("import", realm="acme", subject=subject).id
        tasks.cancel_task(task)
        ended.append(task)

    assert [one.id for one in tasks.of_realm("acme")] == [ended[2], ended[1]]


def test_realm_named_like_another_has_tasks_of_its_own(tasks: TaskQueue) -> None:
    tasks.submit_task("gc", realm="acme-2")

    assert tasks.of_realm("acme") == []


def test_task_that_left_the_history_is_not_the_last_one(tasks: TaskQueue, claim: TaskLease, clock: FakeClock) -> None:
    claim.finish_task({})
    clock.advance(91 * DAY)
    tasks.forget_finished()

    assert tasks.of_realm("acme") == []


def test_later_task_stays_the_last_when_an_earlier_one_leaves(tasks: TaskQueue, claim: TaskLease, clock: FakeClock) -> None:
    claim.finish_task({})
    clock.advance(50 * DAY)
    later = tasks.submit_task("gc", realm="acme").id
    tasks.cancel_task(later)
    clock.advance(50 * DAY)
    tasks.forget_finished()

    assert [one.id for one in tasks.of_realm("acme")] == [later]


def test_store_without_tasks_has_no_figures(tasks: TaskQueue) -> None:
    figures = tasks.read_figures()

    assert (figures.active, figures.due, figures.dead_letters) == ({}, {}, {})


def test_figures_count_what_waits_and_how_long_it_is_due(tasks: TaskQueue, waiting: ObjectId, clock: FakeClock) -> None:
    clock.advance(90)
    tasks.submit_task("gc", realm="other", due=clock.now())
    figures = tasks.read_figures()

    assert figures.active == {("gc", TaskState.WAITING): 2}
    assert (figures.due, figures.oldest_due_seconds) == ({"gc": 2}, {"gc": 90.0})


def test_figures_count_a_dead_letter_until_something_follows_it(store: Store, tasks: TaskQueue, claim: TaskLease) -> None:
    claim.fail_task("no use", retry=False)

    assert tasks.read_figures().dead_letters == {"gc": 1}
    tasks.cancel_task(tasks.submit_task("gc", realm="acme").id)
    assert tasks.read_figures().dead_letters == {}


def test_figures_tell_how_long_the_last_attempts_took(tasks: TaskQueue, claim: TaskLease, clock: FakeClock) -> None:
    clock.advance(12)
    claim.finish_task({})

    assert tasks.read_figures().seconds == {"gc": 12.0}


def test_tasks_are_asked_for_by_what_they_are_about(tasks: TaskQueue, waiting: ObjectId) -> None:
    lake = tasks.submit_task("import", realm="acme", subject="lake/a").id
    tasks.submit_task("import", realm="other", subject="lake/a")
    tasks.cancel_task(lake)
    again = tasks.submit_task("import", realm="acme", subject="lake/a").id

    assert [one.id for one in tasks.list_tasks(realm="acme", subject="lake/a")] == [again, lake]
    assert [one.id for one in tasks.list_tasks(kind="gc", realm="acme")] == [waiting]


def test_tasks_are_asked_for_by_their_age(tasks: TaskQueue, clock: FakeClock) -> None:
    ids = []
    for realm in ("a", "b", "c"):
        ids.append(tasks.submit_task("gc", realm=realm).id)
        tasks.cancel_task(ids[-1])
        clock.advance(DAY)
    now = clock.now()

    assert [one.id for one in tasks.list_tasks(since=now - 2 * DAY * 1_000_000)] == [ids[2], ids[1]]
    assert [one.id for one in tasks.list_tasks(before=now - DAY * 1_000_000)] == [ids[1], ids[0]]


def test_old_task_that_ended_since_is_not_a_new_one(tasks: TaskQueue, waiting: ObjectId, clock: FakeClock) -> None:
    clock.advance(DAY)
    tasks.cancel_task(waiting)

    assert tasks.list_tasks(since=clock.now() - 60_000_000) == []


def test_figures_count_failed_attempts_of_waiting_tasks(tasks: TaskQueue, claim: TaskLease) -> None:
    claim.fail_task("no luck")

    figures = tasks.read_figures()
    assert (figures.retries, figures.due) == ({"gc": 1}, {})
    assert figures.active == {("gc", TaskState.WAITING): 1}


def test_dead_letter_that_is_retried_is_none_any_more(tasks: TaskQueue, claim: TaskLease) -> None:
    claim.fail_task("no use", retry=False)
    tasks.retry_task(claim.id)

    assert tasks.read_figures().dead_letters == {}


def test_figures_tell_what_runs(tasks: TaskQueue, claim: TaskLease) -> None:
    assert tasks.read_figures().active == {("gc", TaskState.RUNNING): 1}


def test_figures_read_no_task_that_waits_or_has_ended(faulty: Store, faults: FaultyBackend, clock: FakeClock) -> None:
    tasks = TaskQueue(faulty)
    for number in range(20):
        ended = tasks.submit_task("gc", realm=f"realm-{number}").id
        tasks.cancel_task(ended)
        tasks.submit_task("gc", realm=f"realm-{number}", due=Micros(clock.now() + DAY * 1_000_000))
    before = len(faults.calls)

    assert tasks.read_figures().active == {("gc", TaskState.WAITING): 20}
    assert faults.calls[before:] == ["read_references"]
