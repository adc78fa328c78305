"""A task: one updateable object that coordinates one piece of work, its states, and its compare-and-swap.

A task carries plain data of bounded size, which is equal after every trip through the store. Its transitions are pure functions from
the task as it was read to the task as it is to be written. ``swap_task`` and ``change_task`` find out whether a swap was applied when
the database did not say.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from enum import StrEnum
from typing import Any

import msgspec
from msgspec.structs import replace

from headwater.clock import Micros
from headwater.errors import RefusedError, SwapConflictError, UnavailableError, UnknownOutcomeError
from headwater.store import ObjectId, RealmStore, StoredObject, StoredPart, Versioned, object_type

ARGUMENT_BYTES = 16 * 1024
OUTCOME_BYTES = 64 * 1024
ATTEMPTS_KEPT = 20
ERROR_CHARACTERS = 2000


def require_plain_data(data: dict[str, Any], what: str, *, limit_bytes: int) -> dict[str, Any]:
    """Returns the data if it is made of texts, numbers, booleans, None, lists and dictionaries with texts as keys.

    what          how a message names it, such as "outcome of task 0123456789abcdef"
    limit_bytes   the most that it may measure as JSON
    raises        RefusedError
    """
    _require_plain_value(data, what)
    size = len(msgspec.json.encode(data))
    if size > limit_bytes:
        raise RefusedError(
            f"{what} measures {size} bytes, and {limit_bytes} is the limit: give counts, names and ids, no payloads"
        )
    return data


def _require_plain_value(value: object, where: str) -> None:
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise RefusedError(f"{where} has the key {key!r}: keys must be texts")
            _require_plain_value(item, f"{where}: {key}")
    elif isinstance(value, list):
        for item in value:
            _require_plain_value(item, where)
    elif not (value is None or type(value) in (str, int, float, bool)):
        raise RefusedError(
            f"{where} holds a {type(value).__name__}: texts, numbers, booleans, None, lists and dictionaries are allowed"
        )


class TaskState(StrEnum):
    WAITING = "WAITING"
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    """Dead-lettered: it stays so until a person retries it."""
    CANCELLED = "CANCELLED"

    @property
    def is_active(self) -> bool:
        return self in (TaskState.WAITING, TaskState.RUNNING)


class AttemptEnd(StrEnum):
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    LOST = "LOST"
    """The worker's heartbeats stopped, and another worker took the task over."""
    HANDED_BACK = "HANDED_BACK"
    PUT_OFF = "PUT_OFF"
    """The work needs something that is not there yet. Consecutive attempts that were put off for one reason share one record."""
    CANCELLED = "CANCELLED"


class TaskProgress(StoredPart, frozen=True, kw_only=True):
    """How far an attempt is: ``done`` of ``total`` (None: not known yet), counted in ``unit``."""

    done: int = 0
    total: int | None = None
    unit: str = ""


class TaskAttempt(StoredPart, frozen=True, kw_only=True):
    """One try at a task.

    error         why it ended, unless it succeeded
    progress      how far it was, by its last report
    """

    known_by = ("number",)

    number: int
    owner: str = ""
    started: Micros = Micros(0)
    ended: Micros | None = None
    outcome: AttemptEnd = AttemptEnd.RUNNING
    error: str = ""
    progress: TaskProgress | None = None


class FollowUpTask(StoredPart, frozen=True, kw_only=True):
    """A task that is submitted when the one that carries it has succeeded: once, and only then."""

    kind: str
    realm: str
    realm_key: int = 0
    subject: str = ""
    arguments: dict[str, Any] = msgspec.field(default_factory=dict)
    delay_seconds: float = 0.0
    max_attempts: int | None = None


