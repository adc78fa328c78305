"""A store in this process' memory, for tests and experiments. A forked child has its own copy."""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

from headwater.clock import Micros
from headwater.errors import RefusedError, SwapConflictError
from headwater.store.backend import (
    Capabilities,
    ObjectKey,
    ObjectPosition,
    ObjectRow,
    ReferenceKey,
    ReferencePosition,
    ReferenceRow,
    ScanSplit,
    collision,
)
from headwater.store.ids import ObjectId, RealmKey
from headwater.store.urls import BackendKind, StoreUrl

P = TypeVar("P", bound=tuple[Any, ...])
R = TypeVar("R")
_FEW = 32
"""Up to this many changed keys are inserted into the order one by one; more are sorted in at once."""


class MemoryBackend:
    """Two dictionaries behind one lock."""

    capabilities = Capabilities(ordered_keys=True, bulk_realm_deletion=True, atomic_commits=True)

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_closed = False
        self._is_forking = False
        self._references: _Rows[ReferencePosition, ReferenceRow] = _Rows()
        self._objects: _Rows[ObjectPosition, ObjectRow] = _Rows()
        self._last_parts: dict[tuple[RealmKey, ObjectId], int] = {}
        """The highest part number that an object ever had, for objects that had several parts."""

    @contextmanager
    def _references_alone(self) -> Iterator[_Rows[ReferencePosition, ReferenceRow]]:
        with self._lock:
            self._require_open()
            yield self._references

    @contextmanager
    def _objects_alone(self) -> Iterator[_Rows[ObjectPosition, ObjectRow]]:
        with self._lock:
            self._require_open()
            yield self._objects

    # Three hooks, called outside the lock: what they bring is added by the methods below, which take it.

    def bring_references(self, realm: RealmKey, names: Iterable[str]) -> None:
        """Called before the rows of these names are looked at or changed, for a store whose rows come from elsewhere."""

    def bring_objects(self, positions: Iterable[ObjectPosition]) -> None:
        """Called before these objects are looked at or changed."""

    def bring_realm(self, realm: RealmKey | None) -> None:
        """Called before the rows of a realm, or of all realms, are scanned or deleted."""

    def _require_open(self) -> None:
        if self._is_closed:
            raise RefusedError("memory://: this store is closed, and its rows are gone: open another one")

    def create_reference(self, row: ReferenceRow) -> None:
        if not self.create_references([row])[0]:
            raise SwapConflictError(f"reference {row.name!r} of realm key {row.realm} is there already")

    def create_references(self, rows: Sequence[ReferenceRow]) -> list[bool]:
        for row in rows:
            self.bring_references(row.realm, [row.name])
        with self._references_alone() as references:
            return [references.add((row.realm, row.name), row) for row in rows]

    def read_references(self, realm: RealmKey, names: Sequence[str]) -> list[ReferenceRow | None]:
        self.bring_references(realm, names)
        with self._references_alone() as references:
            return [references.rows.get((realm, name)) for name in names]

    def swap_reference(self, seen: ReferenceRow, new: ReferenceRow) -> None:
        self.bring_references(seen.realm, [seen.name])
        with self._references_alone() as references:
            _require(references.rows.get((seen.realm, seen.name)), seen)
            references.put((seen.realm, seen.name), new)

    def write_and_swap(self, rows: Sequence[ObjectRow], seen: ReferenceRow, new: ReferenceRow) -> None:
        self.bring_references(seen.realm, [seen.name])
        self.bring_objects((row.realm, row.id, row.part) for row in rows)
        name = (seen.realm, seen.name)
        with self._lock:
            self._require_open()
            references = self._references.rows
            # Both checks come before the first write: ``atomic_commits`` promises that a lost swap leaves no objects behind.
            _require(references.get(name), seen)
            self._check_new(rows)
            self._write_objects(rows)
            # The swap is last. If Ctrl-C interrupts this thread earlier, objects may be left over, but no reference points to
            # objects that are missing.
            references[name] = new

    def remove_reference(self, seen: ReferenceRow) -> None:
        self.bring_references(seen.realm, [seen.name])
        with self._references_alone() as references:
            _require(references.rows.get((seen.realm, seen.name)), seen)
            references.delete((seen.realm, seen.name))

    def read_objects(self, realm: RealmKey, keys: Sequence[tuple[ObjectId, int]]) -> list[ObjectRow | None]:
        self.bring_objects((realm, object_id, part) for object_id, part in keys)
        with self._objects_alone() as objects:
            return [objects.rows.get((realm, object_id, part)) for object_id, part in keys]

    def write_objects(self, rows: Sequence[ObjectRow], *, are_new: bool = False) -> None:
        self.bring_objects((row.realm, row.id, row.part) for row in rows)
        with self._lock:
            self._require_open()
            if are_new:
                self._check_new(rows)
            self._write_objects(rows)

    def _check_new(self, rows: Sequence[ObjectRow]) -> None:
        for row in rows:
            stored = self._objects.rows.get((row.realm, row.id, row.part))
            if stored is not None and (stored.type, stored.value) != (row.type, row.value):
                raise collision(row)

    def _write_objects(self, rows: Sequence[ObjectRow]) -> None:
        objects = self._objects
        written = {(row.realm, row.id, row.part): row for row in rows}
        objects.put_all(written)
        # An object that had more parts before loses the surplus ones: readers would otherwise put old and new parts together.
        for realm, object_id, part in written:
            if part and part > self._last_parts.get((realm, object_id), 0):
                self._last_parts[realm, object_id] = part
        for row in rows if self._last_parts else ():
            for part in range(row.parts, self._last_parts.get((row.realm, row.id), 0) + 1):
                if (row.realm, row.id, part) in objects.rows:
                    objects.delete((row.realm, row.id, part))

    def insert_object(self, row: ObjectRow) -> None:
        self.bring_objects([(row.realm, row.id, row.part)])
        with self._objects_alone() as objects:
            if not objects.add((row.realm, row.id, row.part), row):
                raise SwapConflictError(f"object {row.id:016x} of realm key {row.realm} is there already")

    def update_object(self, row: ObjectRow, seen_token: str) -> None:
        self.bring_objects([(row.realm, row.id, row.part)])
        with self._objects_alone() as objects:
            stored = objects.rows.get((row.realm, row.id, row.part))
            # The token alone decides: a row that was replaced since it was read has another one.
            if stored is None or stored.token != seen_token:
                raise SwapConflictError(f"object {row.id:016x} of realm key {row.realm} was changed by another")
            objects.put((row.realm, row.id, row.part), row)

    def delete_objects(self, keys: Sequence[ObjectKey]) -> int:
        self.bring_objects(key.position for key in keys)
        deleted = 0
        with self._objects_alone() as objects:
            for key in keys:
                stored = objects.rows.get(key.position)
                # A row that was rewritten since the scan has another creation time or token, and somebody needs it: it stays.
                if stored is not None and (stored.created, stored.token) == (key.created, key.token):
                    objects.delete(key.position)
                    deleted += 1
        return deleted

    def scan_references(
        self, split: ScanSplit[ReferencePosition], after: ReferencePosition | None, limit: int
    ) -> list[ReferenceKey]:
        self.bring_realm(split.realm)
        with self._references_alone() as references:
            rows = references.page(split, after, limit)
        return [ReferenceKey(r.realm, r.name, r.pointer, r.version, r.created, r.deleted) for r in rows]

    def scan_objects(self, split: ScanSplit[ObjectPosition], after: ObjectPosition | None, limit: int) -> list[ObjectKey]:
        self.bring_realm(split.realm)
        with self._objects_alone() as objects:
            rows = objects.page(split, after, limit)
        return [ObjectKey(r.realm, r.id, r.part, r.type, r.created, r.token, r.parts, len(r.value)) for r in rows]

    def split_references(self, realm: RealmKey | None, count: int) -> list[ScanSplit[ReferencePosition]]:
        self.bring_realm(realm)
        with self._references_alone() as references:
            return references.cut(realm, count)

    def split_objects(self, realm: RealmKey | None, count: int) -> list[ScanSplit[ObjectPosition]]:
        self.bring_realm(realm)
        with self._objects_alone() as objects:
            return objects.cut(realm, count)

    def delete_realm(self, realm: RealmKey, limit: int) -> int:
        self.bring_realm(realm)
        with self._references_alone() as references:
            deleted = references.delete_first(realm, limit)
            return deleted + self._objects.delete_first(realm, limit - deleted)

    def server_time(self) -> Micros | None:
        return None

    def before_fork(self) -> None:
        """Wait for running calls and block new ones, so that a child's copy is consistent."""
        if not self._is_forking:  # several stores may share this backend; the lock must be taken only once
            self._lock.acquire()
            self._is_forking = True

    def after_fork(self, *, is_child: bool) -> None:
        if self._is_forking:
            self._is_forking = False
            self._lock.release()

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            self._references, self._objects = _Rows(), _Rows()


