"""What is stored, compared with what a manifest declares: field by field, in the words of the manifest. Writes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import msgspec

from headwater.policies import KIND_FIELDS
from headwater.realms import RealmState
from headwater.reconcile.actions import Action, DeclarePolicies, Effect, name_in_manifest, only, value_in_manifest
from headwater.reconcile.catalog_plan import plan_catalog
from headwater.reconcile.declared_diff import (
    SHOWN_BY_FIELDS,
    catalog_access_fields,
    catalog_fields_after,
    policy_fields,
    realm_access_fields,
    realm_fields_after,
)
from headwater.reconcile.manifests import CatalogManifest, ManagerIdentity, Manifest, RealmManifest
from headwater.reconcile.observed_state import StoreObserver
from headwater.reconcile.plan_preview import future_sentences
from headwater.reconcile.realm_plan import plan_realm
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
    """A field that is stored with another value than declared, both as JSON text; None: it is not there.

    is_set        both are lists without an order
    """

    field: str
    stored: str | None
    declared: str | None
    is_set: bool = False


@dataclass(frozen=True, slots=True)
class ManifestComparison:
    """What differs between the store and a manifest.

    fields        by name: of the definition, of principals and roles, and of policies
    told          the sentences of planned steps that say no more than the fields do
    """

    fields: tuple[FieldDifference, ...]
    told: frozenset[str] = frozenset()


def compare_manifest(store: Store, manifest: Manifest, *, manager: ManagerIdentity) -> ManifestComparison | None:
    """Compare a realm or a catalog with its manifest; None where it is not there at all.

    Of principals, roles and policies those fields differ that carrying the manifest out would change now.
    """
    observer, now = StoreObserver(store), store.clock.now()
    if isinstance(manifest, RealmManifest):
        observed = observer.observe_realm(manifest, manager)
        if (realm := observed.realm) is None:
            return None
        stored = {"state": _STATES.get(realm.state, realm.state.value), **_values(realm, manifest)}
        declared: dict[str, object] = {"state": manifest.spec.state, **manifest.spec.fields()}
        plan = plan_realm(manifest, observed, now)
        before = realm_access_fields(observed.access)
        more = list(_changed(before, realm_fields_after(before, plan)))
    else:
        of_catalog = observer.observe_catalog(manifest, manager, may_be_unmanaged=True)
        if (catalog := of_catalog.catalog) is None:
            return None
        stored, declared = _values(catalog, manifest), {**manifest.spec.fields()}
        plan = plan_catalog(manifest, of_catalog, now)
        before = catalog_access_fields(of_catalog.access, manifest.described)
        more = list(_changed(before, catalog_fields_after(before, plan, manifest.described)))
        for policies in only(plan, DeclarePolicies):
            kinds = policies.kinds
            more += _changed(policy_fields(of_catalog.policies, kinds), policy_fields(policies.policies, kinds))
    fields = sorted([*_differences(stored, declared), *more], key=lambda each: each.field)
    return ManifestComparison(tuple(fields), frozenset(_told(plan, manifest.described, {each.field for each in more})))


def _told(plan: Sequence[Action], subject: str, fields: Set[str]) -> Iterator[str]:
    for action in plan:
        if isinstance(action, DeclarePolicies):  # one that was set by hand, and is declared the same, has no field that differs
            is_told = all(any(field.startswith(f"policies.{KIND_FIELDS[kind]}") for field in fields) for kind in action.kinds)
        else:
            is_told = isinstance(action, SHOWN_BY_FIELDS)
        if is_told and isinstance(action, Effect):
            yield from future_sentences(action, subject)


def _values(definition: object, manifest: RealmManifest | CatalogManifest) -> dict[str, object]:
    return {name: getattr(definition, name) for name in manifest.spec.fields()}


def _differences(stored: Mapping[str, object], declared: Mapping[str, object]) -> Iterator[FieldDifference]:
    for name, wanted in declared.items():
        before, after = (dict(_leaves(name_in_manifest(name), _plain(name, value))) for value in (stored[name], wanted))
        for field in {*before, *after}:
            if before.get(field) != after.get(field):
                yield FieldDifference(_PLACES.get(field, field), before.get(field), after.get(field))


def _changed(before: Mapping[str, object], after: Mapping[str, object]) -> Iterator[FieldDifference]:
    for field in {*before, *after}:
        old, new = before.get(field), after.get(field)
        if old != new:
            yield FieldDifference(field, _json(old), _json(new), is_set=isinstance(new if old is None else old, set))


def _json(value: object) -> str | None:
    return None if value is None else msgspec.json.encode(sorted(value) if isinstance(value, set) else value).decode()


def _plain(name: str, value: object) -> Any:
    return msgspec.json.decode(value_in_manifest(name, value))


def _leaves(path: str, value: Any) -> Iterator[tuple[str, str]]:
    """The values below a field by their paths; nothing for what is left out of a manifest. A list is one value."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _leaves(f"{path}.{name}", inner)
    elif value is not None and value != []:
        yield path, without_logins(msgspec.json.encode(value).decode())
