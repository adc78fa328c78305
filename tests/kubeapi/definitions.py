"""CustomResourceDefinitions: what is filled in and refused, and the kinds that come of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kubeapi.admission import CompiledKind, InvalidCrd
from kubeapi.causes import Cause
from kubeapi.columns import custom_columns
from kubeapi.fields import METADATA
from kubeapi.kinds import Kind

__all__ = ["complete_definition", "established", "faults_of_definition", "is_established", "kinds_of"]

Body = dict[str, Any]

_VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
_NAMES = ("plural", "singular", "kind", "listKind", "shortNames", "categories")


def complete_definition(body: Body) -> None:
    spec = body.setdefault("spec", {})
    names = spec.setdefault("names", {})
    if names.get("kind"):
        names.setdefault("singular", names["kind"].lower())
        names.setdefault("listKind", f"{names['kind']}List")
    spec.setdefault("conversion", {"strategy": "None"})
    stored = [version.get("name") for version in spec.get("versions") or () if version.get("storage")]
    body.setdefault("status", {"acceptedNames": {"plural": "", "kind": ""}, "conditions": None, "storedVersions": stored})


def faults_of_definition(body: Body, old: Body | None) -> Iterator[Cause]:
    spec, names = body["spec"], body["spec"].get("names") or {}
    wanted = f"{names.get('plural', '')}.{spec.get('group', '')}"
    if body["metadata"].get("name") != wanted:
        yield Cause.invalid("metadata.name", body["metadata"].get("name"), 'must be spec.names.plural+"."+spec.group')
    if spec.get("scope") not in ("Namespaced", "Cluster"):
        yield Cause.not_supported("spec.scope", spec.get("scope", ""), ("Cluster", "Namespaced"))
    for name in ("plural", "kind"):
        if not names.get(name):
            yield Cause.required(f"spec.names.{name}")
    versions = spec.get("versions") or []
    if sum(bool(version.get("storage")) for version in versions) != 1:
        yield Cause.invalid("spec.versions", None, "must have exactly one version marked as storage version")
        return
    if spec["conversion"].get("strategy") != "None":
        yield Cause.not_supported("spec.conversion.strategy", spec["conversion"].get("strategy"), ("None",))
    yield from _faults_of_change(spec, old)
    for version in versions:
        try:
            CompiledKind(body, version["name"])
        except InvalidCrd as error:
            yield from error.causes


def kinds_of(body: Mapping[str, Any]) -> list[Kind]:
    """The kinds that this definition serves, one for each served version."""
    spec, names = body["spec"], body["spec"]["names"]
    served = [version for version in spec["versions"] if version.get("served")]
    return [_kind(body, spec, names, version, has_versions=len(spec["versions"]) > 1) for version in served]


def is_established(body: Body) -> bool:
    status = body.get("status") or {}
    names = {name: body["spec"]["names"].get(name) for name in _NAMES if body["spec"]["names"].get(name)}
    return status.get("acceptedNames") == names and bool(status.get("conditions"))


def established(body: Body, now: str) -> Body:
    """The status that says that it is served."""
    names = body["spec"]["names"]
    conditions = [
        _condition("NamesAccepted", "True", "NoConflicts", "no conflicts found", now),
        _condition("Established", "True", "InitialNamesAccepted", "the initial names have been accepted", now),
    ]
    stored = [version["name"] for version in body["spec"]["versions"] if version.get("storage")]
    accepted = {name: names[name] for name in _NAMES if names.get(name)}
    return {"conditions": conditions, "acceptedNames": accepted, "storedVersions": stored}


def _kind(body: Mapping[str, Any], spec: Body, names: Body, version: Body, *, has_versions: bool) -> Kind:
    compiled = CompiledKind(body, version["name"])
    schema = {**compiled.schema, "properties": {**compiled.schema["properties"], "metadata": METADATA}}
    return Kind(
        spec["group"],
        version["name"],
        names["kind"],
        names["plural"],
        names["singular"],
        is_namespaced=spec["scope"] == "Namespaced",
        list_kind=names["listKind"],
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        verbs=_VERBS,
        subresources=("status",) if "status" in (version.get("subresources") or {}) else (),
        has_generation=True,
        is_custom=True,
        is_unconditional=False,
        columns=custom_columns(version.get("additionalPrinterColumns")),
        selectable={one["jsonPath"].lstrip("."): one["jsonPath"] for one in version.get("selectableFields") or ()},
        schema=schema,
        compiled=compiled,
        has_versions=has_versions,
    )


def _condition(kind: str, status: str, reason: str, message: str, now: str) -> Body:
    return {"type": kind, "status": status, "lastTransitionTime": now, "reason": reason, "message": message}


def _faults_of_change(spec: Body, old: Body | None) -> Iterator[Cause]:
    if old is None:
        return
    for path, new, was in (
        ("spec.group", spec.get("group"), old["spec"].get("group")),
        ("spec.scope", spec.get("scope"), old["spec"].get("scope")),
        ("spec.names.kind", spec["names"].get("kind"), old["spec"]["names"].get("kind")),
        ("spec.names.plural", spec["names"].get("plural"), old["spec"]["names"].get("plural")),
    ):
        if new != was:
            yield Cause.invalid(path, new, "field is immutable")
