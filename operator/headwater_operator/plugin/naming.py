"""What a person means by ``acme`` or ``catalog/lake``, and the names that resources, annotations and fields have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import click

from headwater_operator.kube import resource_path

__all__ = [
    "CONFIRM_PURGE",
    "FIELD_MANAGER",
    "FINALIZER",
    "LEASE",
    "PLAN",
    "REALM",
    "RUN_NOW",
    "TARGET",
    "Target",
    "realm_id_of",
    "realm_name_of",
    "status_of",
]

FINALIZER = "headwater.dev/operator"
LEASE = "headwater-operator"
FIELD_MANAGER = "kubectl-headwater"

# As `headwater.reconcile` names them: importing that room would take as long as all the rest.
CONFIRM_PURGE = "headwater.dev/confirm-purge"
PLAN = "headwater.dev/plan"
RUN_NOW = "headwater.dev/run-now"

_KINDS: Mapping[str, Literal["Realm", "Catalog"]] = {
    **dict.fromkeys(("realm", "realms", "rlm"), "Realm"),
    **dict.fromkeys(("catalog", "catalogs", "hcat"), "Catalog"),
}


@dataclass(frozen=True, slots=True)
class Target:
    """One resource in the namespace at hand."""

    kind: Literal["Realm", "Catalog"]
    name: str

    def __str__(self) -> str:
        return f"{self.kind.lower()}/{self.name}"

    def path(self, namespace: str) -> str:
        return resource_path(self.kind, namespace, self.name)


class _TargetType(click.ParamType[Target]):
    """``NAME`` or ``realm/NAME`` is a Realm; ``catalog/NAME`` is a Catalog, where that is asked for."""

    name = "target"

    def __init__(self, *kinds: str) -> None:
        self.kinds = kinds

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Target:
        if isinstance(value, Target):
            return value
        word, sign, name = str(value).partition("/")
        if not sign:
            word, name = "realm", word
        kind = _KINDS.get(word.lower().removesuffix(".headwater.dev"))
        if kind not in self.kinds or not name or "/" in name:
            forms = " or ".join(["NAME", *(f"{kind.lower()}/NAME" for kind in self.kinds)])
            self.fail(f"{value!r} is not of the form {forms}", param, ctx)
        return Target(kind, name)


TARGET = _TargetType("Realm", "Catalog")
REALM = _TargetType("Realm")


def realm_id_of(realm: Mapping[str, Any]) -> str:
    """The id that a Realm resource stands for: as the operator saw it, or as it is written, or its name."""
    return str(status_of(realm).get("realmId") or realm.get("spec", {}).get("realmId") or realm["metadata"]["name"])


def realm_name_of(catalog: Mapping[str, Any]) -> str:
    """The name of the Realm resource that a Catalog belongs to."""
    return str(catalog.get("spec", {}).get("realm", ""))


def status_of(resource: Mapping[str, Any]) -> Mapping[str, Any]:
    found = resource.get("status")
    return found if isinstance(found, Mapping) else {}