@object_type("task", updateable=True)
class Task(StoredObject, frozen=True, kw_only=True):
    """One piece of work.

    realm_key     the key that the realm had when the work was asked for; its body refuses a realm that has another one by now
    subject       a thing within the realm, such as a catalog; at most one active task has the same kind, realm and subject
    arguments     names and ids, never payloads
    attempt       the fencing token: it only grows, with every claim
    lease         a word drawn by each claim, so that a worker knows its own claim again after an unclear answer
    failures      attempts that failed or were lost since the task was submitted or retried
    beat          heartbeats of this attempt
    attempts      the last attempts, oldest first
    after         the task that this one follows up, a name only: it may have left the history
    retried       when a person last retried it, after it had ended
    """

    kind: str
    realm: str
    realm_key: int = 0
    subject: str = ""
    arguments: dict[str, Any] = msgspec.field(default_factory=dict)
    state: TaskState = TaskState.WAITING
    created: Micros = Micros(0)
    due: Micros = Micros(0)
    attempt: int = 0
    lease: str = ""
    owner: str = ""
    beat: int = 0
    progress: TaskProgress | None = None
    failures: int = 0
    max_attempts: int = 5
    stop_requested: bool = False
    attempts: tuple[TaskAttempt, ...] = ()
    outcome: dict[str, Any] | None = None
    finished: Micros | None = None
    follow_up: FollowUpTask | None = None
    after: ObjectId | None = None
    retried: Micros | None = None

    @property
    def is_active(self) -> bool:
        return self.state.is_active

    @property
    def current_progress(self) -> TaskProgress | None:
        """How far it is; None before anything was counted, and once it has ended: then its outcome says what came of it."""
        return self.progress if self.is_active else None

    @property
    def error(self) -> str:
        """The error of the last attempt, or an empty text."""
        return self.attempts[-1].error if self.attempts else ""

    def __str__(self) -> str:
        return f"{self.kind} of realm {self.realm!r}" + (f" ({self.subject})" if self.subject else "")


def begin_attempt(task: Task, *, owner: str, lease: str, now: Micros) -> Task:
    number = task.attempt + 1
    record = TaskAttempt(number=number, owner=owner, started=now)
    return replace(
        task,
        state=TaskState.RUNNING,
        attempt=number,
        owner=owner,
        lease=lease,
        beat=0,
        progress=None,
        attempts=(*task.attempts, record)[-ATTEMPTS_KEPT:],
    )


def record_heartbeat(task: Task, *, progress: TaskProgress | None) -> Task:
    """The task one heartbeat later."""
    return replace(record_progress(task, progress=progress), beat=task.beat + 1)


def record_progress(task: Task, *, progress: TaskProgress | None) -> Task:
    """The task with the progress that was reported last; None keeps the former."""
    return replace(task, progress=progress or task.progress)


def end_as_succeeded(task: Task, *, now: Micros, outcome: dict[str, Any], follow_up: FollowUpTask | None) -> Task:
    done = _closed(task, AttemptEnd.SUCCEEDED, now)
    return replace(done, state=TaskState.SUCCEEDED, outcome=outcome, follow_up=follow_up, finished=now, owner="")


def end_as_failed(task: Task, *, now: Micros, error: str, retry_at: Micros | None) -> Task:
    """The task after a failed attempt: due again at ``retry_at``, or dead-lettered when that is None or no attempt is left."""
    return _after_failure(_closed(task, AttemptEnd.FAILED, now, error), now=now, retry_at=retry_at)


def end_as_lost(task: Task, *, now: Micros, reason: str) -> Task:
    """The task after an attempt whose worker fell silent: due as before, which means now; or dead-lettered."""
    return _after_failure(_closed(task, AttemptEnd.LOST, now, reason), now=now, retry_at=task.due)


def end_as_handed_back(task: Task, *, now: Micros, reason: str) -> Task:
    """The task after an attempt that ended early through no fault of its own. Its due time stays, so that no index changes."""
    if task.stop_requested:
        return end_as_cancelled(task, now=now)
    return replace(_closed(task, AttemptEnd.HANDED_BACK, now, reason), state=TaskState.WAITING, owner="")


def end_as_put_off(task: Task, *, now: Micros, reason: str, until: Micros) -> Task:
    """The task after an attempt that lacked something it needs: due again at ``until``, and no failure."""
    if task.stop_requested:
        return end_as_cancelled(task, now=now)
    closed = _closed(task, AttemptEnd.PUT_OFF, now, reason)
    *earlier, last = closed.attempts
    if earlier and (earlier[-1].outcome, earlier[-1].error) == (last.outcome, last.error):
        last = replace(last, started=earlier.pop().started)
    return replace(closed, state=TaskState.WAITING, owner="", due=until, attempts=(*earlier, last))


def end_as_cancelled(task: Task, *, now: Micros) -> Task:
    closed = _closed(task, AttemptEnd.CANCELLED, now) if task.state is TaskState.RUNNING else task
    return replace(closed, state=TaskState.CANCELLED, finished=now, owner="")


def ask_to_stop(task: Task) -> Task:
    return replace(task, stop_requested=True)


def wait_again(task: Task, *, due: Micros) -> Task:
    return replace(
        task, state=TaskState.WAITING, due=due, retried=due, failures=0, stop_requested=False, finished=None, progress=None
    )


