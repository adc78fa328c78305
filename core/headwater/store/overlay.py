"""A store that reads another one and keeps in memory what is written to it: for looking at what a writer would do.

The store below is never written to. Rows are copied when they are first read or written; a scan of a realm, or of all, copies all
of its rows first, so it is for realms that are small or gone. Closing it forgets everything.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator

from headwater.clock import Clock, Micros, SystemClock
from headwater.errors import NotFoundError
from headwater.settings import Settings
from headwater.store.backend import (
    Backend,
    ObjectKey,
    ObjectPosition,
    ReferenceKey,
    ReferencePosition,
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


def open_dry_copy(store: Store) -> Store:
    """A store with what an open one holds, whose changes are forgotten when it is closed. Close it before that one."""
    overlay = OverlayBackend(store.backend, is_borrowed=True)
    return Store(overlay, url=store.url, settings=store.settings, clock=store.clock)


class OverlayBackend(MemoryBackend):
    """The rows of one backend, with changes that it never sees.

    is_borrowed   the backend is another store's, which closes it, and cares for it when the process forks
    """

    def __init__(self, below: Backend, *, is_borrowed: bool = False) -> None:
        super().__init__()
        self._below = below
        self._is_borrowed = is_borrowed
        self._bringing = threading.RLock()
        # Invariant: a row of a known key is here as it is now, or it was deleted.
        self._known_references: set[ReferencePosition] = set()
        self._known_objects: set[ObjectPosition] = set()

    def bring_references(self, realm: RealmKey, names: Iterable[str]) -> None:
        with self._bringing:
            new = [name for name in dict.fromkeys(names) if (realm, name) not in self._known_references]
            if new:
                rows = self._below.read_references(realm, new)
                # Known before they are added: adding asks here again.
                self._known_references.update((realm, name) for name in new)
                self.create_references([row for row in rows if row is not None])

    def bring_objects(self, positions: Iterable[ObjectPosition]) -> None:
        with self._bringing:
            by_realm: dict[RealmKey, dict[tuple[ObjectId, int], None]] = {}
            for realm, object_id, part in positions:
                if (realm, object_id, part) not in self._known_objects:
                    by_realm.setdefault(realm, {})[object_id, part] = None
            for realm, keys in by_realm.items():
                rows = self._below.read_objects(realm, list(keys))
                # Before they are added, which asks here again. Another thread waits for the lock, and then finds them added.
                self._known_objects.update((realm, *key) for key in keys)
                for row in rows:  # one by one: of an object of several parts, others may have been brought before
                    if row is not None:
                        self.insert_object(row)

    def bring_realm(self, realm: RealmKey | None) -> None:
        """Where the database does not keep key order, a scan of one realm is one of all."""
        scanned = realm if self._below.capabilities.ordered_keys else None
        with self._bringing:
            names: dict[RealmKey, list[str]] = {}
            for reference in self._all_references(scanned):
                names.setdefault(reference.realm, []).append(reference.name)
            for key, some in names.items():
                self.bring_references(key, some)
            self.bring_objects([key.position for key in self._all_objects(scanned)])

    def server_time(self) -> Micros | None:
        return self._below.server_time()

    def before_fork(self) -> None:
        if not self._is_borrowed:
            self._below.before_fork()
        super().before_fork()

    def after_fork(self, *, is_child: bool) -> None:
        super().after_fork(is_child=is_child)
        if not self._is_borrowed:
            self._below.after_fork(is_child=is_child)

    def close(self) -> None:
        if not self._is_borrowed:
            self._below.close()
        super().close()

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
