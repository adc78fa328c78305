"""The schemas of Realms and Catalogs: those that this operator is built for, and whether the API server serves no older ones.

An API server with an older definition drops the fields that it does not know, from what it reads as well as from what it is sent: the spec
of a stored resource gets shorter, and its generation stays. A missing field is then not a decision of the user. The resource must not be
written either, not even its status: the server would store what it has read, and the fields would be lost for good.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from headwater.clock import Clock
from headwater.errors import RefusedError
from headwater_operator.kube import KINDS, KubeApi, resource_path

_DIGEST_VERSION = "1"
_SHOWN = 5
Fields = Mapping[str, Mapping[str, Any]]


class SchemaOlderError(RefusedError):
    """The API server has dropped fields that this operator knows, or would drop them: what is not in a spec means nothing."""


@cache
def built_in_fields(kind: str) -> Fields:
    """The fields of a kind by path, each with its ``default`` where it has one."""
    text = files(__package__).joinpath("built_in_schemas.json").read_text(encoding="utf-8")
    fields: Fields = json.loads(text)[kind]["fields"]
    return fields


def spec_digest(kind: str, spec: Mapping[str, Any]) -> str:
    """A digest of what a spec says. Fields that are as by default, or that this operator does not know, make no difference.

    So it stays when another release's definition fills in more defaults. Its first part is the version of this calculation.
    """
    text = json.dumps(_without_defaults(spec, "spec", built_in_fields(kind)), sort_keys=True, separators=(",", ":"))
    return f"{_DIGEST_VERSION}-{hashlib.blake2b(text.encode(), digest_size=16).hexdigest()}"


def has_shrunk(kind: str, generation: int, spec: Mapping[str, Any], status: Mapping[str, Any]) -> bool:
    """Whether the spec differs from the one that this generation had when the operator first looked at it."""
    known = status.get("specDigest")
    if status.get("observedGeneration") != generation or not isinstance(known, str):
        return False
    return known.startswith(f"{_DIGEST_VERSION}-") and known != spec_digest(kind, spec)


class ServedSchemas:
    """Asks the API server for the schemas that it serves. Thread-safe.

    The definitions themselves are read, which are never late; an identity that may not do so reads what the server publishes of them.
    """

    def __init__(self, api: KubeApi, clock: Clock) -> None:
        self._api = api
        self._clock = clock
        self._lock = threading.Lock()
        self._checked: dict[str, float] = {}
        self._faults: dict[str, str] = {}

    def check(self, kind: str, *, max_age_seconds: float = 0.0) -> None:
        """Pass if the server keeps every field of this kind.

        max_age_seconds  how old a good result may be that is taken for the present one
        raises           SchemaOlderError; ApiUnavailableError when the server does not say
        """
        now = self._clock.monotonic()
        with self._lock:
            if not self._faults.get(kind) and now - self._checked.get(kind, float("-inf")) < max_age_seconds:
                return
        missing = self._missing(kind)
        fault = _told(kind, missing) if missing else ""
        with self._lock:
            self._checked[kind], self._faults[kind] = now, fault
        if fault:
            raise SchemaOlderError(fault)

    def faults(self) -> dict[str, str]:
        """What the last check of each kind found; empty where all is well."""
        with self._lock:
            return dict(self._faults)

    def _missing(self, kind: str) -> list[str]:
        served = set(_field_paths(self._schema(kind)))
        return [path for path in built_in_fields(kind) if path not in served]

    def _schema(self, kind: str) -> Mapping[str, Any]:
        path = KINDS[kind]
        group, _, version = path.group_version.partition("/")
        try:
            definition = self._api.get_resource(resource_path("CustomResourceDefinition", None, f"{path.plural}.{group}"))
        except RefusedError:
            return _published(self._api, kind, path.group_version)
        versions = definition.get("spec", {}).get("versions") or []
        schemas = (found.get("schema", {}).get("openAPIV3Schema") for found in versions if found.get("name") == version)
        return next(schemas, None) or {}


def _published(api: KubeApi, kind: str, group_version: str) -> Mapping[str, Any]:
    """The schema as everybody may read it who may use the API at all; a change takes a moment to get there."""
    published = api.get_resource(f"/openapi/v3/apis/{group_version}").get("components", {}).get("schemas") or {}
    for schema in published.values():
        if any(found.get("kind") == kind for found in schema.get("x-kubernetes-group-version-kind") or ()):
            return dict(schema)
    return {}


def check_served_schemas(api: KubeApi, clock: Clock) -> None:
    """Pass if the server keeps every field of both kinds; raises SchemaOlderError, and what keeps the server from answering."""
    schemas, faults = ServedSchemas(api, clock), []
    for kind in ("Realm", "Catalog"):
        try:
            schemas.check(kind)
        except SchemaOlderError as older:
            faults.append(str(older))
    if faults:
        raise SchemaOlderError("; ".join(faults))


def _told(kind: str, missing: list[str]) -> str:
    path = KINDS[kind]
    more = f" and {len(missing) - _SHOWN} more" if len(missing) > _SHOWN else ""
    return (
        f"the definition {path.plural}.{path.group} in the cluster is older than this operator, and drops "
        f"{', '.join(missing[:_SHOWN])}{more}; nothing is done about any {kind} until that is put right: "
        "apply the CRDs of this operator's chart"
    )


def _field_paths(schema: Mapping[str, Any], path: str = "") -> Iterator[str]:
    """Each field below a schema, as in ``built_in_fields``."""
    below: dict[str, Any] = {f".{name}": inner for name, inner in (schema.get("properties") or {}).items()}
    below |= {"[]": schema["items"]} if isinstance(schema.get("items"), Mapping) else {}
    below |= {"{}": schema["additionalProperties"]} if isinstance(schema.get("additionalProperties"), Mapping) else {}
    for step, inner in below.items():
        yield f"{path}{step}".lstrip(".")
        yield from _field_paths(inner, f"{path}{step}")


def _without_defaults(value: Any, path: str, fields: Fields) -> Any:
    """A value without the fields that are as by default, and without those that are not known."""
    if isinstance(value, list):
        return [_without_defaults(item, f"{path}[]", fields) for item in value]
    if not isinstance(value, Mapping):
        return value
    is_map = f"{path}{{}}" in fields
    kept = {}
    for name, inner in value.items():
        below = f"{path}{{}}" if is_map else f"{path}.{name}"
        if below not in fields:
            continue
        told = _without_defaults(inner, below, fields)
        if "default" not in fields[below] or told != _without_defaults(fields[below]["default"], below, fields):
            kept[name] = told
    return kept
