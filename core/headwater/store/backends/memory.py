"""A store in this process' memory: for tests and for trying things. A forked child has a copy of its own."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Sequence
from itertools import islice

from headwater.errors import BeatenError
from headwater.store.backend import Capabilities, ObjectKey, ObjectRow, ReferenceRow
from headwater.store.identity import ObjectId, RealmKey

__all__ = ["MemoryBackend"]


class MemoryBackend:
    """Two dictionaries behind one lock."""

    capabilities = Capabilities(ordered_keys=True, bulk_realm_deletion=True)

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._references: dict[tuple[RealmKey, str], ReferenceRow] = {}
        self._objects: dict[tuple[RealmKey, ObjectId, int], ObjectRow] = {}

    def create_reference(self, row: ReferenceRow) -> None:
        with self._lock:
            if (row.realm, row.name) in self._references:
                raise BeatenError(f"reference {row.name!r} of realm key {row.realm} is there already")
            self._references[row.realm, row.name] = row

    def read_references(self, realm: RealmKey, names: Sequence[str]) -> list[ReferenceRow | None]:
        with self._lock:
            return [self._references.get((realm, name)) for name in names]

    def swap_reference(self, seen: ReferenceRow, new: ReferenceRow) -> None:
        with self._lock:
            self._require(seen)
            self._references[seen.realm, seen.name] = new

    def remove_reference(self, seen: ReferenceRow) -> None:
        with self._lock:
            self._require(seen)
            del self._references[seen.realm, seen.name]

    def _require(self, seen: ReferenceRow) -> None:
        stored = self._references.get((seen.realm, seen.name))
        if stored is None or (stored.pointer, stored.version) != (seen.pointer, seen.version):
            raise BeatenError(f"reference {seen.name!r} of realm key {seen.realm} is not at version {seen.version} any more")

    def read_objects(self, realm: RealmKey, keys: Sequence[tuple[ObjectId, int]]) -> list[ObjectRow | None]:
        with self._lock:
            return [self._objects.get((realm, object_id, part)) for object_id, part in keys]

    def write_objects(self, rows: Sequence[ObjectRow]) -> None:
        with self._lock:
            for row in rows:
                self._objects[row.realm, row.id, row.part] = row

    def insert_object(self, row: ObjectRow) -> None:
        with self._lock:
            if self._objects.setdefault((row.realm, row.id, row.part), row) is not row:
                raise BeatenError(f"object {row.id:016x} of realm key {row.realm} is there already")

    def update_object(self, row: ObjectRow, seen_token: str) -> None:
        with self._lock:
            stored = self._objects.get((row.realm, row.id, row.part))
            if stored is None or stored.token != seen_token:
                raise BeatenError(f"object {row.id:016x} of realm key {row.realm} was changed by another")
            self._objects[row.realm, row.id, row.part] = row

    def delete_objects(self, keys: Sequence[ObjectKey]) -> int:
        deleted = 0
        with self._lock:
            for key in keys:
                stored = self._objects.get((key.realm, key.id, key.part))
                if stored is not None and (stored.created, stored.token) == (key.created, key.token):
                    del self._objects[key.realm, key.id, key.part]
                    deleted += 1
        return deleted

    def scan_references(self, realm: RealmKey | None, after: tuple[RealmKey, str] | None, limit: int) -> list[ReferenceRow]:
        with self._lock:
            keys = sorted(key for key in self._references if realm is None or key[0] == realm)
            start = 0 if after is None else bisect_right(keys, after)
            return [self._references[key] for key in islice(keys, start, start + limit)]

    def scan_objects(self, realm: RealmKey | None, after: ObjectKey | None, limit: int) -> list[ObjectKey]:
        with self._lock:
            keys = sorted(key for key in self._objects if realm is None or key[0] == realm)
            start = 0 if after is None else bisect_right(keys, (after.realm, after.id, after.part))
            rows = [self._objects[key] for key in islice(keys, start, start + limit)]
        return [ObjectKey(r.realm, r.id, r.part, r.type, r.created, r.token, len(r.value)) for r in rows]

    def delete_realm(self, realm: RealmKey, limit: int) -> int:
        with self._lock:
            references = list(islice((key for key in self._references if key[0] == realm), limit))
            objects = list(islice((key for key in self._objects if key[0] == realm), limit - len(references)))
            for reference in references:
                del self._references[reference]
            for key in objects:
                del self._objects[key]
        return len(references) + len(objects)

    def before_fork(self) -> None:
        """Nothing to let go."""

    def after_fork(self, *, is_child: bool) -> None:
        if is_child:
            self._lock = threading.Lock()  # another thread of the parent may have held it

    def close(self) -> None:
        """Nothing to close; the rows go with the process."""
