"""What is asked of many tasks at once: those of one realm, and all of them as numbers."""

from __future__ import annotations

from fake_clock import FakeClock
from faulty_backend import FaultyBackend
from headwater.clock import Micros
from headwater.store import ObjectId, Store
from headwater.tasks import Claim, Tasks, TaskState

DAY = 86400


def test_a_realm_has_its_active_tasks_first(tasks: Tasks, claim: Claim) -> None:
    claim.finish({})
    active = tasks.submit("gc", realm="acme").id
    tasks.submit("gc", realm="other")

    assert [one.id for one in tasks.of_realm("acme")] == [active, claim.id]


def test_of_finished_tasks_a_realm_shows_the_last_one_of_each_kind_and_subject(tasks: Tasks, clock: FakeClock) -> None:
    ended = []
    for subject in ("lake/a", "lake/b", "lake/a"):
        clock.advance(1)
        task = tasks.submit("import", realm="acme", subject=subject).id
        tasks.cancel(task)
        ended.append(task)

    assert [one.id for one in tasks.of_realm("acme")] == [ended[2], ended[1]]


def test_a_realm_whose_name_begins_like_anothers_has_tasks_of_its_own(tasks: Tasks) -> None:
    tasks.submit("gc", realm="acme-2")

    assert tasks.of_realm("acme") == []


def test_what_left_the_history_is_no_longer_the_last_of_its_realm(tasks: Tasks, claim: Claim, clock: FakeClock) -> None:
    claim.finish({})
    clock.advance(91 * DAY)
    tasks.forget_finished()

    assert tasks.of_realm("acme") == []


def test_a_later_task_stays_the_last_when_an_earlier_one_leaves_the_history(
    tasks: Tasks, claim: Claim, clock: FakeClock
) -> None:
    claim.finish({})
    clock.advance(50 * DAY)
    later = tasks.submit("gc", realm="acme").id
    tasks.cancel(later)
    clock.advance(50 * DAY)
    tasks.forget_finished()

    assert [one.id for one in tasks.of_realm("acme")] == [later]


def test_a_store_without_tasks_has_no_figures(tasks: Tasks) -> None:
    figures = tasks.figures()

    assert (figures.active, figures.due, figures.dead_letters) == ({}, {}, {})


def test_figures_count_what_waits_and_how_long_it_is_due(tasks: Tasks, waiting: ObjectId, clock: FakeClock) -> None:
    clock.advance(90)
    tasks.submit("gc", realm="other", due=clock.now())
    figures = tasks.figures()

    assert figures.active == {("gc", TaskState.WAITING): 2}
    assert (figures.due, figures.oldest_due_seconds) == ({"gc": 2}, {"gc": 90.0})


def test_figures_count_a_dead_letter_until_something_follows_it(store: Store, tasks: Tasks, claim: Claim) -> None:
    claim.fail("no use", retry=False)

    assert tasks.figures().dead_letters == {"gc": 1}
    tasks.cancel(tasks.submit("gc", realm="acme").id)
    assert tasks.figures().dead_letters == {}


def test_figures_tell_how_long_the_last_attempts_took(tasks: Tasks, claim: Claim, clock: FakeClock) -> None:
    clock.advance(12)
    claim.finish({})

    assert tasks.figures().seconds == {"gc": 12.0}


def test_tasks_are_asked_for_by_what_they_are_about(tasks: Tasks, waiting: ObjectId) -> None:
    lake = tasks.submit("import", realm="acme", subject="lake/a").id
    tasks.submit("import", realm="other", subject="lake/a")
    tasks.cancel(lake)
    again = tasks.submit("import", realm="acme", subject="lake/a").id

    assert [one.id for one in tasks.list(realm="acme", subject="lake/a")] == [again, lake]
    assert [one.id for one in tasks.list(kind="gc", realm="acme")] == [waiting]


def test_tasks_are_asked_for_by_their_age(tasks: Tasks, clock: FakeClock) -> None:
    ids = []
    for realm in ("a", "b", "c"):
        ids.append(tasks.submit("gc", realm=realm).id)
        tasks.cancel(ids[-1])
        clock.advance(DAY)
    now = clock.now()

    assert [one.id for one in tasks.list(since=now - 2 * DAY * 1_000_000)] == [ids[2], ids[1]]
    assert [one.id for one in tasks.list(before=now - DAY * 1_000_000)] == [ids[1], ids[0]]


def test_an_old_task_that_ended_since_is_not_a_new_one(tasks: Tasks, waiting: ObjectId, clock: FakeClock) -> None:
    clock.advance(DAY)
    tasks.cancel(waiting)

    assert tasks.list(since=clock.now() - 60_000_000) == []


def test_figures_count_failed_attempts_of_tasks_that_wait_for_the_next(tasks: Tasks, claim: Claim) -> None:
    claim.fail("no luck")

    figures = tasks.figures()
    assert (figures.retries, figures.due) == ({"gc": 1}, {})
    assert figures.active == {("gc", TaskState.WAITING): 1}


def test_a_dead_letter_that_is_retried_is_none_any_more(tasks: Tasks, claim: Claim) -> None:
    claim.fail("no use", retry=False)
    tasks.retry(claim.id)

    assert tasks.figures().dead_letters == {}


def test_figures_tell_what_runs(tasks: Tasks, claim: Claim) -> None:
    assert tasks.figures().active == {("gc", TaskState.RUNNING): 1}


def test_figures_read_no_task_that_waits_for_its_first_time_or_has_ended(
    faulty: Store, faults: FaultyBackend, clock: FakeClock
) -> None:
    tasks = Tasks(faulty)
    for number in range(20):
        ended = tasks.submit("gc", realm=f"realm-{number}").id
        tasks.cancel(ended)
        tasks.submit("gc", realm=f"realm-{number}", due=Micros(clock.now() + DAY * 1_000_000))
    before = len(faults.calls)

    assert tasks.figures().active == {("gc", TaskState.WAITING): 20}
    assert faults.calls[before:] == ["read_references"]
