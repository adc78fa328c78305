"""A store: one database behind a URL, holding many realms."""

from __future__ import annotations

import os
import threading
import weakref
from functools import partial
from pathlib import Path
from types import TracebackType
from urllib.parse import urlsplit, urlunsplit

from headwater.clock import Clock, SystemClock
from headwater.errors import RefusedError
from headwater.settings import Settings
from headwater.store.backend import Backend
from headwater.store.backends.memory import MemoryBackend
from headwater.store.backends.sqlite import SqliteBackend
from headwater.store.cache import Cache
from headwater.store.identity import SYSTEM_KEY, SYSTEM_REALM, ObjectId, RealmId, RealmKey
from headwater.store.ids import IdGenerator
from headwater.store.realm_rows import Gate, RealmStore

__all__ = ["Store", "open_store"]

SCHEMES = ("memory", "sqlite")


class Store:
    """One database with its cache and its source of ids. Thread-safe; a forked child starts with an empty cache and no lease."""

    def __init__(self, backend: Backend, *, url: str, settings: Settings, clock: Clock) -> None:
        self.backend = backend
        self.url = url
        self.settings = settings
        self.clock = clock
        self.cache = Cache(clock=clock, budget_bytes=settings.cache_bytes, reference_ttl_seconds=settings.reference_ttl_seconds)
        self.system = RealmStore(self, SYSTEM_REALM, SYSTEM_KEY, None)
        self._ids = IdGenerator(
            self.system, clock=clock, lease_seconds=settings.node_lease_seconds, renew_seconds=settings.node_renew_seconds
        )
        _open_stores.add(self)

    def new_id(self) -> ObjectId:
        """A new id; the first one leases a node."""
        return self._ids.next()

    def rows(self, realm: RealmId, key: RealmKey, gate: Gate | None = None) -> RealmStore:
        """A handle on the rows under one realm key; ``gate`` decides whether it may write."""
        return RealmStore(self, realm, key, gate)

    def close(self) -> None:
        self._ids.release()
        self.backend.close()
        _open_stores.discard(self)

    def before_fork(self) -> None:
        self.backend.before_fork()

    def after_fork(self, *, is_child: bool) -> None:
        self.backend.after_fork(is_child=is_child)
        if is_child:
            self.cache.after_fork()
            self._ids.forget()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def open_store(url: str, *, settings: Settings | None = None, clock: Clock | None = None) -> Store:
    """Open the store at a URL: ``sqlite:///relative.db``, ``sqlite:////absolute.db`` or ``memory://``.

    raises        RefusedError for a URL that names no known kind of store, whose password is never shown, or for wrong settings
    """
    settings = settings or Settings()
    if faults := settings.faults():
        raise RefusedError("settings: " + "; ".join(faults))
    shown = _without_password(url)
    parts = urlsplit(url)
    if parts.scheme not in SCHEMES:
        raise RefusedError(
            f"store {shown!r}: unknown scheme {parts.scheme!r}; there are {', '.join(f'{s}://' for s in SCHEMES)}"
        )
    if parts.query or parts.fragment:
        raise RefusedError(f"store {shown!r}: {parts.scheme}:// takes no options")
    backend: Backend
    if parts.scheme == "sqlite":
        if parts.netloc or not parts.path.strip("/"):
            raise RefusedError(f"store {shown!r}: write sqlite:///file.db, or sqlite:////folder/file.db for an absolute path")
        backend = SqliteBackend(Path(parts.path[1:]).absolute())
    else:
        backend = MemoryBackend()
    return Store(backend, url=shown, settings=settings, clock=clock or SystemClock())


def _without_password(url: str) -> str:
    try:
        parts = urlsplit(url)
    except ValueError:
        return "(not a URL)"
    place = parts.netloc
    if "@" in place:
        user, _, host = place.rpartition("@")
        place = f"{user.partition(':')[0]}:***@{host}"
    is_plain = place == parts.netloc and not parts.query
    return url if is_plain else urlunsplit(parts._replace(netloc=place, query="***" if parts.query else ""))


_open_stores: weakref.WeakSet[Store] = weakref.WeakSet()
_fork_lock = threading.Lock()
_held_up: list[Store] = []
"""Stores that wait for the fork under way to be over."""


def _before_fork() -> None:
    _fork_lock.acquire()
    for store in list(_open_stores):
        store.before_fork()
        _held_up.append(store)


def _after_fork(*, is_child: bool) -> None:
    while _held_up:
        _held_up.pop().after_fork(is_child=is_child)
    _fork_lock.release()


os.register_at_fork(
    before=_before_fork,
    after_in_parent=partial(_after_fork, is_child=False),
    after_in_child=partial(_after_fork, is_child=True),
)
