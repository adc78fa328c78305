"""What a process remembers of the resources that it looked after: who holds them, and what was told of realms last."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from headwater_operator.conditions import find_condition
from headwater_operator.resources import Key, Resource

__all__ = ["Known"]


class Known:
    """Nothing here is missed after a restart: then every resource is looked at anyway. Safe for threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: dict[Key, Resource] = {}
        self._told: dict[Key, tuple[Any, ...]] = {}

    def hold(self, resource: Resource) -> None:
        """It has the operator's finalizer."""
        with self._lock:
            self._held[resource.key] = replace(resource, packed_status=b"{}", standing=())

    def let_go(self, key: Key) -> None:
        """It has it no more, and that is as it should be."""
        with self._lock:
            self._held.pop(key, None)

    def forget(self, key: Key) -> Resource | None:
        """It is gone. Returns it as it was, if the operator had not let it go."""
        with self._lock:
            self._told.pop(key, None)
            return self._held.pop(key, None)

    def has_news(self, realm: Resource, status: Mapping[str, Any]) -> bool:
        """Whether anything of a Realm that its Catalogs show, or wait for, is other than it was told last."""
        facts = _facts(realm, status)
        with self._lock:
            former = self._told.get(realm.key) or _facts(realm, realm.status)
            self._told[realm.key] = facts
        return former != facts


def _facts(realm: Resource, status: Mapping[str, Any]) -> tuple[Any, ...]:
    ready = find_condition(status.get("conditions") or (), "Ready") or {}
    maintenance = status.get("maintenance")
    times = (maintenance.get("lastTime"), maintenance.get("nextTime")) if isinstance(maintenance, Mapping) else ()
    return (realm.uid, realm.is_deleted, status.get("realmId"), status.get("state"), ready.get("status"), *times)
