"""The files in ``crds/``: what an API server makes of them, and what stands in their schemas."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from kubeapi.admission import CompiledKind

ROOT = Path(__file__).parents[2]
FILES = {"Realm": "headwater.dev_realms.yaml", "Catalog": "headwater.dev_catalogs.yaml"}
LEAST: dict[str, dict[str, Any]] = {"Realm": {}, "Catalog": {"realm": "acme", "storage": {"baseLocation": "s3://lake/"}}}
"""The shortest spec of each kind."""
Path_ = tuple[str, ...]


@dataclass(frozen=True)
class Kind:
    """One definition. Bodies go through it as through a server: pruned, filled with defaults, validated."""

    name: str
    definition: dict[str, Any]
    compiled: CompiledKind

    @property
    def served(self) -> dict[str, Any]:
        (version,) = self.definition["spec"]["versions"]
        return dict(version)

    @property
    def schema(self) -> dict[str, Any]:
        return dict(self.served["schema"]["openAPIV3Schema"])

    def made(self, spec: Any = None, *, name: str = "acme") -> dict[str, Any]:
        """A body with this spec, as it is kept."""
        body: dict[str, Any] = {"apiVersion": "headwater.dev/v1alpha1", "kind": self.name, "metadata": {"name": name}}
        if spec is not None:
            body["spec"] = json.loads(json.dumps(spec))  # an object that stands in two places is two there
        assert self.compiled.decode(body) == []
        self.compiled.default(body)
        return body

    def refusals(self, spec: Any, *, name: str = "acme", before: Any = None) -> list[str]:
        """What a person is told of a resource with this spec; nothing when it is taken.

        before        the spec that the resource had, in an update
        """
        old = None if before is None else self.made(before, name=name)
        return list(map(str, self.compiled.validate(self.made(spec, name=name), old)))


@cache
def read_kind(name: str) -> Kind:
    definition = yaml.safe_load((ROOT / "crds" / FILES[name]).read_text(encoding="utf-8"))
    return Kind(name, definition, CompiledKind(definition, "v1alpha1"))


def nodes(schema: Mapping[str, Any], path: Path_ = ()) -> Iterator[tuple[Path_, Mapping[str, Any]]]:
    """Each schema inside this one, with its path; items are ``[]``, values of free names ``*``."""
    yield path, schema
    for name, inner in schema.get("properties", {}).items():
        yield from nodes(inner, (*path, name))
    if "items" in schema:
        yield from nodes(schema["items"], (*path, "[]"))
    if "additionalProperties" in schema:
        yield from nodes(schema["additionalProperties"], (*path, "*"))


def placed(kind: str, path: Path_, value: Any) -> dict[str, Any]:
    """The shortest spec of the kind, with the value at the path: in the only item of each list, and under the name ``x``."""
    inner = value
    for name in reversed(path):
        inner = [inner] if name == "[]" else {"x" if name == "*" else name: inner}
    if path[:2] == ("imports", "[]"):
        (one,) = inner["imports"]
        inner = {"imports": [{"name": "first", "locations": ["s3://lake/"], "mode": "sync", **one}]}
    if path[:3] == ("retention", "patterns", "[]"):
        (one,) = inner["retention"]["patterns"]
        inner = {"retention": {"patterns": [{"pattern": "*", "commits": 1, **one} if isinstance(one, dict) else one]}}
    if path[:3] == ("policies", "snapshots", "[]") and len(path) > 3:
        inner["policies"]["snapshots"][0].setdefault("minToKeep", 1)
    return {**LEAST[kind], **_with_access(inner), **_storage(kind, inner)}


def _with_access(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The spec with what blocks about access require."""
    filled = dict(spec)
    for name in ("principals", "roles"):
        if isinstance(spec.get(name), list):
            filled[name] = [{"name": "reader", **one} if isinstance(one, dict) else one for one in spec[name]]
    for role in filled.get("roles", ()):
        if isinstance(role, dict) and isinstance(role.get("grants"), list):
            role["grants"] = [{"privileges": [_of(one)], **one} if isinstance(one, dict) else one for one in role["grants"]]
    if isinstance(spec.get("connection"), dict):
        filled["connection"] = {"roles": [], **spec["connection"]}
    return filled


def _of(grant: Mapping[str, Any]) -> str:
    """A privilege that can be granted there."""
    on = next((place for place in ("reference", "view", "namespace") if place in grant), "table")
    return f"{on.upper()}_LIST"


def _storage(kind: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    return {"storage": {**LEAST[kind]["storage"], **spec["storage"]}} if "storage" in spec else {}
