"""A store: one database behind a URL, holding many realms. Opens it, and carries it over a fork."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from contextlib import ExitStack
from functools import cache, partial
from importlib.metadata import EntryPoint
from sys import _getframe
from threading import get_ident
from types import FrameType, TracebackType
from typing import Protocol, TypeVar

from headwater.clock import Clock, ClockWatch, Micros, SystemClock
from headwater.errors import RefusedError
from headwater.settings import Settings
from headwater.store.backend import Backend
from headwater.store.cache import Cache
from headwater.store.id_generator import IdGenerator
from headwater.store.ids import SYSTEM_KEY, SYSTEM_REALM, ObjectId, RealmId, RealmKey, checked_realm_id
from headwater.store.realm_refs import WriteGuard
from headwater.store.realm_store import RealmStore
from headwater.store.stored_objects import claim_of, entry_points_of
from headwater.store.urls import BackendKind, StoreUrl, parse_url


class StoreCompanion(Protocol):
    """What a store carries over a fork and closes with itself: connections to other tables, or to another database."""

    def before_fork(self) -> None: ...
    def after_fork(self, *, is_child: bool) -> None: ...
    def close(self) -> None: ...


CompanionT = TypeVar("CompanionT", bound=StoreCompanion)


class Store:
    """One database with its cache and its source of ids. Thread-safe; a forked child starts with an empty cache and no lease."""

    def __init__(self, backend: Backend, *, url: str, settings: Settings, clock: Clock) -> None:
        self.backend = backend
        self.url = url
        self.settings = settings
        self.clock = clock
        self.clock_watch = ClockWatch(clock)
        self.cache = Cache(clock=clock, budget_bytes=settings.cache_bytes, reference_ttl_seconds=settings.reference_ttl_seconds)
        self.system = RealmStore(self, SYSTEM_REALM, SYSTEM_KEY, None)
        self.ids = IdGenerator(
            self.system, clock=clock, lease_seconds=settings.node_lease_seconds, renew_seconds=settings.node_renew_seconds
        )
        self._companions: dict[type[StoreCompanion], StoreCompanion] = {}
        self._companion_lock = threading.Lock()
        _open_stores.add(self)

    def companion(self, kind: type[CompanionT], make: Callable[[], CompanionT]) -> CompanionT:
        """The companion of a kind; the first caller makes it, while no other thread forks."""
        with _opening, self._companion_lock:
            if kind not in self._companions:
                self._companions[kind] = make()
            companion = self._companions[kind]
        assert isinstance(companion, kind)
        return companion

    def new_id(self) -> ObjectId:
        """A new id; the first one leases a node."""
        return self.ids.next()

    def new_ids(self, n: int) -> list[ObjectId]:
        """``n`` new ids at once, each greater than the one before; see ``IdGenerator.next_many``."""
        return self.ids.next_many(n)

    def server_time(self) -> Micros | None:
        """The time on the database server's clock; None where it has none, or where this store uses a clock other than the machine's."""
        return self.backend.server_time() if isinstance(self.clock, SystemClock) else None

    def rows(self, realm: RealmId, key: RealmKey, gate: WriteGuard | None = None) -> RealmStore:
        """A handle on the rows under one realm key; ``gate`` decides whether it may write.

        raises        RefusedError for a malformed or reserved id, and for a key that is not its own
        """
        if (realm == SYSTEM_REALM) != (key == SYSTEM_KEY):
            raise RefusedError(
                f"realm {realm!r} cannot have the key {key}: {SYSTEM_KEY} is that of {SYSTEM_REALM}, and no other's"
            )
        if not 1 <= key < 1 << 63:
            raise RefusedError(f"realm {realm!r} cannot have the key {key}: a key is a number from 1 to 2^63-1")
        return RealmStore(self, realm if realm == SYSTEM_REALM else checked_realm_id(realm), key, gate)

    def close(self) -> None:
        self.ids.close()
        for companion in self._companions.values():
            companion.close()
        self.backend.close()
        _open_stores.discard(self)

    def before_fork(self) -> None:
        self.backend.before_fork()
        for companion in self._companions.values():
            companion.before_fork()

    def after_fork(self, *, is_child: bool) -> None:
        self.backend.after_fork(is_child=is_child)
        for companion in self._companions.values():
            companion.after_fork(is_child=is_child)
        if is_child:
            self._companion_lock = threading.Lock()
            self.cache.after_fork()
            self.ids.forget()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def open_store(url: str, *, settings: Settings | None = None, clock: Clock | None = None, create: bool = True) -> Store:
    """Open the store at a URL, for example ``sqlite:///relative.db``, ``memory://`` or ``postgresql://user@host/database``.

    The scheme is the name of an entry point in the group ``headwater.backends``, which names a ``BackendKind``.

    create        set the database up where there is no store yet
    raises        NotFoundError when there is no store and none is to be created: nothing was written. RefusedError for a URL that
                  names no known kind of store or unknown options, for a database that a newer release set up, and for wrong
                  settings; UnavailableError when the database cannot be reached. None shows a password.
    """
    settings = settings or Settings()
    if faults := settings.faults():
        raise RefusedError("settings: " + "; ".join(faults))
    parsed = parse_url(url)
    with _opening:
        backend = open_backend(parsed, create=create)
        try:
            return Store(backend, url=parsed.shown_open, settings=settings, clock=clock or SystemClock())
        except BaseException:
            backend.close()
            raise


def open_backend(url: StoreUrl, *, create: bool = True) -> Backend:
    """Open only the backend, without a store around it. Raises as ``open_store`` does."""
    kind = _kind_of(url)
    return kind.open(url, kind.options_of(url), create)


def _kind_of(url: StoreUrl) -> BackendKind:
    points = _schemes().get(url.scheme)
    if not points:
        there = ", ".join(f"{scheme}://" for scheme in sorted(_schemes()))
        raise RefusedError(f"store {url.shown!r}: unknown scheme {url.scheme!r}; there are {there}")
    if len({point.value for point in points}) > 1:
        claims = " and ".join(sorted(claim_of(point) for point in points))
        raise RefusedError(f"store {url.shown!r}: the scheme {url.scheme!r} is claimed by {claims}: uninstall one of them")
    point = points[0]
    try:
        kind = point.load()
    except ModuleNotFoundError as fault:
        extra = f": pip install 'headwater[{url.scheme}]'" if point.module.startswith("headwater.") else ""
        raise RefusedError(f"store {url.shown!r}: the Python package {fault.name!r} is not installed{extra}") from fault
    except Exception as fault:  # whatever a stranger's module raises while it is imported
        raise RefusedError(
            f"store {url.shown!r}: the entry point {claim_of(point)} cannot be loaded: {type(fault).__name__}: {fault}"
        ) from fault
    if not isinstance(kind, BackendKind):
        raise RefusedError(f"store {url.shown!r}: the entry point {claim_of(point)} is not a BackendKind")
    return kind


@cache
def _schemes() -> dict[str, list[EntryPoint]]:
    return entry_points_of("headwater.backends")


class ForkGate:
    """A gate that many threads pass at once, and that can be shut when nobody is inside. ``with gate:`` waits while it is shut.

    Ctrl-C can interrupt a thread at any moment, even between entering the gate and the guarded block, and would leave a plain
    counter too high for good. So threads inside are recorded by thread and frame: a thread that enters again, or that shuts the
    gate, is not inside, whatever the record says, unless the recorded frame still runs. In that case a signal handler is
    entering again, and it passes as a part of the code that it interrupts.
    """

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        """Begin anew in a forked child, whatever a thread of the parent was doing here."""
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._inside: dict[int, FrameType] = {}
        self._is_shut = False

    def __enter__(self) -> bool:
        """Enter. Returns whether the caller already is inside: it is a signal handler."""
        thread, frame = get_ident(), _getframe(1)
        with self._lock:  # every call on a database passes here: a bare lock costs a fifth of a condition
            if thread in self._inside and _runs_in(self._inside[thread], frame):
                return True
            while self._is_shut:
                self._changed.wait()
            self._inside[thread] = frame
            return False

    def __exit__(self, *_: object) -> None:
        thread, frame = get_ident(), _getframe(1)
        with self._lock:
            if self._inside.get(thread) is frame:
                del self._inside[thread]
            if self._is_shut:
                self._changed.notify_all()

    def shut_gate(self) -> None:
        """Let no thread enter, and wait until all have left."""
        with self._lock:
            self._is_shut = True
            self._inside.pop(get_ident(), None)
            self._changed.wait_for(lambda: not self._inside)

    def open_gate(self) -> None:
        with self._lock:
            self._is_shut = False
            self._changed.notify_all()


def _runs_in(outer: FrameType, frame: FrameType | None) -> bool:
    """Whether a frame is ``outer``, or was called by it."""
    while frame is not None and frame is not outer:
        frame = frame.f_back
    return frame is not None


_open_stores: weakref.WeakSet[Store] = weakref.WeakSet()
_opening = ForkGate()
"""Entered while a store is being opened: a child must not inherit a half-open store, because that would miss the fork hooks."""
_fork_lock = threading.Lock()
_held_up: list[Store] = []
"""Stores whose ``before_fork`` ran, and whose ``after_fork`` is due: those on files and in memory stand still meanwhile."""


def _before_fork() -> None:
    _fork_lock.acquire()
    _opening.shut_gate()
    with (
        ExitStack() as all_of_them
    ):  # a stranger's backend that fails keeps no other store from its call, or from the one after the fork
        for store in list(_open_stores):
            _held_up.append(store)
            all_of_them.callback(store.before_fork)


def _after_fork(*, is_child: bool) -> None:
    try:
        with ExitStack() as all_of_them:
            while _held_up:
                all_of_them.callback(_held_up.pop().after_fork, is_child=is_child)
    finally:
        if is_child:
            _opening.renew()
        else:
            _opening.open_gate()
        _fork_lock.release()


os.register_at_fork(
    before=_before_fork,
    after_in_parent=partial(_after_fork, is_child=False),
    after_in_child=partial(_after_fork, is_child=True),
)
