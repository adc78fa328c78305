"""Tasks that the command line does itself end as a worker's would."""

from __future__ import annotations

import os
import signal
import threading
from typing import Any

import pytest

from headwater import Store
from headwater.cli.cli_session import print_note
from headwater.errors import FencedError, InterruptedWorkError, NotFoundError, RefusedError, UnavailableError
from headwater.exits import exit_code
from headwater.jobs.local_tasks import TaskAudience, run_task_here
from headwater.store import ObjectId, id_text
from headwater.tasks import LeaseWatch, TaskLease, TaskNotReadyError, TaskQueue

AUDIENCE = TaskAudience("command line", print_note)


@pytest.fixture
def task_id(store: Store) -> ObjectId:
    return TaskQueue(store).submit_task("gc", realm="acme").id


def test_work_that_ends_finishes_its_task(store: Store, task_id: ObjectId) -> None:
    ended = run_task_here(AUDIENCE, store, task_id, lambda claim: {"deleted": 7})

    assert (ended.value.state, ended.value.outcome) == ("SUCCEEDED", {"deleted": 7})


def test_user_without_a_name_does_a_task(store: Store, task_id: ObjectId, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 2_000_000_001)  # as a container may have one
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)

    ended = run_task_here(AUDIENCE, store, task_id, lambda claim: {"owner": claim.task.owner})

    assert ended.value.outcome is not None
    assert ended.value.outcome["owner"].startswith("headwater@")


def test_interrupt_hands_the_task_back(store: Store, task_id: ObjectId) -> None:
    def work(claim: TaskLease) -> dict[str, Any]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_task_here(AUDIENCE, store, task_id, work)

    task = TaskQueue(store).read_task(task_id).value
    assert (task.state, task.failures, task.attempts[-1].outcome) == ("WAITING", 0, "HANDED_BACK")


def test_command_told_to_end_hands_its_task_back(store: Store, task_id: ObjectId) -> None:
    def work(claim: TaskLease) -> dict[str, Any]:
        os.kill(os.getpid(), signal.SIGTERM)
        claim.check_stop()
        raise AssertionError("the check lets it go on")

    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(InterruptedWorkError, match="was handed back: the command line received SIGTERM") as interrupted:
        run_task_here(AUDIENCE, store, task_id, work)
    assert exit_code(interrupted.value) == 130

    task = TaskQueue(store).read_task(task_id).value
    assert (task.state, task.failures, task.attempts[-1].outcome) == ("WAITING", 0, "HANDED_BACK")
    assert signal.getsignal(signal.SIGTERM) is before


def test_work_whose_jvm_ends_by_the_same_signal_is_handed_back(store: Store, task_id: ObjectId) -> None:
    def work(claim: TaskLease) -> dict[str, Any]:
        os.kill(os.getpid(), signal.SIGTERM)
        raise UnavailableError("the Spark job failed: its JVM is gone")

    with pytest.raises(InterruptedWorkError, match="received SIGTERM"):
        run_task_here(AUDIENCE, store, task_id, work)

    task = TaskQueue(store).read_task(task_id).value
    assert (task.state, task.failures, task.attempts[-1].outcome) == ("WAITING", 0, "HANDED_BACK")


def test_work_that_has_to_wait_is_left_to_a_worker(store: Store, task_id: ObjectId) -> None:
    def work(claim: TaskLease) -> dict[str, Any]:
        raise TaskNotReadyError("the realm sleeps")

    with pytest.raises(RefusedError, match=r"waits, and a worker continues it .*: the realm sleeps"):
        run_task_here(AUDIENCE, store, task_id, work)
    assert TaskQueue(store).read_task(task_id).value.attempts[-1].outcome == "PUT_OFF"


@pytest.mark.parametrize(
    ("error", "state"),
    [
        (UnavailableError("later"), "WAITING"),
        (RefusedError("never"), "FAILED"),
        (NotFoundError("no folder"), "FAILED"),
        (ValueError("oops"), "FAILED"),
    ],
)
def test_failure_is_told_to_the_task_and_to_the_caller(store: Store, task_id: ObjectId, error: Exception, state: str) -> None:
    def work(claim: TaskLease) -> dict[str, Any]:
        raise error

    with pytest.raises(type(error)):
        run_task_here(AUDIENCE, store, task_id, work)

    task = TaskQueue(store).read_task(task_id).value
    assert task.state == state
    assert str(error) in task.error


def test_work_that_is_cancelled_stops_at_its_next_check(store: Store, task_id: ObjectId) -> None:
    def work(claim: TaskLease) -> dict[str, Any]:
        TaskQueue(store).cancel_task(task_id)
        claim.heartbeat()
        claim.check_stop()
        raise AssertionError("the check lets a cancelled task go on")

    with pytest.raises(RefusedError, match="ended as CANCELLED"):
        run_task_here(AUDIENCE, store, task_id, work)


def test_work_that_was_taken_over_touches_nothing_more(store: Store, task_id: ObjectId) -> None:
    def work(claim: TaskLease) -> dict[str, Any]:
        watch = LeaseWatch(store.clock, 0)
        for _ in range(2):
            TaskQueue(store).claim_task(task_id, "another worker", watch)
        claim.check_stop()
        raise AssertionError("the check lets a fenced attempt go on")

    with pytest.raises(FencedError):
        run_task_here(AUDIENCE, store, task_id, work)
    assert TaskQueue(store).read_task(task_id).value.owner == "another worker"


def test_task_that_a_worker_does_is_seen_through(store: Store, task_id: ObjectId) -> None:
    claim = TaskQueue(store).claim_task(task_id, "worker", LeaseWatch(store.clock, 60))
    worker = threading.Timer(0.3, claim.finish_task, [{"deleted": 1}])
    worker.start()

    ended = run_task_here(AUDIENCE, store, task_id, lambda claim: pytest.fail("it is another's"))

    worker.join()
    assert ended.value.outcome == {"deleted": 1}


def test_command_that_did_nothing_tells_what_still_waits(
    store: Store, task_id: ObjectId, capsys: pytest.CaptureFixture[str]
) -> None:
    def work(claim: TaskLease) -> dict[str, Any]:
        raise UnavailableError("a collection is sweeping")

    with pytest.raises(UnavailableError):
        run_task_here(AUDIENCE, store, task_id, work)

    assert f"`headwater task cancel {id_text(task_id)}` calls it off" in capsys.readouterr().err


def test_refused_work_leaves_nothing_waiting(store: Store, task_id: ObjectId, capsys: pytest.CaptureFixture[str]) -> None:
    def work(claim: TaskLease) -> dict[str, Any]:
        raise NotFoundError("no such commit")

    with pytest.raises(NotFoundError):
        run_task_here(AUDIENCE, store, task_id, work)

    assert capsys.readouterr().err == ""
