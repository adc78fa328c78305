"""What every handle on one realm's rows knows: its store, its realm, whether it may write, and what it may remember."""

from __future__ import annotations

from typing import Protocol

from headwater.clock import Clock
from headwater.settings import Settings
from headwater.store.backend import Backend
from headwater.store.bounds import Bounds
from headwater.store.cache import Cache
from headwater.store.identity import ObjectId, RealmId, RealmKey

__all__ = ["Gate", "Handle", "Whole"]


class Gate(Protocol):
    """What decides whether a handle may write now."""

    def check_write(self) -> None:
        """Raise RefusedError when it may not."""
        ...


class Whole(Protocol):
    """What the handles on one store share; the store itself."""

    @property
    def backend(self) -> Backend: ...
    @property
    def cache(self) -> Cache: ...
    @property
    def settings(self) -> Settings: ...
    @property
    def clock(self) -> Clock: ...
    def new_id(self) -> ObjectId: ...
    def new_ids(self, n: int) -> list[ObjectId]: ...
    def leave_node(self, node: int) -> None: ...


class Handle:
    """The ground of a handle on one realm. Thread-safe and fork-safe as its store is."""

    def __init__(self, store: Whole, realm: RealmId, key: RealmKey, gate: Gate | None, cache: Cache | None = None) -> None:
        self.store = store
        self.realm = realm
        self.key = key
        self._gate = gate
        self._backend = store.backend
        self._shared = store.cache
        self._cache = store.cache if cache is None else cache
        self._bounds = Bounds(realm, key)

    @property
    def settings(self) -> Settings:
        return self.store.settings

    @property
    def clock(self) -> Clock:
        return self.store.clock

    def new_id(self) -> ObjectId:
        """As ``Store.new_id``."""
        return self.store.new_id()

    def new_ids(self, n: int) -> list[ObjectId]:
        """As ``Store.new_ids``."""
        return self.store.new_ids(n)

    def check_write(self) -> None:
        """Raise RefusedError when this handle may not write now."""
        if self._gate is not None:
            self._gate.check_write()
