"""A real Redis as broker."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from processes import Worker, ended, in_the_middle
from work import Collection, Import

from headwater.store import Store
from headwater.tasks import AttemptEnd, TaskQueue, TaskState

pytestmark = pytest.mark.long


def test_tasks_are_done_by_way_of_a_redis(
    store: Store, tasks: TaskQueue, start_worker: Callable[..., Worker], redis_url: str, tmp_path: Path
) -> None:
    work = Import.prepare(store, tmp_path)
    worker = start_worker(BROKER=redis_url)

    assert ended(tasks, work.task).state is TaskState.SUCCEEDED
    work.check(store)
    assert not list(tmp_path.glob("*-broker"))
    worker.process.terminate()
    assert worker.process.wait(30) == 0


def test_killed_workers_task_is_done_by_another_over_redis(
    store: Store, tasks: TaskQueue, start_worker: Callable[..., Worker], redis_url: str, tmp_path: Path
) -> None:
    work = Collection.prepare(store, tmp_path)
    first = start_worker(BROKER=redis_url)
    in_the_middle(tasks, work.task)
    first.signal(signal.SIGKILL)
    start_worker(BROKER=redis_url)

    assert [attempt.outcome for attempt in ended(tasks, work.task).attempts] == [AttemptEnd.LOST, AttemptEnd.SUCCEEDED]
    work.check(store)
