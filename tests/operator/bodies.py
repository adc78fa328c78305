"""Resources, and what a store shows of realms and catalogs, as plain values for the pure parts of the operator."""

from __future__ import annotations

from typing import Any

from headwater.catalogs import CatalogState
from headwater.clock import Micros
from headwater.realms import RealmState
from headwater.reconcile import (
    CatalogDescription,
    ImportDescription,
    LakeWorkDescription,
    RealmDescription,
    ReconcileOutcome,
    TaskDescription,
)
from headwater.tasks import TaskState
from headwater_operator.runtime.informer_cache import CachedResource

NOW = Micros(1_780_000_000_000_000)
NOW_TEXT = "2026-05-28T20:26:40Z"
SECOND = 1_000_000
HOUR = 3600 * SECOND

OK = ReconcileOutcome(subject="it")


def later(seconds: float) -> Micros:
    return Micros(NOW + round(seconds * SECOND))


def body(kind: str = "Realm", name: str = "acme", **others: Any) -> dict[str, Any]:
    """A body as the API server gives it. ``spec`` and ``status`` are taken as they are, other names go into the metadata."""
    specs: dict[str, dict[str, Any]] = {
        "Realm": {"realmId": name},
        "Catalog": {"realm": "acme", "name": name, "storage": {"baseLocation": "s3://lake/"}},
    }
    spec, status = others.pop("spec", {}), others.pop("status", None)
    metadata = {
        "name": name,
        "namespace": "default",
        "uid": f"uid-of-{name}",
        "generation": 1,
        "resourceVersion": "1",
        "creationTimestamp": NOW_TEXT,
        **others,
    }
    made = {"apiVersion": "headwater.dev/v1alpha1", "kind": kind, "metadata": metadata, "spec": specs[kind] | spec}
    return made if status is None else {**made, "status": status}


def realm(**others: Any) -> CachedResource:
    return CachedResource.from_body(body("Realm", **others))


def catalog(**others: Any) -> CachedResource:
    return CachedResource.from_body(body("Catalog", **{"name": "lake", **others}))


def task(**others: Any) -> TaskDescription:
    """A collection that waits for its time."""
    usual: dict[str, Any] = {
        "id": "024850f60011101e",
        "kind": "gc",
        "subject": "",
        "state": TaskState.WAITING,
        "attempt": 0,
        "failures": 0,
        "due": later(86_400),
        "started": None,
        "finished": None,
        "done": 0,
        "total": None,
        "unit": "",
        "error": "",
        "outcome": {},
        "is_stopping": False,
    }
    given = usual | others
    return TaskDescription(**{"since": given["due"], **given})


def ended(state: TaskState = TaskState.SUCCEEDED, **others: Any) -> TaskDescription:
    """A task that has run."""
    usual: dict[str, Any] = {"attempt": 1, "due": later(-120), "started": later(-120), "finished": later(-60), "state": state}
    return task(**usual | others)


def realm_seen(**others: Any) -> RealmDescription:
    """An ACTIVE realm whose next collection waits."""
    waiting = task()
    usual: dict[str, Any] = {
        "id": "acme",
        "key": 0x024850F600111000,
        "state": RealmState.ACTIVE,
        "manager": None,
        "catalogs": 1,
        "tables": 7,
        "tasks": (waiting,),
        "last_collection": None,
        "last_success": None,
        "next_collection": waiting.due,
        "is_suspended": False,
        "hold_until": None,
        "purge": None,
    }
    return RealmDescription(**usual | others)


def catalog_seen(**others: Any) -> CatalogDescription:
    """An ACTIVE catalog without imports."""
    usual: dict[str, Any] = {
        "id": "024850f600111abc",
        "name": "lake",
        "state": CatalogState.ACTIVE,
        "tables": 7,
        "namespaces": 2,
        "imports": (),
    }
    return CatalogDescription(**usual | others)


def import_seen(**others: Any) -> ImportDescription:
    """One that never ran; its last task, if that succeeded, is the one that succeeded last."""
    last = others.get("last")
    succeeded = last if last is not None and last.state is TaskState.SUCCEEDED else None
    usual = {"name": "initial", "mode": "once", "active": None, "last": None, "next": None, "succeeded": succeeded}
    return ImportDescription(**usual | others)


def lake_work_seen(**others: Any) -> LakeWorkDescription:
    """Reports of files, of which none has run."""
    usual: dict[str, Any] = {"kind": "report-files", "active": None, "last": None, "next": None}
    return LakeWorkDescription(**usual | others)


def condition(status: dict[str, Any], type_: str) -> tuple[str, str]:
    """Status and reason of a condition; empty texts where there is none."""
    found = next((one for one in status["conditions"] if one["type"] == type_), {"status": "", "reason": ""})
    return found["status"], found["reason"]
