"""A task that is run in the process that asks for it, by the same protocol as in a worker: submit, claim, heartbeat, end."""

from __future__ import annotations

import getpass
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import FrameType
from typing import Any

from headwater.catalogs import HEADWATER
from headwater.errors import (
    DamagedFileError,
    FencedError,
    HeadwaterError,
    InterruptedWorkError,
    NotFoundError,
    RefusedError,
    UnavailableError,
)
from headwater.store import ObjectId, Store, Versioned, id_text
from headwater.tasks import LeaseVerdict, LeaseWatch, Task, TaskLease, TaskNotReadyError, TaskQueue, TaskState, TaskStoppedError
from headwater.throttle import ProgressCallback, no_progress

LOOK_SECONDS = 0.5


def person() -> str:
    """Returns the user name of the process, or ``headwater`` for a user id without a name."""
    try:
        return getpass.getuser() or HEADWATER
    except (OSError, KeyError, ImportError):  # a user id without a name, as containers may have
        return HEADWATER


@dataclass(frozen=True, slots=True)
class TaskAudience:
    """Whom a task that runs here is told to.

    asked_by      the kind of program, such as ``command line``
    warn          takes a sentence that its user should know
    observe       takes the task at each heartbeat
    progress      takes how far the work is, each time that it tells
    """

    asked_by: str
    warn: Callable[[str], None]
    observe: Callable[[Task], None] = lambda task: None
    progress: ProgressCallback = no_progress


def run_task_here(
    audience: TaskAudience, store: Store, task_id: ObjectId, work: Callable[[TaskLease], dict[str, Any]]
) -> Versioned[Task]:
    """Run a submitted task in this process, or wait for the worker that runs it; returns the ended task.

    work          does what the claim's task asks for, and returns its outcome

    After SIGTERM the work stops at its next check, and the task is handed back.

    raises        what ``work`` raises, after the failure was recorded in the task; what the audience's ``progress`` raises, after the
                  task was handed back; RefusedError for a task that failed or was cancelled elsewhere; UnavailableError for one that
                  was handed back
    """
    tasks = TaskQueue(store)
    claim = _claim(audience, store, tasks, task_id)
    if claim is None:
        return _ended(tasks.read_task(task_id))
    listener = _ProgressListener(audience, claim)
    claim.listen(listener)
    with _heartbeats(audience, store, claim), _ends_when_told(audience, claim) as signals:
        try:
            outcome = work(claim)
        except FencedError:
            raise
        except TaskStoppedError:
            claim.end_stopped()
            if listener.fault is not None:
                _tell_what_waits(audience, tasks, task_id)
                raise listener.fault from None
        except TaskNotReadyError as not_yet:
            claim.put_off(str(not_yet), not_yet.seconds)
            raise RefusedError(
                f"task {id_text(task_id)} waits, and a worker continues it (or cancel it): {not_yet}"
            ) from not_yet
        except KeyboardInterrupt:
            claim.hand_back(f"interrupted at the {audience.asked_by}")
            _tell_what_waits(audience, tasks, task_id)
            raise
        except HeadwaterError as error:
            if claim.stop_reason and isinstance(error, UnavailableError):  # what the work used ends with it, such as a JVM
                claim.end_stopped()
            else:
                claim.fail_task(str(error), retry=not isinstance(error, RefusedError | NotFoundError | DamagedFileError))
                _tell_what_waits(audience, tasks, task_id)
                raise
        except Exception as bug:
            claim.fail_task(f"{type(bug).__name__}: {bug}", retry=False)
            raise
        else:
            _finish(claim, outcome)
            if listener.fault is not None:
                audience.warn(f"{listener.told}; the work was done by then")
    return _ended(tasks.read_task(task_id), is_interrupted=bool(signals))


class _ProgressListener:
    """Tells an audience how far the work is. An error that this raises is no error of the work: it asks the work to stop.

    fault         the error, after which nothing is told any more
    """

    def __init__(self, audience: TaskAudience, claim: TaskLease) -> None:
        self._audience = audience
        self._claim = claim
        self.fault: Exception | None = None

    def __call__(self, done: int, total: int, unit: str) -> None:
        if self.fault is not None:
            return
        try:
            self._audience.progress(done, total, unit)
        except Exception as fault:  # noqa: BLE001  raised again by whoever runs the task
            self.fault = fault
            self._claim.request_stop(self.told)

    @property
    def told(self) -> str:
        return f"what was told of its progress raised {type(self.fault).__name__}: {self.fault}"


def _finish(claim: TaskLease, outcome: dict[str, Any]) -> None:
    """Record the end of the work. Only an outcome that a task cannot hold fails it; if the end cannot be written, the lease expires."""
    try:
        claim.finish_task(outcome)
    except RefusedError as refused:
        claim.fail_task(str(refused), retry=False)
        raise


def _tell_what_waits(audience: TaskAudience, tasks: TaskQueue, task_id: ObjectId) -> None:
    """After a failed command, warn if its task is still active, because a worker will run it."""
    task = id_text(task_id)
    if tasks.read_task(task_id).value.is_active:
        audience.warn(
            f"task {task} waits: a worker continues it, or the same command does; `headwater task cancel {task}` calls it off"
        )


def _claim(audience: TaskAudience, store: Store, tasks: TaskQueue, task_id: ObjectId) -> TaskLease | None:
    """Claim the task, waiting while another process has it; None when that process has ended it."""
    watch = LeaseWatch(store.clock, store.settings.task_lease_seconds)
    owner = f"{person()}@{socket.gethostname()}:{os.getpid()} ({audience.asked_by})"
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
            audience.warn(f"task {id_text(task_id)} is being done by {task.owner or 'a worker'}; waiting for its end")
        audience.observe(task)
        if task.progress is not None:
            audience.progress(task.progress.done, task.progress.total or 0, task.progress.unit)
        store.clock.sleep(LOOK_SECONDS)


def _ended(row: Versioned[Task], *, is_interrupted: bool = False) -> Versioned[Task]:
    task = row.value
    if task.state is TaskState.SUCCEEDED:
        return row
    if task.is_active:
        raise (InterruptedWorkError if is_interrupted else UnavailableError)(
            f"task {id_text(row.id)} ({task}) was handed back: {task.error}; a worker continues it, or run the same command again"
        )
    raise RefusedError(f"task {id_text(row.id)} ({task}) ended as {task.state}" + (f": {task.error}" if task.error else ""))


@contextmanager
def _ends_when_told(audience: TaskAudience, claim: TaskLease) -> Iterator[list[int]]:
    """Make SIGTERM ask the work to stop: a task that is dropped would wait until its lease expires. Yields the signals that came."""
    signals: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield signals  # only the main thread may take signals
        return

    def note(number: int, frame: FrameType | None) -> None:
        signals.append(number)
        claim.request_stop(f"the {audience.asked_by} received SIGTERM")

    before = signal.signal(signal.SIGTERM, note)
    try:
        yield signals
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _heartbeats(audience: TaskAudience, store: Store, claim: TaskLease) -> Iterator[None]:
    done = threading.Event()

    def beat() -> None:
        while not done.wait(store.settings.task_heartbeat_seconds):
            try:
                verdict = claim.heartbeat()
            except HeadwaterError as error:
                audience.warn(f"no heartbeat for task {id_text(claim.id)}: {error}")
                continue
            if verdict is not LeaseVerdict.GO_ON:
                return  # the work finds out by its next check
            audience.observe(claim.task)

    thread = threading.Thread(target=beat, name="heartbeat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
