"""How the files of a whole store are reached: each realm and catalog by what the storage file says for it."""

from __future__ import annotations

import threading

from headwater.catalogs import CatalogDefinition
from headwater.catalogs.registry import BY_ID, listed_definitions
from headwater.errors import HeadwaterError
from headwater.iceberg import StorageFile, TableStorage
from headwater.iceberg.filesystem import LakeStorage
from headwater.iceberg.location import is_within
from headwater.realms import RealmRegistry
from headwater.store import RealmId, RealmKey, Store


class StoreStorages:
    """The storages of a store's catalogs, opened when they are first needed. Thread-safe."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._options = StorageFile(store.settings.storage_file)
        self._lock = threading.Lock()
        self._realms: dict[RealmKey, tuple[RealmId, list[CatalogDefinition]]] = {}
        self._opened: dict[tuple[str, str], TableStorage] = {}

    def of_catalog(self, realm: str, catalog: str) -> TableStorage:
        with self._lock:
            key = (realm, catalog)
            if key not in self._opened:
                self._opened[key] = TableStorage(self._options, realm=realm, catalog=catalog)
            return self._opened[key]

    def find_lake(self, realm: RealmKey, location: str) -> LakeStorage:
        """How a realm reaches a location: as that catalog does which may have files there."""
        with self._lock:
            if realm not in self._realms:
                self._realms[realm] = self._read_realm(realm)
            name, definitions = self._realms[realm]
        inside = (each.name for each in definitions if any(is_within(location, place) for place in each.places))
        return self.of_catalog(name, next(inside, "")).lake

    def _read_realm(self, key: RealmKey) -> tuple[RealmId, list[CatalogDefinition]]:
        realm = next((realm.id for realm in RealmRegistry(self._store).list_realms() if realm.key == key), RealmId(""))
        try:
            return realm, list(listed_definitions(self._store.rows(realm, key), index=BY_ID))
        except HeadwaterError:
            return realm, []  # the scan of its versions tells
