"""What a definition of a kind, or a policy, lets in: admission without webhooks, and in doubt stricter than a real server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kubeapi.causes import UNCHECKED, Cause, InvalidCrd
from kubeapi.policies import Denial, Policies
from kubeapi.rules import compile_rules
from kubeapi.schemas import duplicates, fill, prune, violations
from kubeapi.structure import structural_faults

__all__ = ["Cause", "CompiledKind", "Denial", "InvalidCrd", "Policies"]

_OBJECT_META = {
    *("name", "generateName", "namespace", "selfLink", "uid", "resourceVersion", "generation", "creationTimestamp"),
    *(
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "labels",
        "annotations",
        "ownerReferences",
        "finalizers",
        "managedFields",
    ),
}
_METADATA_NAMES = ("name", "generateName")


class CompiledKind:
    """One served version of a definition of a kind.

    raises        InvalidCrd for a schema that a real server would not take, and for what is not done here
    """

    def __init__(self, crd: Mapping[str, Any], version: str) -> None:
        number, served = next((number, one) for number, one in enumerate(crd["spec"]["versions"]) if one["name"] == version)
        path = f"spec.versions[{number}].schema.openAPIV3Schema"
        schema = (served.get("schema") or {}).get("openAPIV3Schema")
        if schema is None:
            raise InvalidCrd([Cause.required(path, "schemas are required")])
        faults = [*structural_faults(schema, path, is_root=True), *_metadata_faults(schema, path)]
        if faults:
            raise InvalidCrd(faults)
        self.schema = _with_type_meta(schema)
        self._rules = compile_rules(self.schema, path, faults)
        faults += _path_faults(served, self.schema, f"spec.versions[{number}]")
        if faults:
            raise InvalidCrd(faults)

    def decode(self, obj: dict[str, Any]) -> list[str]:
        """Take away what the kind does not know. Returns the paths of it."""
        metadata = obj.get("metadata")
        known = {"metadata": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
        pruned = prune(obj, {**self.schema, "properties": {**self.schema["properties"], **known}})
        for name in [name for name in metadata if name not in _OBJECT_META] if isinstance(metadata, dict) else ():
            del metadata[name]
            pruned.append(f"metadata.{name}")
        return pruned

    def read(self, obj: dict[str, Any]) -> None:
        """Read a stored object as this version: what it does not know is left out, and what it gives by default is there."""
        self.decode(obj)
        self.default(obj)

    def default(self, obj: dict[str, Any]) -> None:
        """Fill in what the kind gives by default, and drop nulls."""
        fill(obj, self.schema)

    def validate(
        self, new: dict[str, Any], old: dict[str, Any] | None = None, *, is_status: bool = False, is_blocked: bool = False
    ) -> list[Cause]:
        """What is wrong with the object, in the words of a real server.

        new           decoded, with defaults
        old           what stood there before, in an update
        is_status     for a write of the subresource, where only the status is held against its schema
        is_blocked    what was found before keeps the rules from being checked
        """
        causes = list(self._status_violations(new) if is_status else violations(new, self.schema))
        causes += duplicates(new, self.schema)
        if self._rules.is_empty:
            return causes
        if is_blocked or any(cause.is_blocking for cause in causes):
            return [*causes, UNCHECKED]
        return [*causes, *self._rules.check(new, old)]

    def _status_violations(self, new: Mapping[str, Any]) -> Iterator[Cause]:
        schema = self.schema["properties"].get("status")
        if schema is None or "status" not in new:
            return
        for cause in violations(new["status"], schema):
            field = f"status.{cause.field}" if cause.field else "status"
            yield Cause(cause.reason, cause.message, field)


def _with_type_meta(schema: Mapping[str, Any]) -> dict[str, Any]:
    """What every kind has, where the schema does not say it."""
    text = {"type": "string"}
    properties = schema.get("properties", {})
    named = {**dict.fromkeys(_METADATA_NAMES, text), **properties.get("metadata", {}).get("properties", {})}
    metadata = {"type": "object", "properties": named}
    return {**schema, "properties": {"apiVersion": text, "kind": text, **properties, "metadata": metadata}}


def _metadata_faults(schema: Mapping[str, Any], path: str) -> Iterator[Cause]:
    metadata = schema.get("properties", {}).get("metadata", {})
    where = f"{path}.properties[metadata]"
    if metadata.keys() - {"type", "properties"} or metadata.get("properties", {}).keys() - set(_METADATA_NAMES):
        yield Cause.forbidden(
            where, "must not specify anything other than name and generateName, but metadata is implicitly specified"
        )
    if any("default" in inner for inner in metadata.get("properties", {}).values()):
        yield Cause.forbidden(where, "must not have defaults")


def _path_faults(served: Mapping[str, Any], schema: Mapping[str, Any], path: str) -> Iterator[Cause]:
    """Columns and selectable fields."""
    for number, column in enumerate(served.get("additionalPrinterColumns", ())):
        where = f"{path}.additionalPrinterColumns[{number}]"
        if column.get("type") not in ("integer", "number", "string", "boolean", "date"):
            yield Cause.not_supported(f"{where}.type", column.get("type"), ("integer", "number", "string", "boolean", "date"))
        if not str(column.get("jsonPath", "")).startswith("."):
            yield Cause.invalid(f"{where}.jsonPath", column.get("jsonPath"), "must be a simple json path starting with .")
    for number, selectable in enumerate(served.get("selectableFields", ())):
        inner: Mapping[str, Any] | None = schema
        for name in str(selectable.get("jsonPath", "")).removeprefix(".").split("."):
            inner = (inner or {}).get("properties", {}).get(name)
        if inner is None or inner.get("type") not in ("string", "boolean", "integer"):
            where = f"{path}.selectableFields[{number}].jsonPath"
            yield Cause.invalid(where, selectable.get("jsonPath"), "must point to a field of type string, boolean or integer")