def amend_arguments(task: Task, *, arguments: dict[str, Any], due: Micros) -> Task:
    """The task with other arguments, due no sooner than before, so that its present index entries find it in time."""
    return replace(task, arguments=arguments, due=max(task.due, due))


def make_due(task: Task, *, now: Micros) -> Task:
    """The task, due by now. A running task is left as it is."""
    return task if task.state is TaskState.RUNNING or task.due <= now else replace(task, due=now)


def backoff_seconds(failures: int, *, first_seconds: float, limit_seconds: float, chance: float) -> float:
    """The wait after so many failures. It doubles up to the limit; ``chance`` from 0 to 1 makes it up to a fifth shorter or longer."""
    doubled = first_seconds * 2.0 ** min(failures - 1, 40)
    return min(doubled, limit_seconds) * (0.8 + 0.4 * chance)


def _after_failure(task: Task, *, now: Micros, retry_at: Micros | None) -> Task:
    counted = replace(task, failures=task.failures + 1, owner="")
    if counted.stop_requested:
        return replace(counted, state=TaskState.CANCELLED, finished=now)
    if retry_at is None or counted.failures >= counted.max_attempts:
        return replace(counted, state=TaskState.FAILED, finished=now)
    return replace(counted, state=TaskState.WAITING, due=retry_at)


def _closed(task: Task, outcome: AttemptEnd, now: Micros, error: str = "") -> Task:
    *earlier, last = task.attempts
    ended = Micros(max(now, last.started))
    record = replace(last, ended=ended, outcome=outcome, error=error[:ERROR_CHARACTERS], progress=task.progress)
    return replace(task, attempts=(*earlier, record))


def swap_task(rows: RealmStore, seen: Versioned[Task], new: Task, *, is_mine: Callable[[Task], bool]) -> Versioned[Task]:
    """Swap the task that was seen for the new one.

    The database may have applied the swap although its answer was lost. The swap is then repeated until it is refused, and the object
    shows whose swap won. Ours is written once more: a failover may take back what only a read has shown.

    is_mine       whether a task shows that this swap was applied, also when others have changed it since
    raises        SwapConflictError when another swap was applied; UnknownOutcomeError when the commit time-out ends first
    """
    unclear: UnknownOutcomeError | None = None
    ends = rows.clock.monotonic() + rows.settings.commit_timeout_seconds
    wait = rows.settings.commit_backoff_seconds
    while True:
        try:
            return rows.update_object(seen, new)
        except UnknownOutcomeError as error:
            unclear = error
        except SwapConflictError:
            if unclear is None:
                raise
            current = _find(rows, seen.id)
            if current is not None:
                if not is_mine(current.value):
                    raise
                with suppress(SwapConflictError, UnknownOutcomeError, UnavailableError):
                    return rows.confirm_object(current)
        except UnavailableError:
            if unclear is None:
                raise
        if rows.clock.monotonic() > ends:
            raise unclear
        rows.clock.sleep(wait)
        wait = min(wait * 2, rows.settings.commit_backoff_limit_seconds)


def change_task(rows: RealmStore, task_id: ObjectId, change: Callable[[Versioned[Task]], Task]) -> Versioned[Task]:
    """Apply ``change`` to the task as it is, again after every lost or unclear swap: it must do nothing the second time.

    raises        NotFoundError; UnknownOutcomeError when the commit time-out ends first
    """
    unclear: UnknownOutcomeError | None = None
    ends = rows.clock.monotonic() + rows.settings.commit_timeout_seconds
    while True:
        try:
            seen = rows.read_versioned(task_id, Task)
            new = change(seen)
            # After an unclear answer also what is as it should be is written: only a read has shown it.
            return seen if new == seen.value and unclear is None else rows.update_object(seen, new)
        except (SwapConflictError, UnknownOutcomeError, UnavailableError) as fault:
            if isinstance(fault, UnknownOutcomeError):
                unclear = fault
            elif isinstance(fault, UnavailableError) and unclear is None:
                raise
            if rows.clock.monotonic() > ends:
                raise unclear or fault from None
        rows.clock.sleep(rows.settings.commit_backoff_seconds)


def _find(rows: RealmStore, task_id: ObjectId) -> Versioned[Task] | None:
    """The task as it is now; None when the database does not answer."""
    try:
        return rows.read_versioned(task_id, Task)
    except UnavailableError:
        return None
