"""An access plug-in for Headwater's server that decides by Cedar policies, with the library cedarpy.

    pip install cedarpy .
    HEADWATER_SERVER_ACCESS=cedar HEADWATER_SERVER_ACCESS_FILE=policies.cedar headwater serve

A question becomes a request of Cedar:

    principal     User::"REALM/NAME", in Role::"REALM/ROLE" for each of its principal roles
    action        Action::"PRIVILEGE", in every privilege that includes it: a policy for TABLE_WRITE_DATA allows TABLE_READ_DATA, too
    resource      Catalog, Namespace, Table, View or Reference, named by the catalog and the elements of the key, joined by slashes, with
                  what has a meaning in URLs written as there; each is in the namespaces above it and in its catalog
    context       reference (empty for a commit that only its hash names), isDefault, and contentId of a table or view
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import cedarpy

from headwater.access import INCLUDED, AccessQuestion, AccessSubject, Privilege, Securable, SecurableKind

_ACTIONS = [
    {
        "uid": {"type": "Action", "id": privilege.value},
        "attrs": {},
        "parents": [
            {"type": "Action", "id": other.value}
            for other in Privilege
            if other is not privilege and privilege in INCLUDED[other]
        ],
    }
    for privilege in Privilege
]


class CedarAccess:
    """Decides by a set of policies, which is parsed once."""

    def __init__(self, policies: str) -> None:
        self._policies = cedarpy.PolicySet.from_str(policies)

    def decide(self, subject: AccessSubject, questions: Sequence[AccessQuestion]) -> Sequence[bool]:
        user = {"type": "User", "id": f"{subject.realm}/{subject.name}"}
        roles = [{"type": "Role", "id": f"{subject.realm}/{role}"} for role in subject.roles]
        entities = [*_ACTIONS, {"uid": user, "attrs": {}, "parents": roles}]
        known: dict[tuple[str, str], dict[str, Any]] = {}
        requests = []
        for question in questions:
            requests.append(
                {
                    "principal": user,
                    "action": {"type": "Action", "id": question.privilege.value},
                    "resource": _resource(question.on, known),
                    "context": _context(question),
                }
            )
        results = cedarpy.is_authorized_batch(requests, self._policies, [*entities, *known.values()])
        return [result.allowed for result in results]


def make_access(file: str) -> CedarAccess:
    """The entry point: the file holds the policies."""
    return CedarAccess(Path(file).read_text(encoding="utf-8"))


def _resource(on: Securable, known: dict[tuple[str, str], dict[str, Any]]) -> dict[str, str]:
    """The entity of a securable; it and everything above it are added to those that are known."""
    uid = _uid(on)
    if (uid["type"], uid["id"]) not in known:
        parents = [_resource(above, known) for above in _above(on)]
        known[uid["type"], uid["id"]] = {"uid": uid, "attrs": {}, "parents": parents}
    return uid


def _uid(on: Securable) -> dict[str, str]:
    # a slash inside of a name is not one between names: a table of the namespace "sales/eu" is none of "eu" in "sales"
    name = on.pattern if on.kind is SecurableKind.REFERENCE else "/".join(quote(element, safe="") for element in on.path)
    parts = [on.catalog or ""] + ([name] if name else [])
    return {"type": on.kind.value.capitalize(), "id": "/".join(parts)}


def _above(on: Securable) -> list[Securable]:
    if on.catalog is None or on.kind is SecurableKind.CATALOG:
        return []
    if len(on.path) > 1:
        return [Securable(kind=SecurableKind.NAMESPACE, catalog=on.catalog, path=on.path[:-1])]
    return [Securable(kind=SecurableKind.CATALOG, catalog=on.catalog)]


def _context(question: AccessQuestion) -> dict[str, Any]:
    context: dict[str, Any] = {"reference": question.reference.name or "", "isDefault": question.reference.is_default}
    return context if question.on.content_id is None else {**context, "contentId": str(question.on.content_id)}
