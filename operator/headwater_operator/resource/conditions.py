"""Conditions of a status, computed from the result of a pass and the store, and merged so that their times show real changes. Pure.

Every reason comes from the catalogue in ``reasons``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from headwater.clock import Micros, as_text
from headwater.errors import (
    ConflictError,
    CorruptionError,
    HeadwaterError,
    NotFoundError,
    RefusedError,
    SwapConflictError,
    UnavailableError,
    UnknownOutcomeError,
)
from headwater.jobs import COLLECT, IMPORT
from headwater.realms import RealmState
from headwater.reconcile import (
    CatalogDescription,
    ManifestError,
    RealmDescription,
    ReconcileOutcome,
    TaskDescription,
    WaitUntil,
    quarantined_tables,
)
from headwater.store import RealmId
from headwater.tasks import TaskState
from headwater_operator.resource.reasons import CONDITIONS, Standing, reason_named
from headwater_operator.runtime.informer_cache import CachedResource
from headwater_operator.runtime.served_schema import SchemaOlderError

MESSAGE_LIMIT = 1024
"""The longest message in characters; the API allows 32 KiB."""

_ORDER = {condition.name: place for place, condition in enumerate(CONDITIONS)}
_SENTENCE_END = re.compile(r"[.;:!?](?=\s)")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_CUT = " …"


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition to report now."""

    type: str
    status: Standing
    reason: str
    message: str = ""


def merge_conditions(
    former: Sequence[Mapping[str, Any]], wanted: Iterable[Condition], *, generation: int, now: Micros
) -> list[dict[str, Any]]:
    """The conditions of a status, in the order of the catalogue.

    former        those of the current status; conditions that are not wanted any more are removed
    generation    the resource's generation
    returns       each with the time of its last change of status: the former one while its status stays
    """
    return [
        {
            "type": condition.type,
            "status": condition.status,
            "reason": condition.reason,
            "message": cut_message(condition.message, MESSAGE_LIMIT),
            "observedGeneration": generation,
            "lastTransitionTime": _since(find_condition(former, condition.type), condition.status) or as_text(now),
        }
        for condition in sorted(wanted, key=lambda condition: _ORDER[condition.type])
    ]


def find_condition(conditions: Iterable[Mapping[str, Any]], type_: str) -> Mapping[str, Any] | None:
    return next((condition for condition in conditions if condition.get("type") == type_), None)


def kept_conditions(former: Iterable[Mapping[str, Any]], type_: str) -> Condition | None:
    """The former condition, repeated because nothing newer is known."""
    condition = find_condition(former, type_)
    if condition is None or condition.get("status") not in ("True", "False", "Unknown"):
        return None
    return Condition(type_, condition["status"], str(condition.get("reason")), str(condition.get("message") or ""))


def realm_id_of(realm: CachedResource) -> RealmId:
    """The id of the realm that a Realm declares."""
    return RealmId(str(realm.spec.get("realmId") or realm.name))


def cut_message(text: str, limit: int) -> str:
    """Cut a text to at most ``limit`` characters, after a sentence where one ends late enough; white space at the ends is stripped.

    A lone surrogate, which JSON can encode, becomes a question mark, because no API accepts it.
    """
    text = text.encode(errors="replace").decode().strip()
    if len(text) <= limit:
        return text
    head = text[: limit - len(_CUT)]
    ends = [end.end() for end in _SENTENCE_END.finditer(head)]
    if ends and ends[-1] >= limit // 2:
        head = head[: ends[-1]]
    return head.rstrip() + _CUT


def _since(former: Mapping[str, Any] | None, status: str) -> str | None:
    if former is None or former.get("status") != status:
        return None
    time = former.get("lastTransitionTime")
    return time if isinstance(time, str) and _TIME.fullmatch(time) else None


UNCLAIMED_SECONDS = 300
"""A task that was due for this long has no worker."""
LONG_SECONDS = 86_400
"""A running collection that was due this long ago deserves attention."""

