"""What a task is: one updateable object that coordinates one piece of work, and the small values inside it."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec

from headwater.clock import Micros
from headwater.store import ObjectId, StoredObject, StoredPart, object_type

__all__ = ["Attempt", "AttemptEnd", "FollowUp", "Progress", "Task", "TaskState"]


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
    """Its worker stopped beating, and another one took the task over."""
    HANDED_BACK = "HANDED_BACK"
    PUT_OFF = "PUT_OFF"
    """What it needs is not there yet. Attempts in a row that were put off for the same reason share one record."""
    CANCELLED = "CANCELLED"


class Progress(StoredPart, frozen=True, kw_only=True):
    """How far an attempt is: ``done`` of ``total`` (None: not known yet), counted in ``unit``."""

    done: int = 0
    total: int | None = None
    unit: str = ""


class Attempt(StoredPart, frozen=True, kw_only=True):
    """One try at a task.

    error         why it ended, unless it succeeded
    progress      how far it was, as it told last
    """

    known_by = ("number",)

    number: int
    owner: str = ""
    started: Micros = Micros(0)
    ended: Micros | None = None
    outcome: AttemptEnd = AttemptEnd.RUNNING
    error: str = ""
    progress: Progress | None = None


class FollowUp(StoredPart, frozen=True, kw_only=True):
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
    subject       what within the realm, such as a catalog; at most one active task has the same kind, realm and subject
    arguments     names and ids, never payloads
    attempt       the fencing token: it only grows, with every claim
    lease         a word drawn by each claim, so that a worker knows its own claim again after an unclear answer
    failures      attempts that failed or were lost since the task was submitted or retried
    beat          heartbeats of this attempt
    attempts      the last attempts, oldest first
    after         the task that this one follows up, a name only: it may have left the history
    retried       when a person let it wait again last, after it had ended
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
    progress: Progress | None = None
    failures: int = 0
    max_attempts: int = 5
    stop_requested: bool = False
    attempts: tuple[Attempt, ...] = ()
    outcome: dict[str, Any] | None = None
    finished: Micros | None = None
    follow_up: FollowUp | None = None
    after: ObjectId | None = None
    retried: Micros | None = None

    @property
    def is_active(self) -> bool:
        return self.state.is_active

    @property
    def error(self) -> str:
        """What the last attempt died of, or an empty text."""
        return self.attempts[-1].error if self.attempts else ""

    def __str__(self) -> str:
        return f"{self.kind} of realm {self.realm!r}" + (f" ({self.subject})" if self.subject else "")
