"""What the server fills in and refuses for built-in kinds."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from typing import Any

from kubeapi.admission import InvalidCrd, Policies
from kubeapi.causes import Cause
from kubeapi.defaults import default_deployment, default_pod, default_policy, default_scaler, default_service
from kubeapi.definitions import complete_definition, faults_of_definition
from kubeapi.kinds import Kind

__all__ = ["complete", "faults"]

Body = dict[str, Any]
MOST_NOTE_CHARACTERS = 1024
MOST_SECRET_BYTES = 1024 * 1024


def complete(kind: Kind, body: Body) -> None:
    """Fill in what the kind has by itself."""
    completing = _COMPLETING.get(kind.kind)
    if completing is not None:
        completing(body)
    for name, value in kind.baseline.items():
        if kind.kind == "Event":
            body.setdefault(name, dict(value) if isinstance(value, dict) else value)


def faults(kind: Kind, body: Body, old: Body | None) -> Iterator[Cause]:
    if kind.kind in ("Secret", "ConfigMap"):
        yield from _faults_of_data(kind, body, old)
    elif kind.kind == "Lease":
        yield from _faults_of_lease(body.get("spec") or {})
    elif kind.kind == "Event":
        yield from _faults_of_new_event(body) if kind.renamed else _faults_of_event(body)
    elif kind.kind in ("RoleBinding", "ClusterRoleBinding") and old is not None and body.get("roleRef") != old.get("roleRef"):
        yield Cause.invalid("roleRef", body.get("roleRef"), "cannot change roleRef")
    elif kind.kind == "CustomResourceDefinition":
        yield from faults_of_definition(body, old)
    elif kind.kind.startswith("ValidatingAdmissionPolicy"):
        yield from _faults_of_policy(body)
    elif kind.kind == "Deployment" and old is not None:
        yield from _faults_of_selector(body, old)


def _complete_secret(body: Body) -> None:
    texts = body.pop("stringData", None) or {}
    if texts:
        body["data"] = (body.get("data") or {}) | {
            key: base64.b64encode(str(text).encode()).decode() for key, text in texts.items()
        }
    if not body.get("type"):
        body["type"] = "Opaque"


def _complete_namespace(body: Body) -> None:
    metadata = body["metadata"]
    if metadata.get("name"):
        metadata["labels"] = (metadata.get("labels") or {}) | {"kubernetes.io/metadata.name": metadata["name"]}
    if not metadata.get("deletionTimestamp"):
        (body.setdefault("spec", {})).setdefault("finalizers", ["kubernetes"])
        body.setdefault("status", {}).setdefault("phase", "Active")


def _complete_data(body: Body) -> None:
    if not body.get("data"):
        body.pop("data", None)


def _complete_budget(body: Body) -> None:
    counts = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
    body.setdefault("status", dict.fromkeys(counts, 0))


def _complete_access_review(body: Body) -> None:
    """What is empty is not there: an empty group is the core group."""
    attributes = (body.get("spec") or {}).get("resourceAttributes") or {}
    for name in [name for name, value in attributes.items() if value == ""]:
        del attributes[name]


_COMPLETING = {
    "ConfigMap": _complete_data,
    "CustomResourceDefinition": complete_definition,
    "Deployment": default_deployment,
    "HorizontalPodAutoscaler": default_scaler,
    "Namespace": _complete_namespace,
    "Pod": default_pod,
    "PodDisruptionBudget": _complete_budget,
    "Secret": _complete_secret,
    "SelfSubjectAccessReview": _complete_access_review,
    "Service": default_service,
    "ValidatingAdmissionPolicy": default_policy,
}


def _faults_of_policy(body: Body) -> Iterator[Cause]:
    try:
        Policies().put(body)
    except InvalidCrd as error:
        yield from error.causes


def _faults_of_data(kind: Kind, body: Body, old: Body | None) -> Iterator[Cause]:
    size = 0
    for key, value in (body.get("data") or {}).items():
        if not re.fullmatch(r"[-._a-zA-Z0-9]{1,253}", key):
            yield Cause.invalid(
                f"data[{key}]",
                key,
                "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  "
                "or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')",
            )
        if kind.kind == "Secret":
            size += len(base64.b64decode(value or ""))
        elif not isinstance(value, str):
            yield Cause.invalid(f"data[{key}]", value, "must be a string")
    if size > MOST_SECRET_BYTES:
        yield Cause.too_long("data", MOST_SECRET_BYTES)
    if old is None:
        return
    if kind.kind == "Secret" and body.get("type") != old.get("type"):
        yield Cause.invalid("type", body.get("type"), "field is immutable")
    if old.get("immutable"):
        if not body.get("immutable"):
            yield Cause.forbidden("immutable", "field is immutable when `immutable` is set")
        if body.get("data") != old.get("data"):
            yield Cause.forbidden("data", "field is immutable when `immutable` is set")


def _faults_of_lease(spec: Body) -> Iterator[Cause]:
    duration = spec.get("leaseDurationSeconds")
    if duration is not None and duration <= 0:
        yield Cause.invalid("spec.leaseDurationSeconds", duration, "must be greater than 0")
    transitions = spec.get("leaseTransitions")
    if transitions is not None and transitions < 0:
        yield Cause.invalid("spec.leaseTransitions", transitions, "must be greater than or equal to 0")
    holder = spec.get("holderIdentity")
    if holder is not None and not holder:
        yield Cause.invalid("spec.holderIdentity", "", "must not be empty")


def _faults_of_event(body: Body) -> Iterator[Cause]:
    involved = (body.get("involvedObject") or {}).get("namespace") or "default"
    if body["metadata"].get("namespace", "") != involved:
        yield Cause.invalid("involvedObject.namespace", involved, "does not match event.namespace")


def _faults_of_new_event(body: Body) -> Iterator[Cause]:
    if len(body.get("note") or "") > MOST_NOTE_CHARACTERS:
        yield Cause.invalid("message", "", f"can have at most {MOST_NOTE_CHARACTERS} characters")


def _faults_of_selector(body: Body, old: Body) -> Iterator[Cause]:
    if (body.get("spec") or {}).get("selector") != (old.get("spec") or {}).get("selector"):
        yield Cause.invalid("spec.selector", body["spec"].get("selector"), "field is immutable")
