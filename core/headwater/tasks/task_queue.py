"""The tasks of a store: submit, claim, cancel, retry and list them."""

from __future__ import annotations

import builtins
import contextlib
import random
import secrets
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar, Unpack

import structlog

from headwater.clock import Micros
from headwater.commits import Head, Transaction, commit_change, complete_operation, read_head
from headwater.errors import CorruptionError, HeadwaterError, NotFoundError, RefusedError, SwapConflictError
from headwater.index import IndexValue
from headwater.settings import check_count, check_time
from headwater.store import ObjectId, ReadableRows, Store, Versioned, id_text
from headwater.tasks.task import (
    ARGUMENT_BYTES,
    Task,
    TaskState,
    amend_arguments,
    ask_to_stop,
    begin_attempt,
    change_task,
    end_as_cancelled,
    end_as_lost,
    make_due,
    require_plain_data,
    swap_task,
    wait_again,
)
from headwater.tasks.task_index import (
    DUE,
    FINISHED,
    READ_AT_ONCE,
    REFERENCE,
    UNIQUE,
    TaskFigures,
    TaskQuery,
    active_holder,
    add_task,
    check_retry,
    due_of_key,
    due_of_retry,
    forget_task_entry,
    last_tasks_of_realm,
    list_for_retry,
    matching_tasks,
    place_taken,
    read_task_figures,
    settle_task_entry,
    task_figures_of,
    task_places_of,
    tasks_named,
    time_key,
    unique_key,
    unreadable_task,
)
from headwater.tasks.task_lease import LeaseEvidence, LeaseExpiry, LeaseWatch, TaskLease

FORGOTTEN_AT_ONCE = 500
NOBODY_WATCHED = LeaseExpiry(None)

R = TypeVar("R")

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class SubmittedTask:
    """``created`` is False when a task of the same kind, realm and subject is active already: then ``id`` is that one's."""

    id: ObjectId
    created: bool


@dataclass(frozen=True, slots=True)
class ClaimableTask:
    """A task that ``claim_task`` would get now.

    version       the token of the task as it was read: every change of the task gives it another one
    token         of a running task, which had it for a whole lease; None for a waiting one
    """

    id: ObjectId
    kind: str
    version: str
    token: str | None = None


@dataclass(slots=True)
class DueWindow:
    """Where the looks of one process have got to in a long list of due tasks: each reads the next ones, and begins again at the end.

    size          how many due tasks a look reads
    start         the key that the next look begins at; empty at the beginning of a round
    """

    size: int = READ_AT_ONCE
    start: bytes = b""


