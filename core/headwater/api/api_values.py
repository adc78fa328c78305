"""What the public API returns: plain values that keep nothing open, with ids as people see them.

Times are ``datetime`` in UTC, durations ``timedelta``, ids of commits and tasks 16 hex digits, keys of tables names joined by dots.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from headwater.api.declared_values import ManagerInfo, RetentionInfo, ScheduleInfo, told_duration, told_manager
from headwater.api.work_progress import TaskProgressInfo
from headwater.clock import Micros, as_datetime
from headwater.errors import RefusedError
from headwater.fsck import FsckFinding
from headwater.jobs import Run
from headwater.policies import MaintenanceStop
from headwater.realms import Principal, Realm
from headwater.store import ObjectId, Versioned, id_text
from headwater.tasks import Task, TaskAttempt


def read_time(time: datetime) -> Micros:
    """A time as it is stored; raises RefusedError for one without a zone, which could be any of 24 hours."""
    if time.tzinfo is None:
        raise RefusedError(f"{time.isoformat()} has no time zone: write datetime(..., tzinfo=UTC)")
    since = time - datetime(1970, 1, 1, tzinfo=UTC)
    return Micros((since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds)


def several(value: str | Iterable[str]) -> tuple[str, ...]:
    """One text or several: a text by itself is one, and not its letters."""
    return (value,) if isinstance(value, str) else tuple(value)


def seconds_of(duration: timedelta | None) -> float | None:
    return None if duration is None else duration.total_seconds()


def told_time(micros: Micros | int | None) -> datetime | None:
    return None if micros is None else as_datetime(micros)


def told_id(number: ObjectId | int | None) -> str | None:
    return None if number is None else id_text(ObjectId(number))


@dataclass(frozen=True, slots=True, kw_only=True)
class RealmInfo:
    """A realm as it was when it was read.

    state         CREATED, INITIALIZING, LOADING, ACTIVE, INACTIVE, PURGING or PURGED
    key           the number that its rows carry, in 16 hex digits: a later realm of the same id has another one
    entered       when each state was last entered
    held_until    an INACTIVE realm cannot be purged before; None in every other state
    purge_hold    between INACTIVE and PURGING; None: as the settings say
    deletion_policy  Retain or Purge, when its resource is deleted
    drift_policy  Correct or Report
    manager       the resource that manages it; None: none does
    """

    id: str
    state: str
    key: str
    created: datetime
    updated: datetime
    entered: Mapping[str, datetime]
    properties: Mapping[str, str]
    deletion_protection: bool
    deletion_policy: str
    drift_policy: str
    purge_hold: timedelta | None
    held_until: datetime | None
    retention: RetentionInfo
    maintenance: ScheduleInfo
    manager: ManagerInfo | None

    @classmethod
    def of(cls, realm: Realm, held_until: Micros | None) -> RealmInfo:
        """The values of a stored realm."""
        return cls(
            id=realm.id,
            state=realm.state.value,
            key=id_text(ObjectId(realm.key)),
            created=as_datetime(realm.created),
            updated=as_datetime(realm.updated),
            entered={state: as_datetime(time) for state, time in realm.entered.items()},
            properties=dict(realm.properties),
            deletion_protection=realm.deletion_protection,
            deletion_policy=realm.deletion_policy,
            drift_policy=realm.drift_policy,
            purge_hold=told_duration(realm.purge_hold_seconds),
            held_until=told_time(held_until),
            retention=RetentionInfo.of(realm.retention),
            maintenance=ScheduleInfo.of_realm(realm.maintenance),
            manager=told_manager(realm.manager),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskAttemptInfo:
    """One attempt at a task.

    owner         who made it
    ended         None: it goes on
    outcome       RUNNING, SUCCEEDED, FAILED, LOST, HANDED_BACK, PUT_OFF or CANCELLED
    error         why it ended, unless it succeeded; empty: it did
    """

    number: int
    owner: str
    started: datetime
    ended: datetime | None
    outcome: str
    error: str

    @classmethod
    def of(cls, attempt: TaskAttempt) -> TaskAttemptInfo:
        """The values of a stored attempt."""
        return cls(
            number=attempt.number,
            owner=attempt.owner,
            started=as_datetime(attempt.started),
            ended=told_time(attempt.ended),
            outcome=attempt.outcome.value,
            error=attempt.error,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskInfo:
    """A task as it was when it was read.

    state         WAITING, RUNNING, SUCCEEDED, FAILED or CANCELLED
    arguments     names and ids
    attempt       number of the last one, 0 being none yet; ``attempts`` are the last of them, oldest first
    failures      attempts that failed or were lost; when they are ``max_attempts``, it is FAILED
    owner         who does it now; empty: nobody
    after         the task that it follows up; None: none
    retried       when a person let it wait again, after it had ended
    outcome       what it counted, as `headwater task show -o json` prints it; None: it has not succeeded
    error         of its last attempt; empty: none
    """

    id: str
    kind: str
    realm: str
    subject: str
    state: str
    created: datetime
    due: datetime
    finished: datetime | None
    arguments: Mapping[str, Any]
    attempt: int
    attempts: tuple[TaskAttemptInfo, ...]
    failures: int
    max_attempts: int
    owner: str
    stop_requested: bool
    after: str | None
    retried: datetime | None
    error: str
    progress: TaskProgressInfo | None
    outcome: Mapping[str, Any] | None

    @property
    def is_active(self) -> bool:
        """Whether it waits or runs."""
        return self.state in ("WAITING", "RUNNING")

    @classmethod
    def of(cls, row: Versioned[Task]) -> TaskInfo:
        """The values of a stored task."""
        task = row.value
        return cls(
            id=id_text(row.id),
            kind=task.kind,
            realm=task.realm,
            subject=task.subject,
            state=task.state.value,
            created=as_datetime(task.created),
            due=as_datetime(task.due),
            finished=told_time(task.finished),
            arguments=dict(task.arguments),
            attempt=task.attempt,
            attempts=tuple(map(TaskAttemptInfo.of, task.attempts)),
            failures=task.failures,
            max_attempts=task.max_attempts,
            owner=task.owner,
            stop_requested=task.stop_requested,
            after=told_id(task.after),
            retried=told_time(task.retried),
            error=task.error,
            progress=progress_of(task),
            outcome=task.outcome,
        )


def progress_of(task: Task) -> TaskProgressInfo | None:
    """How far a task has come; None: nothing was counted yet, or it has ended."""
    made = task.current_progress
    if made is None:
        return None
    return TaskProgressInfo(
        kind=task.kind, realm=task.realm, subject=task.subject, done=made.done, total=made.total, unit=made.unit
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInfo:
    """What one attempt of a task did.

    counts        plain numbers by name, as `headwater runs list -o json` prints them
    error         empty: it did what it was for
    """

    task: str | None
    kind: str
    realm: str
    subject: str
    started: datetime
    finished: datetime
    attempt: int
    counts: Mapping[str, Any]
    notes: tuple[str, ...]
    error: str

    @classmethod
    def of(cls, run: Run) -> RunInfo:
        """The values of a record."""
        return cls(
            task=told_id(run.task),
            kind=run.kind,
            realm=run.realm,
            subject=run.subject,
            started=as_datetime(run.started),
            finished=as_datetime(run.finished),
            attempt=run.attempt,
            counts=dict(run.counts),
            notes=run.notes,
            error=run.error,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingInfo:
    """Something that a check found.

    code          what kind it is; a contract
    weight        DAMAGE, TROUBLE or LEFTOVER; the last alone is no reason to act
    keys          of what cannot be read: the keys under which the reference holds it, the first few
    repair        what would mend it
    """

    code: str
    weight: str
    realm: str
    subject: str
    message: str
    repair: str
    keys: tuple[str, ...]

    @classmethod
    def of(cls, finding: FsckFinding) -> FindingInfo:
        """The values of a finding."""
        return cls(
            code=str(finding.code),
            weight=str(finding.weight),
            realm=finding.realm,
            subject=finding.subject,
            message=finding.message,
            repair=finding.repair,
            keys=finding.keys,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PrincipalInfo:
    """Who can log in to a realm.

    client_id     as clients are told it
    former_client_id, former_until  of former credentials that still hold, and until when; None: there are none, or until the next rotation
    renewed       when the credentials last changed; None: they are the first
    disabled      since when it cannot log in; None: it can
    roles         its principal roles
    """

    realm: str
    name: str
    client_id: str
    former_client_id: str | None
    former_until: datetime | None
    created: datetime
    renewed: datetime | None
    disabled: datetime | None
    roles: tuple[str, ...] = field(default=())

    @classmethod
    def of(cls, realm: str, principal: Principal, roles: tuple[str, ...]) -> PrincipalInfo:
        """The values of a stored principal."""
        return cls(
            realm=realm,
            name=principal.name,
            client_id=principal.credentials.client_id,
            former_client_id=None if principal.former is None else principal.former.client_id,
            former_until=told_time(principal.former_until),
            created=as_datetime(principal.created),
            renewed=told_time(principal.renewed),
            disabled=told_time(principal.disabled),
            roles=roles,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleInfo:
    """A role with who has it and what it may do.

    catalog       the catalog whose role it is; None: a principal role of the realm
    assigned_to   principals; of a catalog's role, principal roles
    catalog_roles of a principal role: what it has in catalogs, as CATALOG/ROLE
    grants        each in one line, such as ``TABLE_READ_DATA on namespace:sales``
    """

    realm: str
    catalog: str | None
    name: str
    created: datetime
    assigned_to: tuple[str, ...]
    catalog_roles: tuple[str, ...]
    grants: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StopInfo:
    """A stop of maintenance.

    scope         the store, a realm or a catalog, in words
    realm, catalog  the same; None: the store, or all of the realm
    """

    scope: str
    realm: str | None
    catalog: str | None
    by: str
    at: datetime
    why: str

    @classmethod
    def of(cls, stop: MaintenanceStop) -> StopInfo:
        """The values of a stop."""
        scope = stop.scope
        return cls(
            scope=str(scope),
            realm=scope.realm or None,
            catalog=scope.catalog or None,
            by=stop.by,
            at=as_datetime(stop.at),
            why=stop.why,
        )
