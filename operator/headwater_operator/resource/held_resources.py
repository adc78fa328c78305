"""What a process remembers of the resources that it looked after: who holds them, and what was told of realms last."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from headwater_operator.resource.conditions import find_condition
from headwater_operator.runtime.informer_cache import CachedResource, ResourceKey


class HeldResources:
    """Nothing here is missed after a restart: then every resource is looked at anyway. Safe for threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: dict[ResourceKey, CachedResource] = {}
        self._told: dict[ResourceKey, tuple[Any, ...]] = {}
        self._realms: dict[ResourceKey, str] = {}
        self._keepers: dict[str, ResourceKey] = {}

    def hold(self, resource: CachedResource) -> None:
        """It has the operator's finalizer, and is looked after from now on."""
        with self._lock:
            self._held[resource.key] = replace(resource, packed_status=b"{}", standing=())
            self._told.setdefault(resource.key, _facts(resource, resource.status))

    def let_go(self, key: ResourceKey) -> None:
        """It has it no more, and that is as it should be."""
        with self._lock:
            self._held.pop(key, None)

    def forget_resource(self, key: ResourceKey) -> CachedResource | None:
        """It is gone. Returns it as it was, if the operator had not let it go."""
        with self._lock:
            self._told.pop(key, None)
            return self._held.pop(key, None)

    def keeps(self, key: ResourceKey, realm_id: str) -> ResourceKey | None:
        """The realm is this Realm's own, and is told of. Returns the other Realm whose own it was until now, if there is one."""
        with self._lock:
            former = self._keepers.get(realm_id, key)
            self._realms[key] = realm_id
            self._keepers[realm_id] = key
            return former if former != key else None

    def keeps_none(self, key: ResourceKey) -> str | None:
        """This Realm has none any more. Returns the id of the realm that nobody tells of now, if there is one."""
        with self._lock:
            realm_id = self._realms.pop(key, None)
            if realm_id is None or self._keepers.get(realm_id) != key:
                return None  # another Realm has taken it over
            del self._keepers[realm_id]
            return realm_id

    def has_news(self, resource: CachedResource, status: Mapping[str, Any]) -> bool:
        """Whether anything that others show of it, or wait for, is not as they were told last, or as it was seen first."""
        facts = _facts(resource, status)
        with self._lock:
            former = self._told.get(resource.key)
            self._told[resource.key] = facts
        return former != facts


def _facts(resource: CachedResource, status: Mapping[str, Any]) -> tuple[Any, ...]:
    """Of a Realm, what its Catalogs are told; of a Catalog, what its Realm counts."""
    if resource.kind == "Catalog":
        return (resource.uid, *(status.get(name) for name in ("state", "catalogId", "tables")))
    ready = find_condition(status.get("conditions") or (), "Ready") or {}
    maintenance = status.get("maintenance")
    times = (maintenance.get("lastTime"), maintenance.get("nextTime")) if isinstance(maintenance, Mapping) else ()
    named = (status.get(name) for name in ("realmId", "state"))
    return (resource.uid, resource.is_deleted, *named, ready.get("status"), *times)