FOREIGN = ("ManagedByAnother", "RealmManagedByAnother")
"""The refusals of what belongs to another resource."""
_OF_THE_REALM = ("RealmMissing", "RealmNotActive", "RealmDeleting", "RealmManagedByAnother")
_NOT_ACCEPTED = ("SpecInvalid", "SchemaOlder", "Refused")
_UNSURE = ("OutcomeUnknown", "InternalError")
_ENDED_PURGES = ("TaskDeadLettered", "TaskCancelled")
_SETTLED = (RealmState.ACTIVE, RealmState.INACTIVE)
_GOING = (RealmState.PURGING, RealmState.PURGED)


class UnreadState(Enum):
    UNSEEN = "UNSEEN"


UNSEEN = UnreadState.UNSEEN
"""Marks what was not or could not be read; None means that it was read, and does not exist."""


@dataclass(frozen=True, slots=True)
class SecretSeen:
    """The state of a Secret with credentials: of a realm's root, or of a connection.

    missing       Secrets of the declared principals that are not there, each with its principal
    """

    name: str
    exists: bool
    missing: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class StallCause:
    """A reason of the catalogue with its message for this resource."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class ReconcileResult:
    """The result of a pass.

    failure       an error that ended it
    obstacles     what was refused, and what is waited for, in this order
    reports       what a person should know
    """

    failure: StallCause | None
    obstacles: tuple[StallCause, ...] = ()
    reports: tuple[StallCause, ...] = ()

    @classmethod
    def from_outcome(cls, outcome: ReconcileOutcome | Exception, *, is_seen: bool) -> ReconcileResult:
        """Make the result from a pass's outcome.

        outcome       an exception when the pass had no outcome
        is_seen       whether the store was read afterwards, and answered
        """
        if isinstance(outcome, Exception):
            return cls(_failure(outcome, is_seen=is_seen))
        refused = tuple(StallCause(notice.reason, notice.message) for notice in outcome.refused)
        waits = tuple(StallCause(wait.reason, _told(wait)) for wait in outcome.waits)
        reports = tuple(StallCause(reason_named(notice.reason).name, notice.message) for notice in outcome.reports)
        failure = _failure(outcome.error, is_seen=is_seen) if outcome.error else None
        if failure is not None and outcome.more_errors:
            others = (_failure(error, is_seen=is_seen).message for error in outcome.more_errors)
            failure = StallCause(failure.reason, "; ".join([failure.message, *others]))
        if failure is None and not is_seen and not (refused or waits):
            failure = StallCause("StoreUnavailable", "the store did not answer when it was asked how things stand")
        ended = tuple(notice for notice in reports if notice.reason in _ENDED_PURGES)
        if any(wait.reason == "Purging" for wait in waits):
            waits = (*ended, *waits)  # it waits for a purge that nobody performs any more
        return cls(failure, (*refused, *waits), reports)

    @property
    def blocker(self) -> StallCause | None:
        """The first obstacle that keeps the store from being as declared."""
        return self.failure or next(iter(self.obstacles), None)

    @property
    def is_foreign(self) -> bool:
        """Whether the realm or catalog that the resource names belongs to another resource."""
        return any(obstacle.reason in FOREIGN for obstacle in self.obstacles)

    def report(self, reason: str) -> StallCause | None:
        return next((report for report in self.reports if report.reason == reason), None)


def realm_conditions(
    resource: CachedResource,
    verdict: ReconcileResult,
    realm: RealmDescription | UnreadState | None,
    *,
    former: Sequence[Mapping[str, Any]],
    secret: SecretSeen | UnreadState,
    now: Micros,
) -> list[Condition]:
    """The conditions of a Realm.

    former        the current conditions: those about which nothing newer is known stay
    """
    drift = verdict.report("DriftReported")
    conditions: list[Condition | None] = [
        *_readiness(verdict, *_realm_standing(resource, realm, drift)),
        _accepted(resource, verdict, former),
        _store_reachable(verdict, realm, former),
    ]
    if verdict.is_foreign:
        return _those(conditions)
    conditions.append(_maintenance(realm, former, now))
    conditions.append(_credentials(resource, verdict, realm, secret, former))
    if resource.is_deleted:
        return _those([*conditions, _purging(resource, verdict, realm, former), _deleting(verdict)])
    return _those([*conditions, _drifted(verdict, realm, drift, former)])


def catalog_conditions(
    resource: CachedResource,
    verdict: ReconcileResult,
    catalog: CatalogDescription | UnreadState | None,
    *,
    former: Sequence[Mapping[str, Any]],
    now: Micros,
    secret: SecretSeen | UnreadState | None = None,
) -> list[Condition]:
    """The conditions of a Catalog.

    secret        of its connection; None where it has none

    former        the current conditions: those about which nothing newer is known stay
    """
    name = str(resource.spec.get("name") or resource.name)
    is_there = isinstance(catalog, CatalogDescription)
    conditions: list[Condition | None] = [
        *_readiness(
            verdict, is_there, StallCause("Reconciled" if is_there else "Progressing", _there("catalog", name, is_there))
        ),
        _accepted(resource, verdict, former),
        _store_reachable(verdict, catalog, former),
        _realm_ready(verdict, catalog, former),
    ]
    if not verdict.is_foreign:
        conditions.append(_imports(catalog, former, now))
        conditions.append(_lake_work(catalog, former, now))
        conditions.append(_connection(resource, verdict, secret, former))
    return _those([*conditions, _deleting(verdict) if resource.is_deleted else None])


def is_overdue(task: TaskDescription, now: Micros) -> bool:
    """Whether the task has been due for so long that a worker would have taken it."""
    return task.state is TaskState.WAITING and now - task.since >= UNCLAIMED_SECONDS * 1_000_000


_KINDS: tuple[tuple[type[Exception], str], ...] = (
    (ManifestError, "SpecInvalid"),
    (UnknownOutcomeError, "OutcomeUnknown"),
    (UnavailableError, "Unavailable"),
    (SchemaOlderError, "SchemaOlder"),
    (RefusedError, "Refused"),
    (CorruptionError, "Unreadable"),
    (SwapConflictError, "Conflict"),
    (ConflictError, "Conflict"),
    (NotFoundError, "Conflict"),
)


def _failure(error: Exception, *, is_seen: bool) -> StallCause:
    reason = next((reason for kind, reason in _KINDS if isinstance(error, kind)), "InternalError")
    if reason in ("Unavailable", "Refused") and not is_seen:
        reason = "StoreUnavailable"  # also where it refuses everybody, such as after its password was changed
    if isinstance(error, ManifestError):
        return StallCause(
            reason, "; ".join(f"{fault.path}: {fault.message}" if fault.path else fault.message for fault in error.faults)
        )
    if isinstance(error, HeadwaterError):  # their messages have no secrets; other messages may
        return StallCause(reason, " ".join(str(error).split()))
    return StallCause(reason, f"{type(error).__name__}: a bug in Headwater; the operator's log has more")


def _told(wait: WaitUntil) -> str:
    return wait.message if wait.until is None else f"{wait.message} (until {as_text(wait.until)})"


def _readiness(verdict: ReconcileResult, is_ready: bool, standing: StallCause) -> list[Condition]:
    """Ready; and where it is not True, the condition of kstatus that says whether waiting helps: Reconciling or Stalled."""
    ready = _ready(verdict, is_ready, standing)
    if ready.status == "True":
        return [ready]
    is_stalled = "Stalled" in reason_named(ready.reason).conditions
    return [ready, Condition("Stalled" if is_stalled else "Reconciling", "True", ready.reason, ready.message)]


def _ready(verdict: ReconcileResult, is_ready: bool, standing: StallCause) -> Condition:
    if verdict.failure is not None:
        reason = verdict.failure.reason
        return Condition("Ready", "Unknown" if _leaves_open(verdict) else "False", reason, verdict.failure.message)
    cause = verdict.blocker or standing
    return Condition("Ready", "True" if is_ready and cause is standing else "False", cause.reason, cause.message)


def _leaves_open(verdict: ReconcileResult) -> bool:
    """Whether the state of the store is unknown after such an error."""
    return verdict.failure is not None and verdict.failure.reason in ("StoreUnavailable", *_UNSURE)


def _accepted(resource: CachedResource, verdict: ReconcileResult, former: Sequence[Mapping[str, Any]]) -> Condition:
    against = [obstacle for obstacle in verdict.obstacles if obstacle.reason in FOREIGN]
    if verdict.failure is not None and verdict.failure.reason in _NOT_ACCEPTED:
        against.insert(0, verdict.failure)
    if against:
        return Condition("Accepted", "False", against[0].reason, against[0].message)
    if verdict.failure is None or not _leaves_open(verdict):
        return Condition("Accepted", "True", "Accepted")
    before = find_condition(former, "Accepted")
    if before is not None and before.get("observedGeneration") == resource.generation:
        return kept_conditions(former, "Accepted") or _unknown("Accepted", verdict.failure)
    return _unknown("Accepted", verdict.failure)


def _store_reachable(verdict: ReconcileResult, seen: object, former: Sequence[Mapping[str, Any]]) -> Condition | None:
    if verdict.failure is not None and verdict.failure.reason == "StoreUnavailable":
        return Condition("StoreReachable", "False", verdict.failure.reason, verdict.failure.message)
    if seen is UNSEEN:
        return kept_conditions(former, "StoreReachable")
    return Condition("StoreReachable", "True", "StoreAnswered")


def _deleting(verdict: ReconcileResult) -> Condition:
    cause = verdict.blocker or StallCause("Progressing", "")
    return Condition("Deleting", "True", cause.reason, cause.message)


def _unknown(type_: str, failure: StallCause) -> Condition:
    return Condition(type_, "Unknown", failure.reason, failure.message)


def _there(kind: str, name: str, is_there: bool) -> str:
    return "" if is_there else f"{kind} {name} is not there yet"


def _those(conditions: Iterable[Condition | None]) -> list[Condition]:
    return [condition for condition in conditions if condition is not None]


def _realm_standing(
    resource: CachedResource, realm: RealmDescription | UnreadState | None, drift: StallCause | None
) -> tuple[bool, StallCause]:
    """Whether the realm serves as declared, and the message if nothing stands against it."""
    spec = resource.spec
    if not isinstance(realm, RealmDescription):
        return False, StallCause("Progressing", _there("realm", realm_id_of(resource), False))
    wished = RealmState.INACTIVE if spec.get("state") == "Inactive" else RealmState.ACTIVE
    if drift is not None:
        return realm.state is wished, drift
    if realm.state is not wished:
        return False, StallCause("Progressing", f"realm {realm.id} is {realm.state}, and not yet {wished}")
    return True, StallCause(
        "Reconciled", f"realm {realm.id} is {realm.state}, as declared" if wished is RealmState.INACTIVE else ""
    )


def _drifted(
    verdict: ReconcileResult,
    realm: RealmDescription | UnreadState | None,
    drift: StallCause | None,
    former: Sequence[Mapping[str, Any]],
) -> Condition | None:
    if drift is not None:
        return Condition("Drifted", "True", drift.reason, drift.message)
    if verdict.failure is not None or realm is UNSEEN:
        return kept_conditions(former, "Drifted")
    return Condition("Drifted", "False", "Reconciled") if realm is not None else None


def _credentials(
    resource: CachedResource,
    verdict: ReconcileResult,
    realm: RealmDescription | UnreadState | None,
    secret: SecretSeen | UnreadState,
    former: Sequence[Mapping[str, Any]],
) -> Condition | None:
    if isinstance(secret, UnreadState) or isinstance(realm, UnreadState):
        return kept_conditions(former, "CredentialsAvailable")
    if realm is None or realm.state not in _SETTLED:
        return None
    if waiting := verdict.report("RotationWaits") or verdict.report("AccessWaits"):
        return Condition("CredentialsAvailable", "True" if secret.exists else "False", waiting.reason, waiting.message)
    if not secret.exists:
        return _missing_secret(
            secret.name, f"Realm {resource.name} headwater.dev/rotate-credentials: <any word>", verdict.blocker
        )
    if elsewhere := verdict.report("CredentialsElsewhere"):
        return Condition("CredentialsAvailable", "False", elsewhere.reason, elsewhere.message)
    if secret.missing and realm.state is RealmState.ACTIVE and verdict.failure is None:
        name, principal = secret.missing[0]
        return _missing_secret(name, f"Realm {resource.name} headwater.dev/rotate-principal: {principal}:<any word>")
    return Condition("CredentialsAvailable", "True", "SecretPresent")


def _connection(
    resource: CachedResource,
    verdict: ReconcileResult,
    secret: SecretSeen | UnreadState | None,
    former: Sequence[Mapping[str, Any]],
) -> Condition | None:
    if secret is None:
        return None
    if isinstance(secret, UnreadState):
        return kept_conditions(former, "CredentialsAvailable")
    if secret.exists:
        return Condition("CredentialsAvailable", "True", "SecretPresent")
    return _missing_secret(
        secret.name, f"Catalog {resource.name} headwater.dev/rotate-credentials: <any word>", verdict.blocker
    )


def _missing_secret(name: str, annotation: str, blocker: StallCause | None = None) -> Condition:
    """A rotation helps where the Secret was deleted, and not while something keeps it from being made: then that is what to put right."""
    advice = blocker.message if blocker is not None else f"annotate {annotation} to have new ones made"
    told = f"Secret {name} is not there; {advice}"
    return Condition("CredentialsAvailable", "False", "SecretMissing", told)


def _purging(
    resource: CachedResource,
    verdict: ReconcileResult,
    realm: RealmDescription | UnreadState | None,
    former: Sequence[Mapping[str, Any]],
) -> Condition | None:
    state = realm.state if isinstance(realm, RealmDescription) else None
    if state not in _GOING and resource.spec.get("deletionPolicy") != "Purge":
        return None
    if verdict.failure is not None and (realm is UNSEEN or _leaves_open(verdict)):
        return kept_conditions(former, "Purging") or _unknown("Purging", verdict.failure)
    standing = {RealmState.PURGING: "Purging", RealmState.PURGED: "Purged"}
    cause = verdict.blocker or StallCause(standing[state] if state in _GOING else "Progressing", "")
    return Condition("Purging", "True" if state in _GOING else "False", cause.reason, cause.message)


def _maintenance(
    realm: RealmDescription | UnreadState | None, former: Sequence[Mapping[str, Any]], now: Micros
) -> Condition | None:
    if isinstance(realm, UnreadState):
        return kept_conditions(former, "MaintenanceHealthy")
    if realm is None:
        return None
    troubles = [*_ended_badly(realm), *_troubles([task for task in realm.tasks if task.kind != IMPORT], now)]
    if troubles:
        return _unhealthy("MaintenanceHealthy", troubles)
    if realm.is_suspended and realm.state in _SETTLED:
        return Condition("MaintenanceHealthy", "True", "Suspended", "maintenance is suspended")
    is_scheduled = realm.state is RealmState.ACTIVE or realm.state in _GOING
    return Condition("MaintenanceHealthy", "True", "AsScheduled" if is_scheduled else "NothingScheduled")


def _ended_badly(realm: RealmDescription) -> Iterator[StallCause]:
    """Failed tasks that nothing retries until a person steps in."""
    last = realm.last_collection
    is_collected = any(task.kind == COLLECT for task in realm.tasks)
    if last is not None and not is_collected and realm.state is RealmState.ACTIVE and not realm.is_suspended:
        yield from _dead_letter(last, may_be_cancelled=True)
    if realm.purge is not None and realm.state is RealmState.PURGING:
        yield from _dead_letter(realm.purge)


def _realm_ready(
    verdict: ReconcileResult, catalog: CatalogDescription | UnreadState | None, former: Sequence[Mapping[str, Any]]
) -> Condition | None:
    against = next((obstacle for obstacle in verdict.obstacles if obstacle.reason in _OF_THE_REALM), None)
    if against is not None:
        return Condition("RealmReady", "False", against.reason, against.message)
    if isinstance(catalog, CatalogDescription):
        return Condition("RealmReady", "True", "RealmActive")
    if verdict.failure is not None and _leaves_open(verdict):
        return kept_conditions(former, "RealmReady") or _unknown("RealmReady", verdict.failure)
    return kept_conditions(former, "RealmReady")


def _imports(
    catalog: CatalogDescription | UnreadState | None, former: Sequence[Mapping[str, Any]], now: Micros
) -> Condition | None:
    if isinstance(catalog, UnreadState):
        return kept_conditions(former, "ImportsHealthy")
    if catalog is None:
        return None
    if not catalog.imports:
        return Condition("ImportsHealthy", "True", "NothingScheduled")
    ended = [entry.last for entry in catalog.imports if entry.active is None and entry.last is not None]
    troubles = [cause for last in ended for cause in _dead_letter(last)]
    troubles += _troubles([entry.active for entry in catalog.imports if entry.active is not None], now)
    if troubles:
        return _unhealthy("ImportsHealthy", troubles)
    broken = [f"{entry.name}: {count}" for entry in catalog.imports if (count := quarantined_tables(entry))]
    if broken:
        return Condition("ImportsHealthy", "True", "TablesQuarantined", f"tables left alone by import {', '.join(broken)}")
    return Condition("ImportsHealthy", "True", "AsScheduled")


def _lake_work(
    catalog: CatalogDescription | UnreadState | None, former: Sequence[Mapping[str, Any]], now: Micros
) -> Condition | None:
    """How the work on the catalog's lake gets on; None where none was ever asked for."""
    if isinstance(catalog, UnreadState):
        return kept_conditions(former, "MaintenanceHealthy")
    works = [] if catalog is None else [work for work in catalog.lake_work if work.active or work.last]
    ended = [work.last for work in works if work.active is None and work.last is not None]
    troubles = [cause for last in ended for cause in _dead_letter(last, may_be_cancelled=True)]
    troubles += _troubles([work.active for work in works if work.active is not None], now)
    if troubles:
        return _unhealthy("MaintenanceHealthy", troubles)
    return Condition("MaintenanceHealthy", "True", "AsScheduled") if works else None


