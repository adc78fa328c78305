"""What a process remembers: decoded immutable objects, bounded by their stored bytes, and references with a time to live."""

from __future__ import annotations

import threading
from collections import OrderedDict

from headwater.clock import Clock
from headwater.store.backend import ReferenceRow
from headwater.store.identity import ObjectId, RealmKey
from headwater.store.objects import StoredObject

__all__ = ["Cache"]

_OVERHEAD = 512
"""Bytes that an entry weighs beside its stored ones: keys, links and the decoded shape."""
_REFERENCES = 10_000


class Cache:
    """Objects by realm and id, least recently used first out; up to 10 000 references by realm and name.

    An older version of a reference never replaces a newer one, however late a reader comes with it.
    """

    def __init__(self, *, clock: Clock, budget_bytes: int, reference_ttl_seconds: float) -> None:
        self._clock = clock
        self._budget = budget_bytes
        self._ttl = reference_ttl_seconds
        self.after_fork()

    def after_fork(self) -> None:
        """Start empty in a forked child, whatever a thread of the parent was doing."""
        self._lock = threading.Lock()
        self._empty()

    def clear(self) -> None:
        with self._lock:
            self._empty()

    def _empty(self) -> None:
        self._weight = 0
        self._objects: OrderedDict[tuple[RealmKey, ObjectId], tuple[StoredObject, int]] = OrderedDict()
        self._references: OrderedDict[tuple[RealmKey, str], tuple[ReferenceRow, float]] = OrderedDict()

    def find(self, realm: RealmKey, object_id: ObjectId) -> StoredObject | None:
        with self._lock:
            entry = self._objects.get((realm, object_id))
            if entry is None:
                return None
            self._objects.move_to_end((realm, object_id))
            return entry[0]

    def put(self, realm: RealmKey, object_id: ObjectId, value: StoredObject, stored_bytes: int) -> None:
        weight = stored_bytes + _OVERHEAD
        with self._lock:
            self._drop(realm, object_id)
            if weight > self._budget:
                return  # rather than everything else
            self._weight += weight
            self._objects[realm, object_id] = (value, weight)
            while self._weight > self._budget:
                _, (_, freed) = self._objects.popitem(last=False)
                self._weight -= freed

    def forget(self, realm: RealmKey, object_id: ObjectId) -> None:
        with self._lock:
            self._drop(realm, object_id)

    def _drop(self, realm: RealmKey, object_id: ObjectId) -> None:
        entry = self._objects.pop((realm, object_id), None)
        if entry is not None:
            self._weight -= entry[1]

    def find_reference(self, realm: RealmKey, name: str) -> ReferenceRow | None:
        with self._lock:
            entry = self._references.get((realm, name))
        if entry is None or self._clock.monotonic() - entry[1] > self._ttl:
            return None
        return entry[0]

    def put_reference(self, row: ReferenceRow) -> None:
        with self._lock:
            entry = self._references.get((row.realm, row.name))
            if entry is None or entry[0].version <= row.version:
                self._references[row.realm, row.name] = (row, self._clock.monotonic())
                self._references.move_to_end((row.realm, row.name))
                if len(self._references) > _REFERENCES:
                    self._references.popitem(last=False)

    def forget_reference(self, realm: RealmKey, name: str) -> None:
        with self._lock:
            self._references.pop((realm, name), None)
