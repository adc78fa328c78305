"""The same object in another version, or under the other names of the newer Events."""

from __future__ import annotations

from typing import Any

from kubeapi.kinds import Kind

__all__ = ["from_stored", "to_stored"]

Body = dict[str, Any]


def from_stored(kind: Kind, body: Body) -> Body:
    """A stored object as this version of its kind shows it."""
    if body.get("apiVersion") == kind.api_version and not kind.renamed:
        return body
    names = {there: here for here, there in kind.renamed.items()}
    shown = {names.get(name, name): value for name, value in body.items()}
    shown["apiVersion"] = kind.api_version
    return shown


def to_stored(kind: Kind, body: Body) -> Body:
    stored = {kind.renamed.get(name, name): value for name, value in body.items()}
    if kind.stored_as:
        stored["apiVersion"] = "v1"
    return stored
