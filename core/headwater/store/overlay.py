"""A store that reads another one and keeps in memory what is written to it: for looking at what a writer would do.

The store below is never written to. Rows are copied when they are first read or written; a scan of a realm, or of all, copies all
of its rows first, so it is for realms that are small or gone. Closing it forgets everything.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence

from headwater.clock import Clock, Micros, SystemClock
from headwater.errors import NotFoundError
from headwater.settings import Settings
from headwater.store.backend import (
    Backend,
    Capabilities,
    ObjectKey,
    ObjectPosition,
    ObjectRow,
    ReferenceKey,
    ReferencePosition,
    ReferenceRow,
    ScanSplit,
)
from headwater.store.backends.memory import MemoryBackend
from headwater.store.ids import ObjectId, RealmKey
from headwater.store.stores import Store, open_backend
from headwater.store.urls import parse_url

_PAGE = 1000


def open_dry_store(url: str, *, settings: Settings, clock: Clock | None = None) -> Store:
    """A store with what the one at a URL holds, whose changes are forgotten when it is closed. Where there is none, it is empty.

    raises        as ``open_store`` does, except for a store that is not there
    """
    parsed = parse_url(url)
    below: Backend
    try:
        below = open_backend(parsed, create=False)
    except NotFoundError:
        below = MemoryBackend()
    return Store(OverlayBackend(below), url=parsed.shown_open, settings=settings, clock=clock or SystemClock())


class OverlayBackend:
    """The rows of one backend, with changes that it never sees."""

    def __init__(self, below: Backend) -> None:
        self._below = below
        self._above = MemoryBackend()
        self._lock = threading.RLock()
        # Invariant: a row of a known key is in ``_above`` as it is now, or it was deleted.
        self._known_references: set[ReferencePosition] = set()
        self._known_objects: set[ObjectPosition] = set()

    @property
    def capabilities(self) -> Capabilities:
        return self._above.capabilities

    def create_reference(self, row: ReferenceRow) -> None:
        self._copy_references(row.realm, [row.name])
        self._above.create_reference(row)

    def create_references(self, rows: Sequence[ReferenceRow]) -> list[bool]:
        for row in rows:
            self._copy_references(row.realm, [row.name])
        return self._above.create_references(rows)

    def read_references(self, realm: RealmKey, names: Sequence[str]) -> list[ReferenceRow | None]:
        self._copy_references(realm, names)
        return self._above.read_references(realm, names)

    def swap_reference(self, seen: ReferenceRow, new: ReferenceRow) -> None:
        self._copy_references(seen.realm, [seen.name])
        self._above.swap_reference(seen, new)

    def write_and_swap(self, rows: Sequence[ObjectRow], seen: ReferenceRow, new: ReferenceRow) -> None:
        self._copy_references(seen.realm, [seen.name])
        self._copy_objects((row.realm, row.id, row.part) for row in rows)
        self._above.write_and_swap(rows, seen, new)

    def remove_reference(self, seen: ReferenceRow) -> None:
        self._copy_references(seen.realm, [seen.name])
        self._above.remove_reference(seen)

    def read_objects(self, realm: RealmKey, keys: Sequence[tuple[ObjectId, int]]) -> list[ObjectRow | None]:
        self._copy_objects((realm, object_id, part) for object_id, part in keys)
        return self._above.read_objects(realm, keys)

    def write_objects(self, rows: Sequence[ObjectRow], *, are_new: bool = False) -> None:
        self._copy_objects((row.realm, row.id, row.part) for row in rows)
        self._above.write_objects(rows, are_new=are_new)

    def insert_object(self, row: ObjectRow) -> None:
        self._copy_objects([(row.realm, row.id, row.part)])
        self._above.insert_object(row)

    def update_object(self, row: ObjectRow, seen_token: str) -> None:
        self._copy_objects([(row.realm, row.id, row.part)])
        self._above.update_object(row, seen_token)

    def delete_objects(self, keys: Sequence[ObjectKey]) -> int:
        self._copy_objects(key.position for key in keys)
        return self._above.delete_objects(keys)

    def scan_references(
        self, split: ScanSplit[ReferencePosition], after: ReferencePosition | None, limit: int
    ) -> list[ReferenceKey]:
        self._copy_realm(split.realm)
        return self._above.scan_references(split, after, limit)

    def scan_objects(self, split: ScanSplit[ObjectPosition], after: ObjectPosition | None, limit: int) -> list[ObjectKey]:
        self._copy_realm(split.realm)
        return self._above.scan_objects(split, after, limit)

    def split_references(self, realm: RealmKey | None, count: int) -> list[ScanSplit[ReferencePosition]]:
        self._copy_realm(realm)
        return self._above.split_references(realm, count)

    def split_objects(self, realm: RealmKey | None, count: int) -> list[ScanSplit[ObjectPosition]]:
        self._copy_realm(realm)
        return self._above.split_objects(realm, count)

    def delete_realm(self, realm: RealmKey, limit: int) -> int:
        self._copy_realm(realm)
        return self._above.delete_realm(realm, limit)

    def server_time(self) -> Micros | None:
        return self._below.server_time()

    def before_fork(self) -> None:
        self._below.before_fork()
        self._above.before_fork()

    def after_fork(self, *, is_child: bool) -> None:
        self._above.after_fork(is_child=is_child)
        self._below.after_fork(is_child=is_child)

    def close(self) -> None:
        self._below.close()
        self._above.close()

    def _copy_references(self, realm: RealmKey, names: Sequence[str]) -> None:
        with self._lock:
            new = [name for name in dict.fromkeys(names) if (realm, name) not in self._known_references]
            if new:
                self._above.create_references([row for row in self._below.read_references(realm, new) if row is not None])
                self._known_references.update((realm, name) for name in new)

    def _copy_objects(self, positions: Iterable[ObjectPosition]) -> None:
        with self._lock:
            by_realm: dict[RealmKey, dict[tuple[ObjectId, int], None]] = {}
            for realm, object_id, part in positions:
                if (realm, object_id, part) not in self._known_objects:
                    by_realm.setdefault(realm, {})[object_id, part] = None
            for realm, keys in by_realm.items():
                rows = [row for row in self._below.read_objects(realm, list(keys)) if row is not None]
                for row in rows:  # one by one: of an object of several parts, others may have been copied before
                    self._above.insert_object(row)
                self._known_objects.update((realm, *key) for key in keys)

    def _copy_realm(self, realm: RealmKey | None) -> None:
        """Copy what a scan may see: where the database does not keep key order, a scan of one realm reads all of them."""
        scanned = realm if self._below.capabilities.ordered_keys else None
        with self._lock:
            names: dict[RealmKey, list[str]] = {}
            for reference in self._all_references(scanned):
                names.setdefault(reference.realm, []).append(reference.name)
            for key, some in names.items():
                self._copy_references(key, some)
            self._copy_objects([key.position for key in self._all_objects(scanned)])

    def _all_references(self, realm: RealmKey | None) -> Iterator[ReferenceKey]:
        for split in self._below.split_references(realm, 1):
            after: ReferencePosition | None = None
            while page := self._below.scan_references(split, after, _PAGE):
                yield from page
                after = page[-1].position

    def _all_objects(self, realm: RealmKey | None) -> Iterator[ObjectKey]:
        for split in self._below.split_objects(realm, 1):
            after: ObjectPosition | None = None
            while page := self._below.scan_objects(split, after, _PAGE):
                yield from page
                after = page[-1].position
