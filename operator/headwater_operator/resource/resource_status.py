"""The status of a resource, a pure function of its spec, the result of a pass and the observed store; and its writer.

Equal inputs give an equal status, and a status that is fed back as the former one gives itself again: nothing changes when nothing
happened. What the store did not report this time stays as last seen.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from headwater.catalogs import CatalogState
from headwater.clock import Clock, Micros, as_text
from headwater.outcome_text import outcome_sentence
from headwater.realms import RealmState
from headwater.reconcile import (
    CatalogDescription,
    ImportDescription,
    LakeWorkDescription,
    PlanPreview,
    RealmDescription,
    ReconcileOutcome,
    RefuseManifest,
    ReportDrift,
    TaskDescription,
    WaitUntil,
    quarantined_tables,
)
from headwater.reconcile.manifests import PLAN
from headwater.tasks import TaskState
from headwater_operator.kube import KubeApi, resource_path
from headwater_operator.resource.conditions import (
    MESSAGE_LIMIT,
    UNSEEN,
    Condition,
    ReconcileResult,
    SecretSeen,
    UnreadState,
    catalog_conditions,
    cut_message,
    is_overdue,
    merge_conditions,
    realm_conditions,
    realm_id_of,
)
from headwater_operator.resource.reasons import CONDITIONS
from headwater_operator.runtime.informer_cache import CachedResource, ResourceCache, ResourceChange, ResourceKey
from headwater_operator.runtime.served_schema import has_shrunk, spec_digest

TASKS_SHOWN = 10
IMPORTS_SHOWN = 20
CODES_SHOWN = 10
OTHER = "Other"
PLAN_LINES = 50
SENTENCE = 256
"""The longest text in characters that is meant to be read at a glance."""
TOKEN_LIMIT = 253
_HALF_CHARACTER = re.compile("[\ud800-\udfff]")

_RESULTS = {TaskState.SUCCEEDED: "Succeeded", TaskState.FAILED: "Failed", TaskState.CANCELLED: "Cancelled"}
_SEEN_OF_REALM = ("state", "realmKey", "catalogs", "tables", "tasks", "maintenance", "purge", "credentialsSecret")
_SEEN_OF_CATALOG = ("state", "realmId", "catalogId", "tables", "namespaces", "imports", "lakeWork")
_OURS = {
    "Realm": ("observedGeneration", "specDigest", "realmId", "message", "conditions", "plan", *_SEEN_OF_REALM),
    "Catalog": (
        "observedGeneration",
        "specDigest",
        "message",
        "conditions",
        "plan",
        "lastMaintenanceTime",
        "nextMaintenanceTime",
        *_SEEN_OF_CATALOG,
    ),
}
_TYPES = frozenset(condition.name for condition in CONDITIONS)


@dataclass(frozen=True, slots=True)
class PlanMade:
    """The plan that was requested under this token."""

    token: str
    preview: PlanPreview


def realm_status(
    resource: CachedResource,
    outcome: ReconcileOutcome | Exception,
    realm: RealmDescription | UnreadState | None,
    *,
    now: Micros,
    secret: SecretSeen | UnreadState = UNSEEN,
    plan: PlanMade | None = None,
) -> dict[str, Any]:
    """The status of a Realm.

    outcome       the outcome of the pass; an exception when it had none
    realm         the realm afterwards; None when there is none; UNSEEN when the store did not answer, or was not read
    secret        the Secret of its root; UNSEEN when it was not read
    plan          a plan made just now; an earlier one for the same token stays
    """
    former = resource.status
    before = _conditions(former)
    verdict = ReconcileResult.from_outcome(outcome, is_seen=realm is not UNSEEN)
    conditions = realm_conditions(resource, verdict, realm, former=before, secret=secret, now=now)
    if verdict.is_foreign:
        shown: dict[str, Any] = {}  # another's realm concerns nobody else
    elif isinstance(realm, UnreadState):
        shown = _as_before(former, _SEEN_OF_REALM)
    elif realm is None:
        shown = {"tasks": []}
    else:
        shown = _realm(resource, realm, former, secret, now)
    return {
        **_observed(resource),
        "realmId": realm_id_of(resource),
        **shown,
        "message": _message(conditions),
        "conditions": merge_conditions(before, conditions, generation=resource.generation, now=now),
        **_plan(resource, plan, former, now),
    }


def catalog_status(
    resource: CachedResource,
    outcome: ReconcileOutcome | Exception,
    catalog: CatalogDescription | UnreadState | None,
    *,
    now: Micros,
    realm: CachedResource | None = None,
    realm_id: str | None = None,
    secret: SecretSeen | UnreadState | None = None,
    plan: PlanMade | None = None,
) -> dict[str, Any]:
    """The status of a Catalog.

    realm         the Realm that it names: its status has the maintenance times
    realm_id      the id of the realm; default: the id that the Realm reports, or last reported
    secret        that of its connection; None where it has none, or is not there itself
    others        as for a Realm
    """
    former = resource.status
    before = _conditions(former)
    verdict = ReconcileResult.from_outcome(outcome, is_seen=catalog is not UNSEEN)
    conditions = catalog_conditions(resource, verdict, catalog, former=before, now=now, secret=secret)
    if verdict.is_foreign:
        shown: dict[str, Any] = {"state": "PENDING"}
    elif isinstance(catalog, UnreadState):
        shown = {"state": "PENDING", **_as_before(former, _SEEN_OF_CATALOG)}
    else:
        shown = _catalog(resource, catalog, now)
    if known_id := realm_id or (realm_id_of(realm) if realm is not None else former.get("realmId")):
        shown["realmId"] = known_id
    return {
        **_observed(resource),
        **shown,
        **({} if verdict.is_foreign else _maintenance_times(realm, former)),
        "message": _message(conditions),
        "conditions": merge_conditions(before, conditions, generation=resource.generation, now=now),
        **_plan(resource, plan, former, now),
    }


def is_written(resource: CachedResource, status: Mapping[str, Any]) -> bool:
    """Whether the resource has this status already. Fields that others added count for nothing."""
    current = resource.status
    for name in _OURS[resource.kind]:
        if name != "conditions" and current.get(name) != status.get(name):
            return False
    wanted = {condition["type"]: condition for condition in _conditions(status)}
    return wanted == {condition["type"]: condition for condition in _conditions(current) if condition.get("type") in _TYPES}


def asked_plan(resource: CachedResource) -> str | None:
    """The token of a requested plan that was not made yet; None when there is none.

    The annotation is JSON with a `token`; of any other text, a digest is the token.
    """
    token = _token(resource)
    made = resource.status.get("plan")
    return None if token is None or (isinstance(made, dict) and made.get("token") == token) else token


def _observed(resource: CachedResource) -> dict[str, Any]:
    """The generation that the status is about, and the spec that it had when it was first looked at."""
    if has_shrunk(resource.kind, resource.generation, resource.spec, resource.status):
        return _as_before(resource.status, ("observedGeneration", "specDigest"))
    return {"observedGeneration": resource.generation, "specDigest": spec_digest(resource.kind, resource.spec)}


def _conditions(status: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    conditions = status.get("conditions")
    return [condition for condition in conditions if isinstance(condition, dict)] if isinstance(conditions, list) else []


def _as_before(former: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {name: former[name] for name in names if name in former}


def _message(conditions: Sequence[Condition]) -> str:
    """The obstacles and waits, the most important first; empty when all is well."""
    by_type = {condition.type: condition for condition in conditions}
    worse = (
        *(condition for condition in conditions if condition.type == "Ready" and condition.status != "True"),
        *(condition for condition in conditions if condition.type == "Drifted" and condition.status == "True"),
        *(by_type[name] for name in ("MaintenanceHealthy", "ImportsHealthy", "CredentialsAvailable") if _is_bad(by_type, name)),
    )
    return cut_message(" ".join(worse[0].message.split()), SENTENCE) if worse else ""


def _is_bad(by_type: Mapping[str, Condition], name: str) -> bool:
    return name in by_type and by_type[name].status == "False"


def _realm(
    resource: CachedResource, realm: RealmDescription, former: Mapping[str, Any], secret: SecretSeen | UnreadState, now: Micros
) -> dict[str, Any]:
    key = f"{realm.key:016x}"
    if former.get("realmKey") != key:
        former = {}  # an earlier realm of the same id
    shown: dict[str, Any] = {
        "state": str(realm.state),
        "realmKey": key,
        "tasks": _tasks(realm.tasks, now),
        "maintenance": _maintenance(realm, former),
    }
    if realm.catalogs is not None and realm.tables is not None:
        shown |= {"catalogs": realm.catalogs, "tables": realm.tables}
    if purge := _purge(resource, realm):
        shown["purge"] = purge
    if isinstance(secret, UnreadState):
        shown |= _as_before(former, ("credentialsSecret",))
    elif secret.exists:
        shown["credentialsSecret"] = secret.name
    return shown


def _maintenance(realm: RealmDescription, former: Mapping[str, Any]) -> dict[str, Any]:
    """The last garbage collection, and the next one."""
    shown: dict[str, Any] = {"suspended": realm.is_suspended}
    is_waiting = all(task.state is TaskState.WAITING for task in realm.tasks if task.due == realm.next_collection)
    if realm.next_collection is not None and is_waiting:
        shown["nextTime"] = as_text(realm.next_collection)
    before = former.get("maintenance")
    success = as_text(realm.last_success) if realm.last_success else _known(before, "lastSuccessTime")
    if success:
        shown["lastSuccessTime"] = success
    last = realm.last_collection
    if last is None or last.finished is None:
        return {**_known_all(before, ("lastTime", "lastResult", "lastTask", "objectsDeleted", "bytesReclaimed")), **shown}
    shown |= {"lastTime": as_text(last.finished), "lastResult": _RESULTS[last.state], "lastTask": last.id}
    if last.state is TaskState.SUCCEEDED:
        shown |= {"objectsDeleted": _count(last, "deleted"), "bytesReclaimed": _count(last, "deletedBytes")}
    return shown


def _purge(resource: CachedResource, realm: RealmDescription) -> dict[str, Any]:
    """The progress of the purge, once one was requested."""
    is_going = realm.state in (RealmState.PURGING, RealmState.PURGED)
    if not is_going and not (resource.is_deleted and resource.spec.get("deletionPolicy") == "Purge"):
        return {}
    shown: dict[str, Any] = {}
    if realm.hold_until is not None:
        shown["holdUntil"] = as_text(realm.hold_until)
    if realm.purge is not None and is_going:
        is_done = realm.purge.state is TaskState.SUCCEEDED
        shown["rowsDeleted"] = _count(realm.purge, "rowsDeleted") if is_done else realm.purge.done
        if is_done or (realm.purge.total and realm.purge.total >= realm.purge.done):
            shown["rowsRemaining"] = 0 if is_done else (realm.purge.total or 0) - realm.purge.done
    return shown


def _catalog(resource: CachedResource, catalog: CatalogDescription | None, now: Micros) -> dict[str, Any]:
    shown: dict[str, Any] = {"state": _catalog_state(resource, catalog), "imports": []}
    if catalog is not None:
        shown |= {
            "catalogId": catalog.id,
            "tables": catalog.tables,
            "namespaces": catalog.namespaces,
            "imports": [_import(entry, now) for entry in catalog.imports[:IMPORTS_SHOWN]],
        }
        if works := [_lake_work(work, now) for work in catalog.lake_work if work.active or work.last]:
            shown["lakeWork"] = works
    return shown


def _catalog_state(resource: CachedResource, catalog: CatalogDescription | None) -> str:
    if resource.is_deleted:
        return "DELETING"
    return "ACTIVE" if catalog is not None and catalog.state is CatalogState.ACTIVE else "PENDING"


def _lake_work(work: LakeWorkDescription, now: Micros) -> dict[str, Any]:
    task = work.active or work.last
    shown: dict[str, Any] = {"kind": work.kind}
    if task is not None:
        shown |= {"state": str(task.state), "task": task.id, **_progress(task), **_told_of(task, now)}
        if task.state is TaskState.WAITING and task.error and "message" not in shown:
            shown["message"] = cut_message(" ".join(task.error.split()), SENTENCE)  # why it was put off, such as a stop
        if task.state is TaskState.SUCCEEDED and (outcome := outcome_sentence(task.kind, task.outcome)):
            shown["message"] = cut_message(outcome, SENTENCE)
    if work.next is not None:
        shown["nextTime"] = as_text(work.next)
    if work.last is not None and work.last.finished is not None:
        shown |= {"lastTime": as_text(work.last.finished), "lastResult": _RESULTS[work.last.state]}
    return shown


def _import(entry: ImportDescription, now: Micros) -> dict[str, Any]:
    task = entry.active or entry.last
    shown: dict[str, Any] = {"name": entry.name, "mode": entry.mode}
    if task is not None:
        shown |= {"state": str(task.state), "task": task.id, **_progress(task), **_told_of(task, now)}
    if entry.next is not None:
        shown["nextTime"] = as_text(entry.next)
    if entry.last is not None and entry.last.finished is not None:
        shown |= {"lastTime": as_text(entry.last.finished), "lastResult": _RESULTS[entry.last.state]}
    return shown if entry.succeeded is None else {**shown, **_import_counts(entry, entry.succeeded)}


def _import_counts(entry: ImportDescription, run: TaskDescription) -> dict[str, Any]:
    """The result of the last successful run; a later failure leaves it unchanged."""
    counts = {name: _count(run, name) for name in ("surveyed", "imported", "updated", "unchanged")}
    counts |= {name: count for name in ("gone", "dropped") if (count := _count(run, name))}
    shown: dict[str, Any] = {"run": run.id, **counts, "quarantined": quarantined_tables(entry)}
    if codes := _quarantine_codes(run):
        shown["quarantineCodes"] = codes
    commits = run.outcome.get("commits")
    hashes = commits.get("shown") if isinstance(commits, Mapping) else None
    if isinstance(hashes, Sequence) and hashes and isinstance(hashes[-1], str):
        shown["commit"] = hashes[-1]
    return shown


def _quarantine_codes(run: TaskDescription) -> list[dict[str, Any]]:
    """The number of tables that were left alone by reason, the most frequent first; the rest are counted together."""
    quarantine = run.outcome.get("quarantined")
    codes = quarantine.get("codes") if isinstance(quarantine, Mapping) else None
    if not isinstance(codes, Mapping):
        return []
    counted = sorted(codes.items(), key=lambda pair: (-pair[1], pair[0]))
    rest = sum(tables for _, tables in counted[CODES_SHOWN:])
    return [{"code": code, "tables": tables} for code, tables in [*counted[:CODES_SHOWN], *([(OTHER, rest)] if rest else [])]]


def _maintenance_times(realm: CachedResource | None, former: Mapping[str, Any]) -> dict[str, Any]:
    """The maintenance times of the realm, because garbage is collected realm by realm."""
    if realm is None:
        return _as_before(former, ("lastMaintenanceTime", "nextMaintenanceTime"))
    maintenance = realm.status.get("maintenance")
    times = {"lastMaintenanceTime": _known(maintenance, "lastTime"), "nextMaintenanceTime": _known(maintenance, "nextTime")}
    return {name: time for name, time in times.items() if time}


def _tasks(tasks: Iterable[TaskDescription], now: Micros) -> list[dict[str, Any]]:
    """The active tasks: running ones first, then the others by due time."""
    ordered = sorted(tasks, key=lambda task: (task.state is not TaskState.RUNNING, task.due, task.id))
    return [_task(task, now) for task in ordered[:TASKS_SHOWN]]


def _task(task: TaskDescription, now: Micros) -> dict[str, Any]:
    shown: dict[str, Any] = {"id": task.id, "kind": task.kind, "state": str(task.state), "attempt": task.attempt}
    if task.subject:
        shown["subject"] = task.subject
    shown["due"] = as_text(task.due)
    if task.started is not None:
        shown["started"] = as_text(task.started)
    return {**shown, **_progress(task), **_told_of(task, now)}


def _progress(task: TaskDescription) -> dict[str, Any]:
    """Numbers, once there are any. A total of zero is an unknown one; of a task that has ended, its outcome is shown instead."""
    if not task.unit or not task.state.is_active:
        return {}
    return {"done": task.done, "unit": task.unit, **({"total": task.total} if task.total else {})}


def _told_of(task: TaskDescription, now: Micros) -> dict[str, str]:
    message = ""
    if task.is_stopping and task.state.is_active:
        message = "is being stopped"
    elif is_overdue(task, now):
        message = f"due since {as_text(task.due)}, and no worker took it"
    elif task.state is not TaskState.SUCCEEDED and (task.failures or task.state is TaskState.FAILED):
        message = cut_message(" ".join(task.error.split()), SENTENCE)
    return {"message": message} if message else {}


def _count(task: TaskDescription, name: str) -> int:
    count = task.outcome.get(name)
    return count if isinstance(count, int) and not isinstance(count, bool) else 0


def _known(value: object, name: str) -> str:
    text = value.get(name) if isinstance(value, dict) else None
    return text if isinstance(text, str) else ""


def _known_all(value: object, names: Iterable[str]) -> dict[str, Any]:
    return _as_before(value, names) if isinstance(value, dict) else {}


def _token(resource: CachedResource) -> str | None:
    text = resource.annotations.get(PLAN)
    if not text:
        return None
    try:
        question = json.loads(text)
    except (ValueError, RecursionError):  # the latter: nested more deeply than anybody intends
        question = None
    token = question.get("token") if isinstance(question, dict) else None
    if isinstance(token, str) and 0 < len(token) <= TOKEN_LIMIT and not _HALF_CHARACTER.search(token):
        return token
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def _plan(resource: CachedResource, made: PlanMade | None, former: Mapping[str, Any], now: Micros) -> dict[str, Any]:
    """The requested plan, as long as it is requested."""
    token, before = _token(resource), former.get("plan")
    if token is None:
        return {}
    if made is None or made.token != token:
        return {"plan": before} if isinstance(before, dict) and before.get("token") == token else {}
    plan = {
        "token": token,
        "steps": _lines(made.preview.steps),
        "waits": _lines(map(_sentence, made.preview.waits)),
        "refused": _lines(map(_sentence, made.preview.refused)),
        "reports": _lines(map(_sentence, made.preview.reports)),
    }
    is_same = isinstance(before, dict) and {**before, "time": None} == {**plan, "time": None}
    return {"plan": {**plan, "time": before["time"] if is_same and isinstance(before, dict) else as_text(now)}}


def _lines(sentences: Iterable[str]) -> list[str]:
    return [cut_message(sentence, MESSAGE_LIMIT) for sentence in sentences][:PLAN_LINES]


def _sentence(notice: WaitUntil | RefuseManifest | ReportDrift) -> str:
    until = f" (until {as_text(notice.until)})" if isinstance(notice, WaitUntil) and notice.until is not None else ""
    return f"{notice.reason}: {notice.message}{until}"


LONGEST_PAUSE_SECONDS = 300.0
FORGIVEN_SECONDS = 3600.0

_encode = msgspec.json.Encoder(order="deterministic").encode


@dataclass(slots=True)
class _Written:
    """The last written status, its time, and how often in a row it was undone by others."""

    digest: bytes
    at: float
    undone: int = 0


class StatusWriter:
    """Applies statuses as one field manager.

    A written status that disappeared was changed by another writer. It is corrected, at once the first time, and then
    with growing pauses: two insisting writers would keep the API server busy for ever.
    """

    def __init__(self, api: KubeApi, cache: ResourceCache, clock: Clock) -> None:
        self._api = api
        self._cache = cache
        self._clock = clock
        self._lock = threading.Lock()
        self._written: dict[ResourceKey, _Written] = {}

    def write_status(self, resource: CachedResource, status: Mapping[str, Any]) -> ResourceChange:
        """Write the status unless it is there already. Call ``pause`` first.

        returns       what else changed meanwhile
        raises        NotFoundError when the resource is gone
        """
        if is_written(resource, status):
            return ResourceChange.NOTHING
        self._cache.expect(resource.key, status)
        path = resource_path(resource.kind, resource.namespace, resource.name, "status")
        metadata = {"name": resource.name, "namespace": resource.namespace}
        body = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, "status": status}
        answer = self._api.patch_resource(path, body, kind="apply")
        self._note(resource.key, _digest(status))
        return self._cache.learn(answer)

    def pause(self, resource: CachedResource, status: Mapping[str, Any]) -> float:
        """Seconds to wait before this status may be written; 0 when it may be written now, or is there already."""
        with self._lock:
            written = self._written.get(resource.key)
        if written is None or not written.undone or written.digest != _digest(status) or is_written(resource, status):
            return 0.0
        wait = min(2.0 ** (written.undone - 1), LONGEST_PAUSE_SECONDS)
        return max(written.at + wait - self._clock.monotonic(), 0.0)

    def forget_resource(self, key: ResourceKey) -> None:
        with self._lock:
            self._written.pop(key, None)

    def _note(self, key: ResourceKey, digest: bytes) -> None:
        now = self._clock.monotonic()
        with self._lock:
            former = self._written.get(key)
            is_repeated = former is not None and former.digest == digest and now - former.at < FORGIVEN_SECONDS
            self._written[key] = _Written(digest, now, former.undone + 1 if former is not None and is_repeated else 0)


def _digest(status: Mapping[str, Any]) -> bytes:
    return hashlib.blake2b(_encode(status), digest_size=16).digest()
