"""Tasks that run in this process, by the same protocol as in a worker: submit, claim, heartbeat, end."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from headwater.cli.cli_session import CliSession, person
from headwater.cli.task_commands import TASK
from headwater.errors import FencedError, HeadwaterError, NotFoundError, RefusedError, UnavailableError
from headwater.store import ObjectId, Store, Versioned, id_text
from headwater.tasks import LeaseVerdict, LeaseWatch, Task, TaskLease, TaskNotReadyError, TaskQueue, TaskState, TaskStoppedError

LOOK_SECONDS = 0.5


def run_or_detach(
    session: CliSession,
    store: Store,
    task_id: ObjectId,
    body: Callable[[Store, TaskLease], dict[str, Any]],
    *,
    detach: bool,
) -> dict[str, Any] | None:
    """Run a submitted task here, and return its outcome; or show it and leave it to a worker, and return None."""
    if detach:
        session.show(TASK, TaskQueue(store).read_task(task_id))
        return None
    return run_task_here(session, store, task_id, lambda claim: body(store, claim)).value.outcome or {}


def other_task_error(task: Versioned[Task], how: str = "") -> RefusedError:
    """The refusal to take a task that is under way, perhaps for somebody else, for the one that is asked for.

    how           in what it differs; default is its arguments
    """
    how = how or f"with {task.value.arguments}"
    return RefusedError(f"task {id_text(task.id)} ({task.value}) is under way {how}: wait for it, or cancel it")


def run_task_here(
    session: CliSession, store: Store, task_id: ObjectId, work: Callable[[TaskLease], dict[str, Any]]
) -> Versioned[Task]:
    """Run a submitted task in this process, or wait for the worker that runs it; returns the ended task.

    work          does what the claim's task asks for, and returns its outcome

    After SIGTERM the work stops at its next check, and the task is handed back.

    raises        what ``work`` raises, after the failure was recorded in the task; RefusedError for a task that failed or was cancelled
                  elsewhere; UnavailableError for one that was handed back
    """
    tasks = TaskQueue(store)
    claim = _claim(session, store, tasks, task_id)
    if claim is None:
        return _ended(tasks.read_task(task_id))
    with _heartbeats(session, store, claim), _ends_when_told(claim):
        try:
            outcome = work(claim)
        except FencedError:
            raise
        except TaskStoppedError:
            claim.end_stopped()
        except TaskNotReadyError as not_yet:
            claim.put_off(str(not_yet), not_yet.seconds)
            raise RefusedError(
                f"task {id_text(task_id)} waits, and a worker continues it (or cancel it): {not_yet}"
            ) from not_yet
        except KeyboardInterrupt:
            claim.hand_back("interrupted at the command line")
            _tell_what_waits(session, tasks, task_id)
            raise
        except HeadwaterError as error:
            claim.fail_task(str(error), retry=not isinstance(error, RefusedError | NotFoundError))
            _tell_what_waits(session, tasks, task_id)
            raise
        except Exception as bug:
            claim.fail_task(f"{type(bug).__name__}: {bug}", retry=False)
            raise
        else:
            _finish(claim, outcome)
    return _ended(tasks.read_task(task_id))


def _finish(claim: TaskLease, outcome: dict[str, Any]) -> None:
    """Record the end of the work. Only an outcome that a task cannot hold fails it; if the end cannot be written, the lease expires."""
    try:
        claim.finish_task(outcome)
    except RefusedError as refused:
        claim.fail_task(str(refused), retry=False)
        raise


def _tell_what_waits(session: CliSession, tasks: TaskQueue, task_id: ObjectId) -> None:
    """After a failed command, warn if its task is still active, because a worker will run it."""
    task = id_text(task_id)
    if tasks.read_task(task_id).value.is_active:
        session.warn(
            f"task {task} waits: a worker continues it, or the same command does; `headwater task cancel {task}` calls it off"
        )


def _claim(session: CliSession, store: Store, tasks: TaskQueue, task_id: ObjectId) -> TaskLease | None:
    """Claim the task, waiting while another process has it; None when that process has ended it."""
    watch = LeaseWatch(store.clock, store.settings.task_lease_seconds)
    owner = f"{person()}@{socket.gethostname()}:{os.getpid()} (command line)"
    is_told = False
    while True:
        task = tasks.read_task(task_id).value
        if not task.is_active:
            return None
        if task.state is TaskState.WAITING and task.due > store.clock.now():
            with suppress(RefusedError):  # it has ended meanwhile: the next look tells
                tasks.run_now(task_id)
        claim = tasks.claim_task(task_id, owner, watch)
        if claim is not None:
            return claim
        if not is_told:
            is_told = True
            session.warn(f"task {id_text(task_id)} is being done by {task.owner or 'a worker'}; waiting for its end")
        store.clock.sleep(LOOK_SECONDS)


def _ended(row: Versioned[Task]) -> Versioned[Task]:
    task = row.value
    if task.state is TaskState.SUCCEEDED:
        return row
    if task.is_active:
        raise UnavailableError(
            f"task {id_text(row.id)} ({task}) was handed back: {task.error}; a worker continues it, or run the same command again"
        )
    raise RefusedError(f"task {id_text(row.id)} ({task}) ended as {task.state}" + (f": {task.error}" if task.error else ""))


@contextmanager
def _ends_when_told(claim: TaskLease) -> Iterator[None]:
    """Make SIGTERM ask the work to stop: a task that is dropped would wait until its lease expires."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may take signals
        return
    before = signal.signal(signal.SIGTERM, lambda number, frame: claim.request_stop("the command line received SIGTERM"))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _heartbeats(session: CliSession, store: Store, claim: TaskLease) -> Iterator[None]:
    done = threading.Event()

    def beat() -> None:
        while not done.wait(store.settings.task_heartbeat_seconds):
            try:
                verdict = claim.heartbeat()
            except HeadwaterError as error:
                session.warn(f"no heartbeat for task {id_text(claim.id)}: {error}")
                continue
            if verdict is not LeaseVerdict.GO_ON:
                return  # the work finds out by its next check
            progress = claim.task.progress
            if progress is not None and session.is_interactive:
                of = f" of {progress.total}" if progress.total is not None else ""
                session.warn(f"{claim.task}: {progress.done}{of} {progress.unit}".rstrip())

    thread = threading.Thread(target=beat, name="heartbeat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
