"""The names by which people know a table of which a report knows the uuid: its realm, its catalog, its key."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any
from uuid import UUID

from headwater.catalogs import Catalog, CatalogDefinition, Catalogs, TableClaims
from headwater.catalogs.content import derive_content_id
from headwater.catalogs.content_operations import IDS, find_content_key, index_at
from headwater.errors import HeadwaterError
from headwater.realms import RealmRegistry
from headwater.store import RealmKey, RealmStore, Store

_MOST_LOOKED_UP = 20
"""Each may take a look at every branch of its realm's catalogs."""


class LakeTableNames:
    """Names tables in messages; the first few by their keys, further ones by what is known without a look."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._looked_up = 0

    def realm(self, key: RealmKey) -> str:
        realm = next((realm.id for realm in RealmRegistry(self._store).list_realms() if realm.key == key), None)
        return f"the realm of key {key:x}" if realm is None else f"realm {realm!r}"

    def describe(self, realm: RealmKey, table: str, place: str) -> str:
        """A table, as ``table sales.orders of catalog 'lake' of realm 'acme'``.

        table         its uuid, or its location where it has none
        place         where it lies
        """
        self._looked_up += 1
        if self._looked_up <= _MOST_LOOKED_UP:
            try:
                found = self._find_key(realm, table)
            except HeadwaterError:
                found = None  # what is wrong with that realm is said by others
            if found is not None:
                catalog, key = found
                return f"table {key} of catalog {catalog!r} of {self.realm(realm)}"
        return f"table {table} at {place} of {self.realm(realm)}"

    def _find_key(self, realm: RealmKey, table: str) -> tuple[str, str] | None:
        for each in RealmRegistry(self._store).list_realms():
            if each.key != realm:
                continue
            rows = self._store.rows(each.id, each.key)
            for definition in Catalogs(rows).list_catalogs():
                content_id = find_content_id(rows, definition, table)
                for _, head in heads_of(rows, definition) if content_id is not None else ():
                    key = find_content_key(index_at(head, IDS), content_id) if content_id is not None else None
                    if key is not None:
                        return definition.name, str(key)
        return None


def find_content_id(rows: RealmStore, definition: CatalogDefinition, table: str) -> UUID | None:
    """The content id that a table has in a catalog, if it has one there; by the table's uuid, or its location where it has none."""
    try:
        uuid = UUID(table)
    except ValueError:
        holder = TableClaims(rows).find_holders([table]).get(table)
        return None if holder is None or holder.catalog_id != definition.id else holder.content_id
    owner = TableClaims(rows).find_by_uuid([uuid]).get(uuid)
    if owner is not None:
        return owner.content_id if owner.catalog_id == definition.id else None
    return derive_content_id(uuid)


def heads_of(rows: RealmStore, definition: CatalogDefinition) -> Iterator[tuple[str, Any]]:
    """The branches and tags of a catalog, as ``branch main``, each with its commit."""
    catalog = Catalog(rows, definition)
    listed: Iterable[tuple[str, Any]] = [
        *((f"branch {each.name}", each) for each in catalog.branches()),
        *((f"tag {each.name}", each) for each in catalog.tags()),
    ]
    resolve: Callable[[str], Any] = catalog.resolve
    for name, reference in listed:
        try:
            yield name, resolve(reference.name)
        except HeadwaterError:
            continue  # deleted after it was listed
