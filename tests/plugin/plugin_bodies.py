"""Resources as users write them and as the operator would have filled them in."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

__all__ = [
    "FINALIZER",
    "NOW",
    "catalog_body",
    "catalog_status",
    "condition",
    "import_status",
    "realm_body",
    "realm_status",
    "time_text",
    "with_identity",
]

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
FINALIZER = "headwater.dev/operator"

Body = dict[str, Any]


def time_text(*, now: datetime = NOW, **ahead: float) -> str:
    return (now + timedelta(**ahead)).strftime("%Y-%m-%dT%H:%M:%SZ")


def condition(kind: str, status: str = "True", reason: str = "Reconciled", message: str = "") -> Body:
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "observedGeneration": 1,
        "lastTransitionTime": time_text(hours=-3),
    }


def realm_body(name: str = "acme", annotations: dict[str, str] | None = None, **spec: Any) -> Body:
    metadata = {"name": name, **({"annotations": annotations} if annotations else {})}
    return {"apiVersion": "headwater.dev/v1alpha1", "kind": "Realm", "metadata": metadata, "spec": spec}


def catalog_body(name: str = "lake", realm: str = "acme", **spec: Any) -> Body:
    storage = {"baseLocation": f"s3://lake/{name}"}
    return {
        "apiVersion": "headwater.dev/v1alpha1",
        "kind": "Catalog",
        "metadata": {"name": name},
        "spec": {"realm": realm, "storage": storage, **spec},
    }


def realm_status(realm_id: str = "acme", **fields: Any) -> Body:
    """A realm that is well, with what ``fields`` say otherwise."""
    conditions = [
        condition("Ready"),
        condition("Accepted", reason="Accepted"),
        condition("StoreReachable", reason="StoreAnswered"),
        condition("MaintenanceHealthy", reason="AsScheduled"),
        condition("CredentialsAvailable", reason="SecretPresent"),
        condition("Drifted", "False"),
    ]
    return {
        "observedGeneration": 1,
        "state": "ACTIVE",
        "realmId": realm_id,
        "realmKey": "033f1a6b2c400001",
        "message": "",
        "conditions": conditions,
        "catalogs": 1,
        "tables": 14,
        "maintenance": {
            "lastTime": time_text(days=-4),
            "lastResult": "Succeeded",
            "lastSuccessTime": time_text(days=-4),
            "nextTime": time_text(days=3),
            "suspended": False,
            "lastTask": "033f1a6b2c400777",
            "objectsDeleted": 1204,
            "bytesReclaimed": 3_400_000,
        },
        "credentialsSecret": f"{realm_id}-root-credentials",
        **fields,
    }


def import_status(name: str = "initial", **fields: Any) -> Body:
    return {
        "name": name,
        "mode": "once",
        "state": "SUCCEEDED",
        "lastTime": time_text(days=-9),
        "lastResult": "Succeeded",
        **fields,
    }


def catalog_status(**fields: Any) -> Body:
    conditions = [
        condition("Ready"),
        condition("Accepted", reason="Accepted"),
        condition("StoreReachable", reason="StoreAnswered"),
        condition("RealmReady", reason="RealmActive"),
        condition("ImportsHealthy", reason="AsScheduled"),
    ]
    return {
        "observedGeneration": 1,
        "state": "ACTIVE",
        "realmId": "acme",
        "catalogId": "033f1a6b2c400010",
        "message": "",
        "conditions": conditions,
        "tables": 14,
        "namespaces": 3,
        "imports": [import_status(imported=13, quarantined=1)],
        **fields,
    }


def with_identity(body: Body, *, uid: str = "uid-1", **status: Any) -> Body:
    """As the API server gives it back."""
    metadata = {"namespace": "lakes", "uid": uid, "generation": 1, "resourceVersion": "7", **body["metadata"]}
    return {**body, "metadata": metadata, "status": status}
