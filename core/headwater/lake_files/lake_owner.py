"""The catalog in whose locations a file or a folder lies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from headwater.catalogs import CatalogDefinition, Catalogs
from headwater.iceberg.location import is_within
from headwater.realms import Realm, RealmRegistry, RealmState
from headwater.store import RealmStore, Store

_READABLE = (RealmState.ACTIVE, RealmState.INACTIVE)


@dataclass(frozen=True, slots=True)
class LakeOwner:
    """A catalog, and the realm that it belongs to."""

    realm: Realm
    rows: RealmStore
    definition: CatalogDefinition


def find_lake_owner(store: Store, location: str) -> LakeOwner | None:
    """The catalog in whose locations something lies: of several the one whose location is the longest."""
    found: list[tuple[int, LakeOwner]] = []
    for realm, rows in readable_realms(store):
        for definition in Catalogs(rows).list_catalogs():
            sizes = [len(place) for place in definition.places if is_within(location, place)]
            if sizes:
                found.append((max(sizes), LakeOwner(realm, rows, definition)))
    return max(found, key=lambda entry: entry[0])[1] if found else None


def readable_realms(store: Store) -> Iterator[tuple[Realm, RealmStore]]:
    """The realms whose catalogs can be read."""
    for realm in RealmRegistry(store).list_realms():
        if realm.state in _READABLE:
            yield realm, store.rows(realm.id, realm.key)
