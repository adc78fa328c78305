"""Workers die, stop, wake and leave; the work is done right, and once."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from processes import Worker, ended, in_the_middle, stop_between_transactions, wait_for
from work import Collection, Import, Purge, Work, make_realm

from headwater.jobs.task_runs import list_runs
from headwater.store import Store
from headwater.tasks import AttemptEnd, TaskQueue, TaskState

StartWorker = Callable[..., Worker]
pytestmark = [pytest.mark.long, pytest.mark.rare(2)]
each_kind = pytest.mark.parametrize("kind", [Collection, Purge, Import], ids=["gc", "purge", "import"])


@pytest.fixture
def work(kind: type[Collection | Purge | Import], store: Store, tmp_path: Path) -> Work:
    return kind.prepare(store, tmp_path)


@each_kind
def test_killed_workers_task_is_done_by_another(work: Work, store: Store, tasks: TaskQueue, start_worker: StartWorker) -> None:
    first = start_worker()
    in_the_middle(tasks, work.task)
    first.signal(signal.SIGKILL)
    start_worker()

    task = ended(tasks, work.task)
    assert task.state is TaskState.SUCCEEDED
    assert [attempt.outcome for attempt in task.attempts] == [AttemptEnd.LOST, AttemptEnd.SUCCEEDED]
    assert [run.attempt for run in list_runs(store)] == [2]
    work.check(store)


@each_kind
def test_killed_child_is_replaced_by_its_worker(work: Work, store: Store, tasks: TaskQueue, start_worker: StartWorker) -> None:
    start_worker()
    owner = in_the_middle(tasks, work.task).owner
    os.kill(int(owner.rpartition(":")[2]), signal.SIGKILL)

    task = ended(tasks, work.task)
    assert [attempt.outcome for attempt in task.attempts] == [AttemptEnd.LOST, AttemptEnd.SUCCEEDED]
    work.check(store)


@each_kind
def test_stopped_worker_that_wakes_after_its_lease_has_no_effect(
    work: Work, store: Store, tasks: TaskQueue, start_worker: StartWorker, tmp_path: Path
) -> None:
    first = start_worker()
    in_the_middle(tasks, work.task)
    stop_between_transactions(first, tmp_path / "store.db")
    start_worker()
    ended(tasks, work.task)
    work.check(store)
    before = tasks.read_task(work.task)

    first.signal(signal.SIGCONT)
    wait_for(lambda: "task was taken over" in first.said, why=lambda: first.said)

    assert tasks.read_task(work.task) == before
    assert [attempt.outcome for attempt in before.value.attempts] == [AttemptEnd.LOST, AttemptEnd.SUCCEEDED]
    assert [run.attempt for run in list_runs(store)] == [2]
    work.check(store)


@each_kind
def test_worker_that_is_asked_to_end_hands_its_task_back(
    work: Work, store: Store, tasks: TaskQueue, start_worker: StartWorker
) -> None:
    first = start_worker()
    in_the_middle(tasks, work.task)
    first.process.terminate()

    assert first.process.wait(30) == 0
    task = tasks.read_task(work.task).value
    assert (task.state, task.failures) == (TaskState.WAITING, 0)
    start_worker()
    assert [attempt.outcome for attempt in ended(tasks, work.task).attempts] == [AttemptEnd.HANDED_BACK, AttemptEnd.SUCCEEDED]
    work.check(store)


@pytest.mark.parametrize("kind", [Purge])
def test_signal_to_all_processes_hands_the_task_back_too(work: Work, tasks: TaskQueue, start_worker: StartWorker) -> None:
    worker = start_worker()
    in_the_middle(tasks, work.task)
    worker.signal(signal.SIGTERM)

    worker.process.wait(30)
    task = tasks.read_task(work.task).value
    assert (task.state, task.attempts[-1].outcome) == (TaskState.WAITING, AttemptEnd.HANDED_BACK)


@pytest.mark.parametrize("broker", ["embedded", "redis"])
@pytest.mark.parametrize("kind", [Purge])
def test_children_of_a_killed_main_process_hand_tasks_back(
    work: Work, tasks: TaskQueue, start_worker: StartWorker, broker: str, request: pytest.FixtureRequest
) -> None:
    worker = start_worker(BROKER="embedded" if broker == "embedded" else request.getfixturevalue("redis_url"))
    in_the_middle(tasks, work.task)
    children = psutil.Process(worker.process.pid).children()
    worker.process.kill()

    wait_for(lambda: tasks.read_task(work.task).value.state is TaskState.WAITING, why=lambda: tasks.read_task(work.task).value)
    assert tasks.read_task(work.task).value.attempts[-1].outcome is AttemptEnd.HANDED_BACK
    assert len(children) == 2
    assert psutil.wait_procs(children, timeout=20)[1] == []


@pytest.mark.parametrize("kind", [Purge])
def test_child_that_replaced_another_hands_its_task_back_too(work: Work, tasks: TaskQueue, start_worker: StartWorker) -> None:
    worker = start_worker()
    for child in psutil.Process(worker.process.pid).children():
        child.kill()
    in_the_middle(tasks, work.task)
    worker.process.terminate()

    assert worker.process.wait(30) == 0
    assert [attempt.outcome for attempt in tasks.read_task(work.task).value.attempts] == [AttemptEnd.HANDED_BACK]


@pytest.mark.parametrize("kind", [Collection])
def test_cancelled_task_stops_in_its_middle(work: Work, tasks: TaskQueue, start_worker: StartWorker) -> None:
    start_worker()
    in_the_middle(tasks, work.task)
    tasks.cancel_task(work.task)

    assert ended(tasks, work.task).state is TaskState.CANCELLED


def test_tasks_end_although_every_message_was_lost(
    store: Store, tasks: TaskQueue, start_worker: StartWorker, tmp_path: Path
) -> None:
    start_worker()
    realms = [make_realm(store, f"realm-{number}") for number in range(5)]
    waiting = [tasks.submit_task("gc", realm=realm.id, realm_key=realm.key).id for realm in realms]
    lost = _lose_messages(tmp_path / "store.db-broker", seconds=3)
    assert lost

    assert {ended(tasks, task_id).state for task_id in waiting} == {TaskState.SUCCEEDED}


def _lose_messages(folder: Path, *, seconds: float) -> int:
    lost, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        for message in folder.glob("*.msg"):
            message.unlink(missing_ok=True)
            lost += 1
    return lost
