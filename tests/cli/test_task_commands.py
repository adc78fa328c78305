"""``headwater task``: looking at work, and steering it."""

from __future__ import annotations

import json

import pytest
from commandline import CommandLine

from headwater import Store
from headwater.clock import Micros, as_text
from headwater.store import ObjectId, id_text
from headwater.tasks import LeaseWatch, TaskQueue


@pytest.fixture
def task_id(store: Store) -> ObjectId:
    """A task that waits."""
    return TaskQueue(store).submit_task("gc", realm="acme").id


def fail(store: Store, task_id: ObjectId) -> None:
    claim = TaskQueue(store).claim_task(task_id, "worker-1", LeaseWatch(store.clock, 60))
    claim.fail_task("the disk is full", retry=False)


def test_no_tasks_are_a_sentence(headwater: CommandLine, store: Store) -> None:
    assert headwater.ok("task", "list") == ""


def test_tasks_are_listed_by_state(headwater: CommandLine, store: Store, task_id: ObjectId) -> None:
    TaskQueue(store).submit_task("purge", realm="acme")
    fail(store, task_id)

    assert [entry["kind"] for entry in headwater.data("task", "list", "--state", "WAITING")] == ["purge"]


def test_task_tells_the_story_of_its_attempts(headwater: CommandLine, store: Store, task_id: ObjectId) -> None:
    fail(store, task_id)

    shown = headwater.data("task", "show", id_text(task_id))

    assert shown["state"] == "FAILED"
    assert [(a["number"], a["owner"], a["error"]) for a in shown["attempts"]] == [(1, "worker-1", "the disk is full")]


def test_task_is_told_to_a_person_as_a_story(headwater: CommandLine, store: Store, task_id: ObjectId) -> None:
    fail(store, task_id)

    lines = headwater.ok("task", "show", id_text(task_id)).splitlines()

    assert any(line.split() == ["state:", "FAILED"] for line in lines)
    told = [" ".join(line.split()[1:]) for line in lines[lines.index("story:") + 2 :]]
    assert told[0].startswith("submitted")
    assert told[1].startswith("attempt 1 failed") and told[1].endswith("worker-1 - the disk is full")
    assert told[2].startswith("given up: trying again would not have helped")
    assert told[3].startswith("next") and told[3].endswith(f"`headwater task retry {id_text(task_id)}`")


def test_failed_task_is_retried(headwater: CommandLine, store: Store, task_id: ObjectId) -> None:
    fail(store, task_id)

    assert headwater.data("task", "retry", id_text(task_id))["state"] == "WAITING"


def test_waiting_task_is_cancelled(headwater: CommandLine, task_id: ObjectId) -> None:
    assert headwater.data("task", "cancel", id_text(task_id))["state"] == "CANCELLED"


def test_task_that_has_ended_is_not_cancelled(headwater: CommandLine, store: Store, task_id: ObjectId) -> None:
    fail(store, task_id)

    assert headwater("task", "cancel", id_text(task_id)).exit_code == 5


def test_task_is_run_now(headwater: CommandLine, store: Store) -> None:
    due = Micros(store.clock.now() + 3_600_000_000)
    later = TaskQueue(store).submit_task("gc", realm="acme", due=due)

    shown = headwater.data("task", "run-now", id_text(later.id))

    assert shown["created"] <= shown["due"] < as_text(due)


def test_unknown_task_is_not_found(headwater: CommandLine) -> None:
    assert headwater("task", "show", "0123456789abcdef").exit_code == 3


def test_text_that_is_no_id_is_a_usage_error(headwater: CommandLine) -> None:
    assert headwater("task", "show", "7").exit_code == 2


def test_tasks_are_listed_by_subject_and_age(headwater: CommandLine, store: Store, task_id: ObjectId) -> None:
    about = id_text(TaskQueue(store).submit_task("import", realm="acme", subject="lake").id)

    assert [entry["id"] for entry in headwater.data("task", "list", "--subject", "lake", "--since", "1h")] == [about]
    assert headwater.data("task", "list", "--older-than", "1h") == []


def test_watch_shows_what_is_there_and_then_only_what_changes(headwater: CommandLine, store: Store, task_id: ObjectId) -> None:
    shown = headwater.ok("task", "list", "--watch", "--every", "10ms", "--for", "40ms").splitlines()

    assert [line.split()[0] for line in shown] == ["TASK", id_text(task_id)]


def test_list_shows_how_far_what_runs_is(headwater: CommandLine, store: Store, task_id: ObjectId) -> None:
    claim = TaskQueue(store).claim_task(task_id, "worker-1")
    assert claim is not None
    claim.report_progress(30, 100, "rows")
    claim.heartbeat()

    assert "   30 of 100 rows   " in headwater.ok("task", "list", "--state", "RUNNING")


def test_list_shows_what_came_of_what_has_ended(headwater: CommandLine, store: Store, task_id: ObjectId) -> None:
    claim = TaskQueue(store).claim_task(task_id, "worker-1")
    assert claim is not None
    claim.report_progress(30, 100, "rows")
    claim.heartbeat()
    claim.finish_task({"scanned": 100, "kept": {"live": 93}, "deleted": 7, "deletedBytes": 70})

    shown = headwater.ok("task", "list", "--state", "SUCCEEDED")
    assert "scanned 100 rows, kept 93: 93 live; deleted 7 rows" in shown
    assert "of 100" not in shown
    assert headwater.data("task", "show", id_text(task_id))["progress"] is None


def test_watch_tells_programs_one_task_a_line(headwater: CommandLine, task_id: ObjectId) -> None:
    shown = headwater.ok("-o", "json", "task", "list", "--watch", "--every", "10ms", "--for", "0s").splitlines()

    assert [json.loads(line)["id"] for line in shown] == [id_text(task_id)]


def test_tasks_are_counted_by_kind(headwater: CommandLine, store: Store, task_id: ObjectId) -> None:
    fail(store, task_id)
    TaskQueue(store).submit_task("purge", realm="acme")

    shown = {row["kind"]: row for row in headwater.data("task", "figures")}

    assert (shown["gc"]["deadLetters"], shown["gc"]["waiting"]) == (1, 0)
    assert (shown["purge"]["waiting"], shown["purge"]["due"]) == (1, 1)


def test_retry_for_reachable_files_is_for_table_purges_alone(headwater: CommandLine, store: Store) -> None:
    task = TaskQueue(store).submit_task("gc", realm="acme", realm_key=1, subject="", arguments={}).id
    TaskQueue(store).cancel_task(task)

    result = headwater("task", "retry", id_text(task), "--reachable-only")

    assert result.exit_code == 5
    assert "no purge of a table" in result.stderr
