"""Sentences for whoever wrote a manifest: its own names of fields, and values as it writes them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

from headwater.catalogs import CatalogChanges
from headwater.reconcile.actions import Wait
from headwater.reconcile.manifests import CONFIRM_PURGE
from headwater.settings import duration_text

__all__ = ["Wording", "catalog_changes", "name_in_manifest", "names_in_manifest", "unconfirmed_purge", "value_in_manifest"]


def name_in_manifest(field: str) -> str:
    """``purge_hold_seconds`` is ``purgeHold``."""
    first, *others = field.removesuffix("_seconds").split("_")
    return first + "".join(word.capitalize() for word in others)


def names_in_manifest(fields: Iterable[str]) -> str:
    return ", ".join(map(name_in_manifest, fields))


class Wording(NamedTuple):
    """A step as it was done, and as it would be."""

    past: str
    future: str


def catalog_changes(changes: CatalogChanges, catalog: str) -> Wording:
    """What a change of a catalog's definition means to whoever wrote its manifest, in which it has no manager."""
    names = names_in_manifest(name for name in changes if name not in ("manager", "former"))
    if names:
        return Wording(f"updated {catalog}: {names}", f"update {catalog}: {names}")
    if changes.get("manager") is None:
        return Wording(f"left {catalog} as it is, managed by nobody", f"leave {catalog} as it is, managed by nobody")
    return Wording(f"took {catalog} over", f"take {catalog} over")


def value_in_manifest(field: str, value: object) -> str:
    """The value as JSON, durations as texts such as ``"24h"``."""
    return msgspec.json.encode(_plain(field, msgspec.to_builtins(value))).decode()


def unconfirmed_purge(confirmed: str | None, kind: str, name: str) -> Wait | None:
    """What is waited for, unless the annotation at hand repeats the name of what goes away."""
    if confirmed == name:
        return None
    other = f", and not {confirmed}," if confirmed else ""
    advice = (
        f"annotate {CONFIRM_PURGE}: {name}{other} to have everything in it deleted, or set deletionPolicy: Retain to keep it"
    )
    return Wait("PurgeUnconfirmed", f"{kind} {name} is to be deleted with deletionPolicy Purge; {advice}")


def _plain(field: str, value: Any) -> Any:
    if isinstance(value, dict) and field != "properties":
        return {name_in_manifest(name): _plain(name, inner) for name, inner in value.items()}
    if isinstance(value, int | float) and field.endswith("_seconds"):
        return duration_text(value)
    return value
