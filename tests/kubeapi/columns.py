"""Columns of tables: those of the built-in kinds, and those that a CustomResourceDefinition asks for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from kubeapi.jsonpaths import compile_path
from kubeapi.kinds import Column
from kubeapi.times import age, parse

__all__ = ["BUILT_IN", "NAME", "custom_columns", "default_columns"]

_NAME_TELLS = (
    "Name must be unique within a namespace. Is required when creating resources, although some resources may allow a client to "
    "request the generation of an appropriate name automatically. Name is primarily intended for creation idempotence and "
    "configuration definition. Cannot be updated. More info: "
    "https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names"
)
_CREATED_TELLS = (
    "CreationTimestamp is a timestamp representing the server time when this object was created. It is not guaranteed to be set "
    "in happens-before order across separate operations. Clients may not set this value. It is represented in RFC3339 form and "
    "is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: "
    "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata"
)
Body = Mapping[str, Any]


def _age_of(value: Any, now: float) -> str:
    seconds = parse(value) if isinstance(value, str) else None
    return "<unknown>" if seconds is None else age(now - seconds)


def _created(body: Body, now: float) -> str:
    return _age_of(body["metadata"].get("creationTimestamp"), now)


def _at(path: str, otherwise: Any = "") -> Any:
    names = path.split(".")

    def read(body: Body, _now: float) -> Any:
        value: Any = body
        for name in names:
            value = value.get(name) if isinstance(value, Mapping) else None
        return otherwise if value is None else value

    return read


def _count(*fields: str) -> Any:
    return lambda body, _now: sum(len(body.get(field) or ()) for field in fields)


def _ready(body: Body, _now: float) -> str:
    status = body.get("status", {})
    return f"{status.get('readyReplicas', 0)}/{body.get('spec', {}).get('replicas', 1)}"


def _last_seen(body: Body, now: float) -> str:
    series = body.get("series") or {}
    seen = series.get("lastObservedTime") or body.get("lastTimestamp") or body.get("eventTime") or body.get("firstTimestamp")
    return _age_of(seen, now)


def _involved(body: Body, _now: float) -> str:
    involved = body.get("involvedObject", {})
    return f"{str(involved.get('kind', '')).lower()}/{involved.get('name', '')}"


def _source(body: Body, _now: float) -> str:
    source = body.get("source") or {}
    return ", ".join(part for part in (source.get("component"), source.get("host")) if part)


NAME = Column("Name", _at("metadata.name"), format="name", description=_NAME_TELLS)
AGE = Column("Age", _created, description=_CREATED_TELLS)
CREATED = Column("Created At", _at("metadata.creationTimestamp"), type="date", description=_CREATED_TELLS)

BUILT_IN: Mapping[str, tuple[Column, ...]] = {
    "namespaces": (NAME, Column("Status", _at("status.phase"), description="The status of the namespace"), AGE),
    "configmaps": (NAME, Column("Data", _count("data", "binaryData")), AGE),
    "secrets": (NAME, Column("Type", _at("type")), Column("Data", _count("data")), AGE),
    "serviceaccounts": (NAME, Column("Secrets", _count("secrets")), AGE),
    "services": (
        NAME,
        Column("Type", _at("spec.type", "ClusterIP")),
        Column("Cluster-IP", _at("spec.clusterIP", "<none>")),
        Column("External-IP", lambda _body, _now: "<none>"),
        Column(
            "Port(s)",
            lambda body, _now: ",".join(f"{p['port']}/{p.get('protocol', 'TCP')}" for p in body["spec"].get("ports", [])),
        ),
        AGE,
    ),
    "pods": (
        NAME,
        Column("Ready", lambda body, _now: f"0/{len(body.get('spec', {}).get('containers', ()))}"),
        Column("Status", _at("status.phase", "Pending")),
        Column("Restarts", lambda _body, _now: "0"),
        AGE,
    ),
    "deployments.apps": (
        NAME,
        Column("Ready", _ready),
        Column("Up-to-date", _at("status.updatedReplicas", 0), type="integer"),
        Column("Available", _at("status.availableReplicas", 0), type="integer"),
        AGE,
    ),
    "leases.coordination.k8s.io": (NAME, Column("Holder", _at("spec.holderIdentity")), AGE),
    "customresourcedefinitions.apiextensions.k8s.io": (NAME, CREATED),
    "roles.rbac.authorization.k8s.io": (NAME, CREATED),
    "clusterroles.rbac.authorization.k8s.io": (NAME, CREATED),
    "rolebindings.rbac.authorization.k8s.io": (
        NAME,
        Column("Role", lambda body, _now: f"{body['roleRef']['kind']}/{body['roleRef']['name']}"),
        AGE,
    ),
    "clusterrolebindings.rbac.authorization.k8s.io": (
        NAME,
        Column("Role", lambda body, _now: f"{body['roleRef']['kind']}/{body['roleRef']['name']}"),
        AGE,
    ),
    "validatingadmissionpolicies.admissionregistration.k8s.io": (
        NAME,
        Column("Validations", lambda body, _now: len(body.get("spec", {}).get("validations", ())), type="integer"),
        Column("ParamKind", lambda _body, _now: "<unset>"),
        AGE,
    ),
    "validatingadmissionpolicybindings.admissionregistration.k8s.io": (
        NAME,
        Column("PolicyName", _at("spec.policyName")),
        Column("ParamRef", lambda _body, _now: "<unset>"),
        AGE,
    ),
    "events": (
        Column("Last Seen", _last_seen),
        Column("Type", _at("type")),
        Column("Reason", _at("reason")),
        Column("Object", _involved),
        Column("Subobject", _at("involvedObject.fieldPath"), priority=1),
        Column("Source", _source, priority=1),
        Column("Message", _at("message")),
        Column("First Seen", lambda body, now: _age_of(body.get("firstTimestamp") or body.get("eventTime"), now), priority=1),
        Column("Count", _at("count", 1), priority=1),
        Column("Name", _at("metadata.name"), format="name", description=_NAME_TELLS, priority=1),
    ),
}


def default_columns() -> tuple[Column, ...]:
    return (NAME, AGE)


def custom_columns(wanted: list[Body] | None) -> tuple[Column, ...]:
    """The columns of a version of a CustomResourceDefinition."""
    if not wanted:
        wanted = [{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}]
    return (NAME, *map(_custom_column, wanted))


def _custom_column(wanted: Body) -> Column:
    path, kind = wanted["jsonPath"], wanted["type"]
    described = wanted.get("description") or f"Custom resource definition column (in JSONPath format): {path}"
    find = compile_path(path)

    def read(body: Body, now: float) -> Any:
        found = find(body)
        if not found:
            return None
        if kind == "date":
            return _age_of(found[0], now)
        if kind == "string":
            return _as_text(found)
        return found[0] if isinstance(found[0], int | float | bool) else None

    return Column(wanted["name"], read, kind, wanted.get("format", ""), described, wanted.get("priority", 0))


def _as_text(found: list[Any]) -> str:
    one = found[0] if len(found) == 1 else found
    return one if isinstance(one, str) else json.dumps(one, separators=(",", ":"))
