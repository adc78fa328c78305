"""``headwater task``: looking at work, and steering it."""

from __future__ import annotations

import pytest
from commandline import CommandLine

from headwater import Store
from headwater.store import ObjectId, id_text
from headwater.tasks import LeaseWatch, Tasks


@pytest.fixture
def task_id(store: Store) -> ObjectId:
    """A task that waits."""
    return Tasks(store).submit("gc", realm="acme").id


def fail(store: Store, task_id: ObjectId) -> None:
    claim = Tasks(store).claim(task_id, "worker-1", LeaseWatch(store.clock, 60))
    claim.fail("the disk is full", retry=False)


def test_no_tasks_are_a_sentence(headwater: CommandLine) -> None:
    assert headwater.ok("task", "list") == "no tasks\n"


def test_tasks_are_listed_by_state(headwater: CommandLine, store: Store, task_id: ObjectId) -> None:
    Tasks(store).submit("purge", realm="acme")
    fail(store, task_id)

    assert [entry["kind"] for entry in headwater.data("task", "list", "--state", "WAITING")] == ["purge"]


def test_a_task_tells_the_story_of_its_attempts(headwater: CommandLine, store: Store, task_id: ObjectId) -> None:
    fail(store, task_id)

    shown = headwater.data("task", "show", id_text(task_id))

    assert shown["state"] == "FAILED"
    assert [(a["number"], a["owner"], a["error"]) for a in shown["attempts"]] == [(1, "worker-1", "the disk is full")]


def test_a_task_is_told_to_a_person_line_by_line(headwater: CommandLine, store: Store, task_id: ObjectId) -> None:
    fail(store, task_id)

    lines = headwater.ok("task", "show", id_text(task_id)).splitlines()

    assert any(line.split() == ["state:", "FAILED"] for line in lines)
    assert lines[-1].split()[:2] == ["1", "worker-1"]


def test_a_failed_task_is_retried(headwater: CommandLine, store: Store, task_id: ObjectId) -> None:
    fail(store, task_id)

    assert headwater.data("task", "retry", id_text(task_id))["state"] == "WAITING"


def test_a_waiting_task_is_cancelled(headwater: CommandLine, task_id: ObjectId) -> None:
    assert headwater.data("task", "cancel", id_text(task_id))["state"] == "CANCELLED"


def test_a_task_that_has_ended_is_not_cancelled(headwater: CommandLine, store: Store, task_id: ObjectId) -> None:
    fail(store, task_id)

    assert headwater("task", "cancel", id_text(task_id)).exit_code == 5


def test_a_task_is_run_now(headwater: CommandLine, store: Store) -> None:
    later = Tasks(store).submit("gc", realm="acme", due=store.clock.now() + 3_600_000_000)

    shown = headwater.data("task", "run-now", id_text(later.id))

    assert shown["due"] < headwater.data("task", "show", id_text(later.id))["created"] or shown["due"] == shown["created"]


def test_an_unknown_task_is_not_found(headwater: CommandLine) -> None:
    assert headwater("task", "show", "0123456789abcdef").exit_code == 3


def test_what_is_no_id_is_a_usage_error(headwater: CommandLine) -> None:
    assert headwater("task", "show", "7").exit_code == 2
