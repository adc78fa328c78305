"""What a page tells of a task: every attempt, how long it waited and took, why it ended, and what comes next."""

from __future__ import annotations

from typing import Any

import pytest

from fake_clock import FakeClock
from headwater import Settings, open_store
from headwater.cli.task_commands import TaskPage, next_step, story
from headwater.store import ObjectId, Store
from headwater.tasks import FollowUpTask, LeaseWatch, TaskQueue


@pytest.fixture
def tasks(clock: FakeClock) -> TaskQueue:
    store: Store = open_store("memory://", settings=Settings(), clock=clock)
    return TaskQueue(store, chance=lambda: 0.5)


@pytest.fixture
def task_id(tasks: TaskQueue) -> ObjectId:
    return tasks.submit_task("gc", realm="acme", max_attempts=2).id


def told(tasks: TaskQueue, task_id: ObjectId, clock: FakeClock) -> list[dict[str, Any]]:
    return story(TaskPage(tasks.read_task(task_id), clock.now()))


def test_story_tells_how_long_each_attempt_waited_and_took(tasks: TaskQueue, task_id: ObjectId, clock: FakeClock) -> None:
    clock.advance(3)
    claim = tasks.claim_task(task_id, "worker-1")
    assert claim is not None
    clock.advance(12)
    claim.report_progress(30, 100, "rows")
    claim.heartbeat()
    claim.fail_task("no luck")

    attempt = told(tasks, task_id, clock)[1]
    assert attempt["what"] == "attempt 1 failed"
    assert (attempt["waited"], attempt["took"], attempt["who"]) == ("3s", "12s", "worker-1")
    assert (attempt["progress"], attempt["why"]) == ("30 of 100 rows", "no luck")


def test_lost_attempt_and_its_successor_stand_in_one_story(tasks: TaskQueue, task_id: ObjectId, clock: FakeClock) -> None:
    watch = LeaseWatch(clock, 60)
    tasks.claim_task(task_id, "worker-1")
    tasks.find_claimable(watch)
    clock.advance(61)
    assert tasks.claim_task(task_id, "worker-2", watch) is not None
    clock.advance(5)

    events = told(tasks, task_id, clock)
    assert [event["what"] for event in events] == ["submitted", "attempt 1 was lost", "attempt 2 runs", "next"]
    assert events[1]["why"] == "no sign of life from worker-1 for a whole lease"
    assert events[2]["took"] == "5s"


def test_retry_by_a_person_stands_where_it_happened(tasks: TaskQueue, task_id: ObjectId, clock: FakeClock) -> None:
    for owner in ("worker-1", "worker-2"):
        claim = tasks.claim_task(task_id, owner)
        assert claim is not None
        claim.fail_task("no use", retry=False)
        clock.advance(60)
        tasks.retry_task(task_id)

    assert [event["what"] for event in told(tasks, task_id, clock)] == [
        "submitted",
        "attempt 1 failed",
        "attempt 2 failed",
        "let wait again by a person",
        "next",
    ]


def test_story_says_which_task_it_follows(tasks: TaskQueue, task_id: ObjectId, clock: FakeClock) -> None:
    claim = tasks.claim_task(task_id, "worker-1")
    assert claim is not None
    claim.finish_task({}, FollowUpTask(kind="purge", realm="acme"))
    follow_up = tasks.find_active("purge", "acme")

    assert follow_up is not None
    assert told(tasks, follow_up.id, clock)[0]["why"] == f"follows up {task_id:016x}"
    assert next_step(tasks.read_task(task_id)) == "purge of realm 'acme' follows, unless it was asked for already"


def test_attempts_that_are_no_longer_kept_are_counted(tasks: TaskQueue, task_id: ObjectId, clock: FakeClock) -> None:
    for number in range(25):
        claim = tasks.claim_task(task_id, f"worker-{number}")
        assert claim is not None
        claim.hand_back("a break")

    assert told(tasks, task_id, clock)[1]["what"] == "5 attempts before these, no longer kept"


def test_task_that_nobody_does_asks_for_a_worker(tasks: TaskQueue, task_id: ObjectId, clock: FakeClock) -> None:
    clock.advance(90)

    assert "it is due for 1m30s, so look whether a worker is there" in next_step(tasks.read_task(task_id), clock.now())


def test_last_attempt_is_told_as_such(tasks: TaskQueue, task_id: ObjectId) -> None:
    claim = tasks.claim_task(task_id, "worker-1")
    assert claim is not None
    assert "it is its last attempt" not in next_step(tasks.read_task(task_id))
    claim.fail_task("no luck")
    tasks.run_now(task_id)
    tasks.claim_task(task_id, "worker-1")

    assert "it is its last attempt" in next_step(tasks.read_task(task_id))