class _Rows(Generic[P, R]):
    """Rows by key, and the keys in order. Scans update the order, so that writes pay next to nothing for it."""

    def __init__(self) -> None:
        # Invariant: the keys of ``rows`` are those of ``_keys`` and ``_new``, without ``_gone``. No key is in both lists.
        self.rows: dict[P, R] = {}
        self._keys: list[P] = []  # sorted
        self._new: list[P] = []  # not sorted yet
        self._gone: set[P] = set()  # deleted, and still in one of the lists

    def put(self, key: P, row: R) -> None:
        self.put_all({key: row})

    def put_all(self, rows: dict[P, R]) -> None:
        new = [key for key in rows if key not in self.rows]
        if self._gone:
            # Deleted keys that come back are still in ``_keys`` or ``_new``: adding them again would list them twice.
            back = self._gone.intersection(new)
            self._gone -= back
            new = [key for key in new if key not in back]
        self._new += new
        self.rows.update(rows)

    def add(self, key: P, row: R) -> bool:
        is_free = key not in self.rows
        if is_free:
            self.put(key, row)
        return is_free

    def delete(self, key: P) -> None:
        del self.rows[key]
        self._gone.add(key)

    def page(self, split: ScanSplit[P], after: P | None, limit: int) -> list[R]:
        keys = self._in_order()
        first, end = _stretch(keys, split.realm)
        first = max([first, *(bisect_right(keys, start) for start in (split.after, after) if start is not None)])
        if split.until is not None:
            end = min(end, bisect_right(keys, split.until))
        return [self.rows[key] for key in keys[first : min(end, first + limit)]]

    def cut(self, realm: RealmKey | None, count: int) -> list[ScanSplit[P]]:
        keys = self._in_order()
        first, end = _stretch(keys, realm)
        size = max(1, -(-(end - first) // count))
        ends = keys[first + size - 1 : max(first, end - 1) : size]
        starts: list[P | None] = [None, *ends]
        return [ScanSplit(realm, after, until) for after, until in zip(starts, [*ends, None], strict=True)]

    def delete_first(self, realm: RealmKey, limit: int) -> int:
        keys = self._in_order()
        first, end = _stretch(keys, realm)
        end = min(end, first + limit)
        for key in keys[first:end]:
            del self.rows[key]
        del keys[first:end]
        return end - first

    def _in_order(self) -> list[P]:
        if len(self._new) + len(self._gone) <= _FEW:
            for key in self._new:
                insort(self._keys, key)
            for key in self._gone:
                del self._keys[bisect_left(self._keys, key)]
        else:
            self._keys += self._new
            if self._gone:
                self._keys = [key for key in self._keys if key in self.rows]
            self._keys.sort()
        self._new.clear()
        self._gone.clear()
        return self._keys


def _require(stored: ReferenceRow | None, seen: ReferenceRow) -> None:
    if stored is None or (stored.pointer, stored.version) != (seen.pointer, seen.version):
        raise SwapConflictError(f"reference {seen.name!r} of realm key {seen.realm} is not at version {seen.version} any more")


def _stretch(keys: list[P], realm: RealmKey | None) -> tuple[int, int]:
    """The positions between which a realm's keys are; for None, those of all realms."""
    if realm is None:
        return 0, len(keys)
    return bisect_left(keys, (realm,)), bisect_left(keys, (realm + 1,))


def _open(url: StoreUrl, options: Mapping[str, Any], create: bool) -> MemoryBackend:
    if url.place or url.path:
        raise RefusedError(f"store {url.shown!r}: write memory://, for a store in memory has no name")
    return MemoryBackend()


KIND = BackendKind(example="memory://", open=_open)
