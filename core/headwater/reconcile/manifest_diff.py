"""What is stored, compared with what a manifest declares: field by field, in the words of the manifest. Writes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from headwater.realms import RealmState
from headwater.reconcile.actions import name_in_manifest, value_in_manifest
from headwater.reconcile.manifests import CatalogManifest, ManagerIdentity, Manifest, RealmManifest
from headwater.reconcile.observed_state import StoreObserver
from headwater.redaction import without_logins
from headwater.store import Store

_PLACES = {
    "retention.contentAge": "retention.content.age",
    "retention.contentCommits": "retention.content.commits",
    "retention.referenceCommits": "retention.references.commits",
    "retention.references": "retention.patterns",
    "baseLocation": "storage.baseLocation",
    "allowedLocations": "storage.allowedLocations",
}
"""Where a manifest has what a definition keeps elsewhere."""
_STATES = {RealmState.ACTIVE: "Active", RealmState.INACTIVE: "Inactive"}


@dataclass(frozen=True, slots=True)
class FieldDifference:
    """A field that is stored with another value than declared, both as JSON text; None: it is not there."""

    field: str
    stored: str | None
    declared: str | None


def compare_manifest(store: Store, manifest: Manifest, *, manager: ManagerIdentity) -> tuple[FieldDifference, ...] | None:
    """The fields of a realm or a catalog that differ from its manifest, by name; None where it is not there at all.

    Principals, roles, connections and policies are no fields of a definition, and no part of this.
    """
    observer = StoreObserver(store)
    if isinstance(manifest, RealmManifest):
        realm = observer.observe_realm(manifest, manager).realm
        if realm is None:
            return None
        stored = {"state": _STATES.get(realm.state, realm.state.value), **_values(realm, manifest)}
        declared: dict[str, object] = {"state": manifest.spec.state, **manifest.spec.fields()}
    else:
        catalog = observer.observe_catalog(manifest, manager, may_be_unmanaged=True).catalog
        if catalog is None:
            return None
        stored, declared = _values(catalog, manifest), {**manifest.spec.fields()}
    return tuple(sorted(_differences(stored, declared), key=lambda each: each.field))


def _values(definition: object, manifest: RealmManifest | CatalogManifest) -> dict[str, object]:
    return {name: getattr(definition, name) for name in manifest.spec.fields()}


def _differences(stored: Mapping[str, object], declared: Mapping[str, object]) -> Iterator[FieldDifference]:
    for name, wanted in declared.items():
        before, after = (dict(_leaves(name_in_manifest(name), _plain(name, value))) for value in (stored[name], wanted))
        for field in before.keys() | after.keys():
            if before.get(field) != after.get(field):
                yield FieldDifference(_PLACES.get(field, field), before.get(field), after.get(field))


def _plain(name: str, value: object) -> Any:
    return msgspec.json.decode(value_in_manifest(name, value))


def _leaves(path: str, value: Any) -> Iterator[tuple[str, str]]:
    """The values below a field by their paths; nothing for what is left out of a manifest. A list is one value."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _leaves(f"{path}.{name}", inner)
    elif value is not None and value != []:
        yield path, without_logins(msgspec.json.encode(value).decode())
