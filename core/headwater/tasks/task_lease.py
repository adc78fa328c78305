"""The lease of a running task: how its worker keeps and ends it, and when another worker may take the task over.

A worker may take over a task whose token it saw unchanged for a whole lease, on its own monotonic clock.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Any, Protocol

from msgspec.structs import replace

from headwater.clock import Clock, Micros
from headwater.errors import FencedError, HeadwaterError, NotFoundError, SwapConflictError
from headwater.settings import check_count, check_seconds
from headwater.store import ObjectId, RealmStore, Versioned, id_text
from headwater.tasks.task import (
    OUTCOME_BYTES,
    FollowUpTask,
    Task,
    TaskProgress,
    TaskState,
    backoff_seconds,
    end_as_failed,
    end_as_handed_back,
    end_as_put_off,
    end_as_succeeded,
    record_heartbeat,
    record_progress,
    require_plain_data,
    swap_task,
)


class LeaseEvidence(Protocol):
    def has_expired(self, task_id: ObjectId, token: str) -> bool:
        """Whether this token of the task was seen unchanged for a whole lease."""
        ...


@dataclass(frozen=True, slots=True)
class LeaseExpiry:
    """The finding of another process, as a message carries it. It cannot become wrong: a token that has changed never comes back."""

    token: str | None

    def has_expired(self, task_id: ObjectId, token: str) -> bool:
        return self.token == token


class LeaseWatch:
    """Remembers since when the token of each running task has been unchanged. Wall clocks and other machines' clocks play no part.

    lease_seconds  how long a token must be unchanged
    """

    def __init__(self, clock: Clock, lease_seconds: float) -> None:
        self._clock = clock
        self._lease_seconds = lease_seconds
        self._lock = threading.Lock()
        self._since: dict[ObjectId, tuple[str, float]] = {}

    def current_time(self) -> float:
        """The monotonic time, to be taken before the read whose token goes to ``observe``."""
        return self._clock.monotonic()

    def observe(self, task_id: ObjectId, token: str, *, asked: float) -> bool:
        """Note the token that a read begun at ``asked`` has found. Returns whether it was unchanged for the lease.

        A token counts from the end of the first read that found it to the start of the last one.
        """
        with self._lock:
            known, since = self._since.get(task_id, ("", 0.0))
            if known != token:
                self._since[task_id] = (token, self._clock.monotonic())
                return False
            return asked - since >= self._lease_seconds

    def has_expired(self, task_id: ObjectId, token: str) -> bool:
        return self.observe(task_id, token, asked=self.current_time())

    def watched_ids(self) -> set[ObjectId]:
        """The running tasks that were seen last."""
        with self._lock:
            return set(self._since)

    def keep_only(self, task_ids: Collection[ObjectId]) -> None:
        """Forget all others."""
        with self._lock:
            self._since = {task_id: seen for task_id, seen in self._since.items() if task_id in task_ids}


LOOK_AGAIN_SECONDS = 60.0


class LeaseVerdict(StrEnum):
    """The answer to a heartbeat."""

    GO_ON = "GO_ON"
    STOP = "STOP"
    """The task was cancelled: stop the work, then hand the task back."""
    LOST = "LOST"
    """Another attempt has taken over: write nothing more."""


class TaskStoppedError(HeadwaterError):
    """The attempt was asked to stop between two steps. It still holds its task: tidy up, then hand it back."""


class TaskNotReadyError(HeadwaterError):
    """The work needs something that another process will provide. Nothing was done: put the task off.

    seconds       when to look again
    is_expected   whether this is how things usually are, and nothing to warn of
    """

    def __init__(self, message: str, *, seconds: float = LOOK_AGAIN_SECONDS, is_expected: bool = False) -> None:
        super().__init__(message)
        self.seconds = seconds
        self.is_expected = is_expected


class TaskLease:
    """The right to do one task, until another attempt takes over. All methods may be called from several threads.

    Everything that the work writes must be conditional on ``check_stop``: give it to commits as their fence.
    """

    def __init__(
        self, rows: RealmStore, seen: Versioned[Task], *, settle: Callable[[ObjectId], None], chance: Callable[[], float]
    ) -> None:
        self._rows = rows
        self._seen = seen
        self._settle = settle
        self._chance = chance
        self._lock = threading.RLock()
        self._progress: TaskProgress | None = None
        self._listener: Callable[[int, int, str], None] = lambda done, total, unit: None
        self._stop_reason = ""
        self._is_overdue = False
        self._beaten_at = rows.clock.monotonic()
        self.id = seen.id
        self.attempt = seen.value.attempt

    def __repr__(self) -> str:
        return f"<TaskLease of task {id_text(self.id)}, attempt {self.attempt}>"

    @property
    def task(self) -> Task:
        """The task as this lease read or wrote it last."""
        return self._seen.value

    @property
    def progress(self) -> TaskProgress | None:
        """The progress that was reported last."""
        return self._progress

    @property
    def stop_reason(self) -> str:
        """Why the attempt was asked to stop, or an empty text."""
        return self._stop_reason

    def request_stop(self, reason: str, *, is_overdue: bool = False) -> None:
        """Ask the work to stop: its next ``check_stop`` raises TaskStoppedError. Writes nothing.

        is_overdue    it took too long, which is a failure of this attempt; otherwise it is handed back
        """
        if not self._stop_reason:
            self._stop_reason, self._is_overdue = reason, is_overdue

    def report_progress(self, done: int, total: int | None = None, unit: str = "") -> None:
        """Note the progress for the next heartbeat; a total of 0 means unknown. Writes nothing."""
        self._progress = TaskProgress(done=done, total=total or None, unit=unit)
        self._listener(done, total or 0, unit)

    def listen(self, listener: Callable[[int, int, str], None]) -> None:
        """Call the listener with (done, total, unit) at every report of progress from now on; a total of 0 means unknown."""
        self._listener = listener

    def check_stop(self) -> None:
        """Ask the database whether this attempt still holds the task. Sends a heartbeat if none got through for too long.

        raises        FencedError when another attempt, or a person, took it away; TaskStoppedError when it was asked to stop
        """
        # Work that writes without pause can keep the heartbeat thread from ever writing. So the work itself sends one here.
        if self._rows.clock.monotonic() - self._beaten_at >= 1.5 * self._rows.settings.task_heartbeat_seconds:
            self.heartbeat()
        self._require_mine(self._read())
        if self._stop_reason:
            raise TaskStoppedError(f"task {id_text(self.id)} ({self.task}): {self._stop_reason}")

    def heartbeat(self, progress: TaskProgress | None = None) -> LeaseVerdict:
        """Send a heartbeat, with the progress given here or reported last."""
        self._progress = progress or self._progress
        with self._lock:
            try:
                self._swap(lambda task: record_heartbeat(task, progress=self._progress), _has_beaten)
            except FencedError:
                return LeaseVerdict.LOST
            self._beaten_at = self._rows.clock.monotonic()
            if self.task.stop_requested:
                self.request_stop("it was cancelled")
                return LeaseVerdict.STOP
            return LeaseVerdict.GO_ON

    def finish_task(self, outcome: dict[str, Any], follow_up: FollowUpTask | None = None) -> None:
        """End the attempt with success. The follow-up is submitted once, even if this process dies from here on.

        outcome       plain data of at most 64 KiB
        raises        RefusedError for another outcome, before anything is written; FencedError
        """
        require_plain_data(outcome, f"outcome of task {id_text(self.id)} ({self.task})", limit_bytes=OUTCOME_BYTES)
        if follow_up is not None:
            check_seconds(follow_up.delay_seconds, f"delay_seconds of the follow-up of task {id_text(self.id)}")
            check_count(follow_up.max_attempts, f"max_attempts of the follow-up of task {id_text(self.id)}")
            require_plain_data(
                follow_up.arguments, f"follow-up of task {id_text(self.id)} ({self.task})", limit_bytes=OUTCOME_BYTES
            )
        # Only success makes it whole: after a failure the last report says where the attempt ended.
        if self._progress is not None:
            self._progress = _completed(self._progress)
        self._end(lambda task: end_as_succeeded(task, now=self._now(), outcome=outcome, follow_up=follow_up))

    def fail_task(self, error: str, retry: bool = True) -> None:
        """End the attempt as failed. The task waits for its next attempt; without ``retry``, or when none is left, it is dead-lettered.

        raises        FencedError
        """
        settings = self._rows.settings
        wait = backoff_seconds(
            self.task.failures + 1,
            first_seconds=settings.task_backoff_seconds,
            limit_seconds=settings.task_backoff_limit_seconds,
            chance=self._chance(),
        )
        retry_at = Micros(self._now() + round(wait * 1_000_000)) if retry else None
        self._end(lambda task: end_as_failed(task, now=self._now(), error=error, retry_at=retry_at))

    def hand_back(self, reason: str) -> None:
        """Hand the task back unfinished: it stays due, and the attempt is no failure. A task that was asked to stop becomes CANCELLED.

        raises        FencedError
        """
        self._end(lambda task: end_as_handed_back(task, now=self._now(), reason=reason))

    def end_stopped(self) -> None:
        """End an attempt whose work has stopped on request: hand it back, or fail it if it took too long.

        raises        FencedError
        """
        if self._is_overdue and not self.task.stop_requested:
            self.fail_task(self._stop_reason)
        else:
            self.hand_back(self._stop_reason)

    def put_off(self, reason: str, seconds: float = LOOK_AGAIN_SECONDS) -> None:
        """Let the task wait for something that is missing; the attempt is no failure. A task that was asked to stop becomes CANCELLED.

        raises        FencedError
        """
        check_seconds(seconds, f"seconds for which task {id_text(self.id)} is put off")
        until = Micros(self._now() + round(seconds * 1_000_000))
        self._end(lambda task: end_as_put_off(task, now=self._now(), reason=reason, until=until))

    def _end(self, change: Callable[[Task], Task]) -> None:
        """End the attempt, and write the progress that was reported last: no heartbeat follows that would."""
        with self._lock:
            self._swap(lambda task: change(record_progress(task, progress=self._progress)), _has_ended)
            self._settle(self.id)

    def _swap(self, change: Callable[[Task], Task], is_applied: Callable[[Task, Task], bool]) -> None:
        """Change the task while this attempt holds it. Others may only ask it to stop; then the change is made again.

        is_applied    (new, task): whether a task shows that it was changed into the new one
        """
        self._require_mine(self._seen)
        while True:
            new = change(self._seen.value)
            try:
                self._seen = swap_task(self._rows, self._seen, new, is_mine=partial(is_applied, new))
                return
            except SwapConflictError:
                self._seen = self._require_mine(self._read())

    def _is_held(self, task: Task) -> bool:
        return task.state is TaskState.RUNNING and task.attempt == self.attempt and task.lease == self._seen.value.lease

    def _read(self) -> Versioned[Task]:
        try:
            return self._rows.read_versioned(self.id, Task)
        except NotFoundError as missing:
            raise FencedError(f"task {id_text(self.id)} ({self.task}) is gone: attempt {self.attempt} must stop") from missing

    def _require_mine(self, task: Versioned[Task]) -> Versioned[Task]:
        if self._is_held(task.value):
            return task
        now = f"{task.value.state}, attempt {task.value.attempt}" + (f" of {task.value.owner}" if task.value.owner else "")
        raise FencedError(f"task {id_text(self.id)} ({self.task}) is {now} by now: attempt {self.attempt} must stop")

    def _now(self) -> Micros:
        return self._rows.clock.now()


def _completed(progress: TaskProgress) -> TaskProgress:
    """The last progress of work that succeeded: nothing is left, whatever of the total turned out not to be needed."""
    done = max(progress.done, progress.total or 0)
    return replace(progress, done=done, total=done)


def _has_beaten(new: Task, task: Task) -> bool:
    return (task.state, task.lease, task.beat) == (new.state, new.lease, new.beat)


def _has_ended(new: Task, task: Task) -> bool:
    """Whether a task shows the end of this attempt."""
    # By the attempt's record: others may have ended it as lost, and begun another attempt since.
    return new.attempts[-1] in task.attempts