class TaskQueue:
    """The tasks of a store. The database is the truth; messages between processes only say where to look.

    chance        returns a number from 0 to 1 for each back-off, so that tasks that failed together do not return together
    """

    def __init__(self, store: Store, *, chance: Callable[[], float] = random.random) -> None:
        self._rows = store.system
        self._clock = store.clock
        self._settings = store.settings
        self._chance = chance
        self._logged: set[ObjectId] = set()

    def submit_task(
        self,
        kind: str,
        *,
        realm: str,
        realm_key: int = 0,
        subject: str = "",
        arguments: Mapping[str, Any] | None = None,
        due: Micros | None = None,
        max_attempts: int | None = None,
    ) -> SubmittedTask:
        """Ask for a piece of work, unless it is asked for already.

        arguments     names and ids: plain data of at most 16 KiB
        due           not before this time; default: now
        max_attempts  failed or lost attempts until it is dead-lettered; default: the setting
        raises        RefusedError for invalid arguments
        """
        check_time(due, f"due of {kind} of realm {realm!r}")
        check_count(max_attempts, f"max_attempts of {kind} of realm {realm!r}")
        now = self._clock.now()
        task = Task(
            kind=kind,
            realm=realm,
            realm_key=realm_key,
            subject=subject,
            arguments=require_plain_data(
                dict(arguments or {}), f"arguments of {kind} of realm {realm!r}", limit_bytes=ARGUMENT_BYTES
            ),
            created=now,
            due=now if due is None else due,
            max_attempts=self._settings.task_attempts if max_attempts is None else max_attempts,
        )

        def change(tx: Transaction) -> SubmittedTask:
            holder = active_holder(tx, unique_key(kind, realm, subject))
            if holder is not None:
                return SubmittedTask(holder, created=False)
            return SubmittedTask(add_task(tx, task), created=True)

        return self._commit(change, f"submit {task}")

    def cancel_task(self, task_id: ObjectId, *, carrying: Mapping[str, Any] | None = None) -> Task:
        """Cancel a waiting task now; ask the worker of a running one to stop, which its next heartbeat tells it.

        carrying      the arguments that it must still have, or it was amended for another caller; None: any
        returns       the task: CANCELLED, or RUNNING with the request
        raises        NotFoundError; RefusedError when it has ended, or carries other arguments
        """

        def change(seen: Versioned[Task]) -> Task:
            if carrying is not None and seen.value.arguments != carrying:
                raise self._refused(seen, "it was amended since, and is not cancelled")
            match seen.value.state:
                case TaskState.CANCELLED:
                    return seen.value
                case TaskState.WAITING:
                    return end_as_cancelled(seen.value, now=self._clock.now())
                case TaskState.RUNNING:
                    return ask_to_stop(seen.value)
            raise self._refused(seen, "only a waiting or running task can be cancelled")

        return self._change(task_id, change)

    def retry_task(self, task_id: ObjectId, *, arguments: Callable[[Task], Mapping[str, Any]] | None = None) -> Task:
        """Let a dead-lettered or cancelled task wait again, with all its attempts before it, due now.

        arguments     makes the new arguments from the task as it is; None: keep them
        raises        NotFoundError; RefusedError when it is neither, or for invalid arguments; ConflictError when another task is active
                      in its place; UnknownOutcomeError when the retry was decided and the task may not show it yet, or when the task has
                      its new arguments and is not retried
        """
        seen = self._require_ended(self.read_task(task_id))
        if arguments is None:
            return self._retry(task_id)
        # Before the first write: an error after it cannot say that nothing happened.
        check_retry(self._rows, self._head(), seen)
        change_task(self._rows, task_id, lambda seen: self._with_arguments(self._require_ended(seen), arguments, due=Micros(0)))

        def go_on() -> Task:
            task = self.read_task(task_id).value
            return task if task.is_active else self._retry(task_id)

        # first the arguments, then the retry: a worker may claim the task as soon as it waits
        done = f"task {id_text(task_id)} has other arguments, and may not be tried again: retry it"
        return complete_operation(self._rows, go_on, done=done)

    def _retry(self, task_id: ObjectId) -> Task:
        seen = self._require_ended(self.read_task(task_id))
        task = seen.value

        def change(tx: Transaction) -> None:
            holder = active_holder(tx, unique_key(task.kind, task.realm, task.subject))
            if holder is None:
                list_for_retry(tx, seen, due=self._clock.now())
            elif holder != task_id:
                raise place_taken(seen, holder)

        self._commit(change, f"retry {task}")
        done = f"task {id_text(task_id)} ({task}) will be tried again, and may not show it yet: look at it"
        return self._follow(task_id, done)

    def _require_ended(self, seen: Versioned[Task]) -> Versioned[Task]:
        if seen.value.state is TaskState.SUCCEEDED or seen.value.is_active:
            raise self._refused(seen, "only a dead-lettered or cancelled task can be retried")
        return seen

    @staticmethod
    def _with_arguments(seen: Versioned[Task], arguments: Callable[[Task], Mapping[str, Any]], *, due: Micros) -> Task:
        given = dict(arguments(seen.value))
        require_plain_data(given, f"arguments of {seen.value}", limit_bytes=ARGUMENT_BYTES)
        return amend_arguments(seen.value, arguments=given, due=due)

    def amend_task(self, task_id: ObjectId, arguments: Callable[[Task], Mapping[str, Any]], *, due: Micros) -> Task:
        """Give a waiting task other arguments and a later due time in one swap. A task in another state is left alone.

        arguments     makes the new arguments from the task as it is
        due           the new due time; an earlier one than the task has is ignored, for a worker could miss it
        returns       the task: WAITING where it was amended
        raises        NotFoundError; RefusedError for invalid arguments; what ``arguments`` raises
        """

        check_time(due, f"due of task {id_text(task_id)}")

        def change(seen: Versioned[Task]) -> Task:
            task = seen.value
            if task.state is not TaskState.WAITING:
                return task
            return self._with_arguments(seen, arguments, due=due)

        return self._change(task_id, change)

    def run_now(self, task_id: ObjectId) -> Task:
        """Make a waiting task due now. A running task is left alone.

        raises        NotFoundError; RefusedError when it has ended
        """

        def change(seen: Versioned[Task]) -> Task:
            if not seen.value.is_active:
                raise self._refused(seen, "only a waiting task can be run now")
            return make_due(seen.value, now=self._clock.now())

        self.read_task(task_id)
        change_task(self._rows, task_id, change)
        # not left to the next look, which asks the entries what is due
        return self._follow(task_id, f"task {id_text(task_id)} is due now, and may be listed as due later: ask for it again")

    def find_claimable(self, watch: LeaseWatch, *, window: DueWindow | None = None) -> builtins.list[ClaimableTask]:
        """List the tasks that could be claimed now, the longest due first. Repairs entries that contradict their task.

        watch         this process's memory of running tasks: a silent one is found a lease after it was first seen
        window        reads the due tasks of this window, which is moved on, and the running ones that are watched; None: all due tasks
        """
        found: list[ClaimableTask] = []
        running: set[ObjectId] = set()
        now, read = self._clock.now(), set[ObjectId]()
        for key, task_id, asked, seen in self._due_tasks(before=now, window=window):
            read.add(task_id)
            if seen is None:
                log.error("task is listed but not there: run `headwater fsck`", task=id_text(task_id))
            elif isinstance(seen, CorruptionError):
                self._tell_unreadable(task_id, seen)
            elif not seen.value.is_active or seen.value.due != due_of_key(key):
                self._settle_later(task_id)
            else:
                found += self._claimable(seen, asked, watch, running)
        if window is not None:
            found += self._claimable_of(watch.watched_ids() - read, watch, running)
        watch.keep_only(running)
        return found

    def check_claimable(self, task_ids: Collection[ObjectId], watch: LeaseWatch) -> builtins.list[ClaimableTask]:
        """Read tasks again that were found claimable some time ago. Returns those that still are, in the order given."""
        return self._claimable_of(task_ids, watch, set())

    def _claimable_of(
        self, task_ids: Collection[ObjectId], watch: LeaseWatch, running: set[ObjectId]
    ) -> builtins.list[ClaimableTask]:
        asked, now = self._clock.monotonic(), self._clock.now()
        seen = self._rows.read_each_versioned(list(task_ids), Task) if task_ids else []
        readable = [task for task in seen if isinstance(task, Versioned) and task.value.is_active and task.value.due <= now]
        return [found for task in readable for found in self._claimable(task, asked, watch, running)]

    @staticmethod
    def _claimable(seen: Versioned[Task], asked: float, watch: LeaseWatch, running: set[ObjectId]) -> Iterator[ClaimableTask]:
        """A due task, if it could be claimed. A running one is added to ``running``."""
        if seen.value.state is TaskState.WAITING:
            yield ClaimableTask(seen.id, seen.value.kind, seen.token)
            return
        running.add(seen.id)
        if watch.observe(seen.id, seen.token, asked=asked):
            yield ClaimableTask(seen.id, seen.value.kind, seen.token, seen.token)

    def claim_task(self, task_id: ObjectId, owner: str, watch: LeaseEvidence = NOBODY_WATCHED) -> TaskLease | None:
        """Begin the next attempt of a task that waits and is due, or whose worker has fallen silent.

        owner         the name of the worker, for people to read
        watch         evidence that a running task's token was unchanged for its lease; by default there is none
        returns       None when there is nothing to do: it runs, is not due, has ended, or was taken by another worker just now
        raises        NotFoundError; UnknownOutcomeError: the attempt may have begun, and will be given up as lost
        """
        seen = self.read_task(task_id)
        now = self._clock.now()
        free = self._freed(seen, now, watch)
        if free is None:
            return None
        lease = secrets.token_hex(8)
        new = begin_attempt(free, owner=owner, lease=lease, now=now) if free.is_active else free
        try:
            swapped = swap_task(
                self._rows, seen, new, is_mine=lambda task: task == new or (task.lease == lease and task.is_active)
            )
        except SwapConflictError:
            return None
        if swapped.value.state is not TaskState.RUNNING:
            self._settle_later(task_id)
            return None
        return TaskLease(self._rows, swapped, settle=self._settle_later, chance=self._chance)

    def _freed(self, seen: Versioned[Task], now: Micros, watch: LeaseEvidence) -> Task | None:
        """The task as the next attempt finds it, or None. The silent attempt of a running task ends as lost, and may be its last."""
        task = seen.value
        if task.state is TaskState.WAITING:
            return task if task.due <= now else None
        if task.state is TaskState.RUNNING and watch.has_expired(seen.id, seen.token):
            return end_as_lost(task, now=now, reason=f"no sign of life from {task.owner} for a whole lease")
        return None

    def read_task(self, task_id: ObjectId) -> Versioned[Task]:
        """raises NotFoundError"""
        try:
            return self._rows.read_versioned(task_id, Task)
        except NotFoundError as missing:
            raise NotFoundError(f"no task {id_text(task_id)}: `headwater task list` shows those that are kept") from missing

    def active_tasks(self, kind: str, realm: str, subject: str = "") -> Task | None:
        """The waiting or running task of this kind, realm and subject."""
        seen = self.find_active(kind, realm, subject)
        return seen.value if seen else None

    def find_active(self, kind: str, realm: str, subject: str = "") -> Versioned[Task] | None:
        """The waiting or running task of this kind, realm and subject, with its id and token."""
        at = self._head()
        held = at.index(UNIQUE).get(unique_key(kind, realm, subject)) if at else None
        if held is None or held.object_id is None:
            return None
        seen = self._rows.find_versioned(held.object_id, Task)
        return seen if seen is not None and seen.value.is_active else None

    def list_tasks(self, *, limit: int | None = None, **asked: Unpack[TaskQuery]) -> ReadableRows[Versioned[Task]]:
        """The tasks that match a query: the active ones in the order of their due times, then the others, the last ended first."""
        check_count(limit, "tasks of a list")
        at = self._head()
        return ReadableRows() if at is None else tasks_named(at, islice(matching_tasks(self._rows, at, asked), limit))

    def of_realm(self, realm: str) -> ReadableRows[Versioned[Task]]:
        """The active tasks of a realm, then the task that ended last for each kind and subject, the newest first."""
        at = self._head()
        return ReadableRows() if at is None else last_tasks_of_realm(self._rows, at, realm)

    def read_figures(self) -> TaskFigures:
        """Figures of the active tasks, and of the task that ended last for each kind, realm and subject; at a bounded cost."""
        at, now = self._head(), self._clock.now()
        if at is None:
            return task_figures_of((), (), {}, now=now)
        soon = Micros(now + round(1.2 * self._settings.task_backoff_limit_seconds * 1_000_000))
        return read_task_figures(self._rows, at, now=now, soon=soon)

    def forget_finished(self) -> int:
        """Forget the tasks that ended longer ago than the setting ``task_history_seconds``. The collector deletes them.

        returns       how many this call forgot: at most 500, so call again while it is not 0
        """
        end = time_key(max(0, self._clock.now() - round(self._settings.task_history_seconds * 1_000_000)))
        at = self._head()
        if at is None or next(at.index(FINISHED).range(end=end, limit=1), None) is None:
            return 0

        return self._commit(lambda tx: forget_task_entry(tx, end=end, limit=FORGOTTEN_AT_ONCE), "forget finished tasks")

    def _head(self) -> Head | None:
        try:
            return read_head(self._rows, REFERENCE, fresh=True)
        except NotFoundError:
            return None

    def _commit(self, change: Callable[[Transaction], R], message: str) -> R:
        try:
            return commit_change(self._rows, REFERENCE, change, message=message).result
        except NotFoundError:
            self._rows.ensure_reference(REFERENCE)
            return commit_change(self._rows, REFERENCE, change, message=message).result

    def _change(self, task_id: ObjectId, change: Callable[[Versioned[Task]], Task]) -> Task:
        """Change a task, and let its entries follow. Returns the task after that. Raises NotFoundError."""
        self.read_task(task_id)
        changed = change_task(self._rows, task_id, change)
        self._settle_later(task_id)
        return changed.value

    def _follow(self, task_id: ObjectId, done: str) -> Task:
        """Settle a task whose change was decided. Returns the task after that."""

        def settle_and_read() -> Task:
            self._settle(task_id)
            return self.read_task(task_id).value

        return complete_operation(self._rows, settle_and_read, done=done)

    def _settle(self, task_id: ObjectId) -> None:
        """Make entries and object agree. The object decides; only a retry is decided by its entry, and completed here."""
        seen = self.read_task(task_id)
        at = self._head()
        retry_due = due_of_retry(at, seen) if at else None
        if retry_due is not None:
            with contextlib.suppress(SwapConflictError):
                swap_task(self._rows, seen, wait_again(seen.value, due=retry_due), is_mine=lambda task: task.is_active)
            return
        self._commit(lambda tx: settle_task_entry(tx, self.read_task(task_id)), f"settle {seen.value}")

    def _settle_later(self, task_id: ObjectId) -> None:
        """Settle a task now if that works; otherwise the next look settles it. The task object has changed in any case."""
        try:
            self._settle(task_id)
        except HeadwaterError as error:
            log.warning("entries of the task are left to the next look", task=id_text(task_id), error=str(error))

    def _tell_unreadable(self, task_id: ObjectId, fault: CorruptionError) -> None:
        """Log an unreadable task, once for each: every look meets it again."""
        if task_id in self._logged:
            return
        self._logged.add(task_id)
        at = self._head()
        place = None if at is None else task_places_of(at, (task_id,)).get(task_id)
        log.error(
            "task cannot be read and is skipped", task=id_text(task_id), error=str(unreadable_task(task_id, str(fault), place))
        )

    def _due_tasks(
        self, *, before: Micros, window: DueWindow | None
    ) -> Iterator[tuple[bytes, ObjectId, float, Versioned[Task] | CorruptionError | None]]:
        """Entries up to a time, each with the task as read now, and the monotonic time before that read."""
        at, end = self._head(), time_key(before + 1)
        if at is None:
            return
        for block in _blocks(at.index(DUE).range(end=end) if window is None else _moved_on(at, window, end)):
            asked = self._clock.monotonic()
            seen = self._rows.read_each_versioned([task_id for _, task_id in block], Task)
            yield from ((key, task_id, asked, task) for (key, task_id), task in zip(block, seen, strict=True))

    @staticmethod
    def _refused(seen: Versioned[Task], why: str) -> RefusedError:
        return RefusedError(f"task {id_text(seen.id)} ({seen.value}) is {seen.value.state}: {why}")


def _moved_on(at: Head, window: DueWindow, end: bytes) -> Iterator[tuple[bytes, IndexValue]]:
    """The entries of a window, which is moved on."""
    entries = list(at.index(DUE).range(start=window.start, end=end, limit=window.size))
    is_round_over = len(entries) < window.size
    window.start = b"" if is_round_over else entries[-1][0] + b"\0"
    return iter(entries)


def _blocks(entries: Iterator[tuple[bytes, IndexValue]]) -> Iterator[list[tuple[bytes, ObjectId]]]:
    """Keys and task ids of index entries, as many at once as one read may ask for."""
    listed = ((key, value.object_id) for key, value in entries if value.object_id is not None)
    while block := list(islice(listed, READ_AT_ONCE)):
        yield block
