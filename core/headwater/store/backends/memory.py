"""A store in this process' memory: for tests and for trying things. A forked child has a copy of its own."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, TypeVar

from headwater.errors import BeatenError, RefusedError
from headwater.store.backend import (
    Capabilities,
    ObjectKey,
    ObjectPosition,
    ObjectRow,
    ReferenceKey,
    ReferencePosition,
    ReferenceRow,
    Split,
)
from headwater.store.identity import ObjectId, RealmKey
from headwater.store.urls import BackendKind, StoreUrl

__all__ = ["KIND", "MemoryBackend"]

P = TypeVar("P", bound=tuple[Any, ...])


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

    def create_references(self, rows: Sequence[ReferenceRow]) -> list[bool]:
        with self._lock:
            return [self._references.setdefault((row.realm, row.name), row) is row for row in rows]

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
                if row.part == 0:
                    self._delete_parts_from(row.realm, row.id, row.parts)

    def _delete_parts_from(self, realm: RealmKey, object_id: ObjectId, part: int) -> None:
        while self._objects.pop((realm, object_id, part), None) is not None:
            part += 1

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

    def scan_references(
        self, split: Split[ReferencePosition], after: ReferencePosition | None, limit: int
    ) -> list[ReferenceKey]:
        with self._lock:
            rows = [self._references[position] for position in _page(self._references, split, after, limit)]
        return [ReferenceKey(r.realm, r.name, r.pointer, r.version, r.created, r.deleted) for r in rows]

    def scan_objects(self, split: Split[ObjectPosition], after: ObjectPosition | None, limit: int) -> list[ObjectKey]:
        with self._lock:
            rows = [self._objects[position] for position in _page(self._objects, split, after, limit)]
        return [ObjectKey(r.realm, r.id, r.part, r.type, r.created, r.token, r.parts, len(r.value)) for r in rows]

    def split_references(self, realm: RealmKey | None, count: int) -> list[Split[ReferencePosition]]:
        with self._lock:
            return _cut(realm, _sorted(self._references, realm), count)

    def split_objects(self, realm: RealmKey | None, count: int) -> list[Split[ObjectPosition]]:
        with self._lock:
            return _cut(realm, _sorted(self._objects, realm), count)

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


def _sorted(positions: Iterable[P], realm: RealmKey | None) -> list[P]:
    return sorted(position for position in positions if realm is None or position[0] == realm)


def _page(positions: Iterable[P], split: Split[P], after: P | None, limit: int) -> list[P]:
    there = _sorted(positions, split.realm)
    starts = [bisect_right(there, start) for start in (split.after, after) if start is not None]
    end = len(there) if split.until is None else bisect_right(there, split.until)
    return there[max(starts, default=0) : end][:limit]


def _cut(realm: RealmKey | None, positions: list[P], count: int) -> list[Split[P]]:
    size = max(1, -(-len(positions) // count))
    ends = positions[size - 1 : -1 : size]
    starts: list[P | None] = [None, *ends]
    return [Split(realm, after, until) for after, until in zip(starts, [*ends, None], strict=True)]


def _open(url: StoreUrl, options: Mapping[str, Any]) -> MemoryBackend:
    if url.place or url.path:
        raise RefusedError(f"store {url.shown!r}: write memory://, for a store in memory has no name")
    return MemoryBackend()


KIND = BackendKind(example="memory://", open=_open)