def _unhealthy(type_: str, troubles: list[StallCause]) -> Condition:
    """Report the worst trouble and count the others."""
    first, others = troubles[0], len(troubles) - 1
    more = f"; and {others} more" if others else ""
    status: Standing = "False"
    return Condition(type_, status, first.reason, first.message + more)


def _troubles(tasks: Sequence[TaskDescription], now: Micros) -> list[StallCause]:
    kinds: tuple[tuple[str, Callable[[TaskDescription], bool], Callable[[TaskDescription], str]], ...] = (
        (
            "TaskOverdue",
            lambda task: is_overdue(task, now),
            lambda task: f"{_name(task)} is due since {as_text(task.due)}, and no worker took it",
        ),
        (
            "TaskRetrying",
            lambda task: task.failures > 0 and not is_overdue(task, now),
            lambda task: f"{_name(task)} failed {_times(task)} and is tried again{_because(task)}",
        ),
        (
            "CollectionOverdue",
            lambda task: (
                task.kind == COLLECT and task.state is TaskState.RUNNING and now - task.due >= LONG_SECONDS * 1_000_000
            ),
            lambda task: f"{_name(task)} was due at {as_text(task.due)}, and has not ended yet",
        ),
    )
    ordered = sorted(tasks, key=lambda task: (task.due, task.id))
    return [StallCause(reason, tell(task)) for reason, applies, tell in kinds for task in ordered if applies(task)]


def _dead_letter(task: TaskDescription, *, may_be_cancelled: bool = False) -> Iterator[StallCause]:
    again = f"run `headwater task retry {task.id}`"
    if task.state is TaskState.FAILED:
        what = f"{_name(task)} failed {_times(task)} and is not tried again{_because(task)}"
        yield StallCause("TaskDeadLettered", f"{what}; once the cause is gone, {again}")
    elif task.state is TaskState.CANCELLED and not may_be_cancelled:
        yield StallCause("TaskCancelled", f"{_name(task)} was cancelled; to let it run after all, {again}")


def _name(task: TaskDescription) -> str:
    return f"task {task.id} ({f'{task.kind} {task.subject}'.strip()})"


def _times(task: TaskDescription) -> str:
    return "once" if task.failures == 1 else f"{task.failures} times"


def _because(task: TaskDescription) -> str:
    lines = task.error.strip().splitlines()
    return f": {lines[0]}" if lines else ""
