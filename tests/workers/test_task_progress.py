"""What `up` shows of a task as it happens."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fake_clock import FakeClock
from headwater.store import ObjectId, id_text
from headwater.tasks import LeaseExpiry, TaskQueue
from headwater_workers.up_summary import TaskWatcher, duration_words

News = Callable[[], list[str]]


@pytest.fixture
def news(tasks: TaskQueue) -> News:
    """What a watcher tells about the changes since the last call, without the names of the task."""
    lines: list[str] = []
    watcher = TaskWatcher(tasks, lines.append)

    def look() -> list[str]:
        lines.clear()
        watcher.poll()
        return [line.split("': ", 1)[1] for line in lines]

    return look


def test_task_is_named_with_its_realm(tasks: TaskQueue, waiting: ObjectId) -> None:
    lines: list[str] = []
    tasks.claim_task(waiting, "worker-1")
    TaskWatcher(tasks, lines.append).poll()

    assert lines == [f"task {id_text(waiting)} gc of realm 'acme': started"]


def test_waiting_task_is_no_news(news: News, waiting: ObjectId) -> None:
    assert news() == []


def test_each_step_is_told_once(news: News, tasks: TaskQueue, waiting: ObjectId, clock: FakeClock) -> None:
    claim = tasks.claim_task(waiting, "worker-1")
    assert claim is not None
    assert news() == ["started"]
    claim.report_progress(3, 10, "rows")
    claim.heartbeat()
    assert news() == ["3 of 10 rows"]
    claim.heartbeat()
    assert news() == []
    clock.advance(90)
    claim.finish_task({})

    assert news() == ["finished after 1 attempt, 1 min 30 s"]
    assert news() == []


def test_task_that_was_quick_is_told_at_its_end(news: News, tasks: TaskQueue, waiting: ObjectId) -> None:
    claim = tasks.claim_task(waiting, "worker-1")
    assert claim is not None
    claim.finish_task({})

    assert news() == ["finished after 1 attempt, 0.0 s"]


def test_failure_tells_when_the_next_attempt_is_due(news: News, tasks: TaskQueue, waiting: ObjectId) -> None:
    claim = tasks.claim_task(waiting, "worker-1")
    assert claim is not None
    claim.fail_task("the bucket is away")

    (line,) = news()
    assert line.startswith("attempt 1 failed, the next one is due 20")
    assert line.endswith("Z: the bucket is away")


def test_lost_attempt_is_told_with_its_successor(news: News, tasks: TaskQueue, waiting: ObjectId) -> None:
    tasks.claim_task(waiting, "worker-1")
    news()
    tasks.claim_task(waiting, "worker-2", LeaseExpiry(tasks.read_task(waiting).token))

    assert news() == ["attempt 1 was lost: no sign of life from worker-1 for a whole lease", "started, attempt 2"]


def test_task_that_is_given_up_tells_why(news: News, tasks: TaskQueue, waiting: ObjectId) -> None:
    claim = tasks.claim_task(waiting, "worker-1")
    assert claim is not None
    claim.fail_task("there is no such catalog", retry=False)

    assert news() == ["given up after 1 attempt, 0.0 s: there is no such catalog"]


def test_task_that_ended_before_the_watch_is_history(tasks: TaskQueue, waiting: ObjectId) -> None:
    lines: list[str] = []
    tasks.cancel_task(waiting)
    TaskWatcher(tasks, lines.append).poll()

    assert lines == []


@pytest.mark.parametrize(("seconds", "words"), [(0.04, "0.0 s"), (59.94, "59.9 s"), (61, "1 min 01 s"), (3661, "1 h 01 min")])
def test_durations_are_told_as_a_person_would(seconds: float, words: str) -> None:
    assert duration_words(seconds) == words
