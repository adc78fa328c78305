"""A store: one database behind a URL, holding many realms. Parses its URL, opens it, and carries it over a fork.

A URL is shown without its secrets.
"""

from __future__ import annotations

import os
import re
import threading
import weakref
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cache, partial
from importlib.metadata import EntryPoint
from sys import _getframe
from threading import get_ident
from types import FrameType, TracebackType
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from headwater.clock import Clock, ClockWatch, Micros, SystemClock
from headwater.errors import RefusedError
from headwater.redaction import MASK
from headwater.settings import Settings, parse_duration
from headwater.store.backend import Backend
from headwater.store.cache import Cache
from headwater.store.id_generator import IdGenerator
from headwater.store.ids import SYSTEM_KEY, SYSTEM_REALM, ObjectId, RealmId, RealmKey, checked_realm_id
from headwater.store.realm_refs import WriteGuard
from headwater.store.realm_store import RealmStore
from headwater.store.stored_objects import claim_of, entry_points_of


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
        _open_stores.add(self)

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
        self.backend.close()
        _open_stores.discard(self)

    def before_fork(self) -> None:
        self.backend.before_fork()

    def after_fork(self, *, is_child: bool) -> None:
        self.backend.after_fork(is_child=is_child)
        if is_child:
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
        raise RefusedError(f"store {url.shown!r}: the entry point {claim_of(point)} is no BackendKind")
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
"""Stores that are blocked until the current fork is over."""


def _before_fork() -> None:
    _fork_lock.acquire()
    _opening.shut_gate()
    with ExitStack() as all_of_them:  # a stranger's backend that fails keeps no other store from being held up, or let go
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


_UNSHOWN = "the store's URL (not shown, for it may hold a password)"
_BEGINNING = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_PORT = re.compile(r"(\[[^\]]*\]|[^:\[\]]*)(:[0-9]*)?")
"""A host, in brackets where it has colons itself, and its port."""
_LONGEST_SECONDS = 24 * 60 * 60


@dataclass(frozen=True, slots=True)
class StoreUrl:
    """A URL taken apart. ``whole`` and ``password`` are for the driver alone, and in no repr."""

    scheme: str
    place: str
    """Host and port, or several with commas between them, without user and password."""
    path: str
    """Without its first slash, percent signs decoded."""
    user: str | None
    password: str | None = field(repr=False)
    query: tuple[tuple[str, str], ...] = field(repr=False)
    whole: str = field(repr=False)

    @property
    def shown(self) -> str:
        """The URL for people: the password and the values of all options are stars."""
        return self._shown(is_open=False)

    @property
    def shown_open(self) -> str:
        """The URL for people once the store is open: the password is hidden, the options are shown, for known options hold no secrets."""
        return self._shown(is_open=True)

    def _shown(self, *, is_open: bool) -> str:
        if self.password is None and (is_open or not self.query):
            return self.whole
        parts = urlsplit(self.whole)
        user = "" if self.user is None else parts.netloc.rpartition("@")[0].partition(":")[0]
        secret = "" if self.password is None else f":{MASK}"
        place = self.place if self.user is None and self.password is None else f"{user}{secret}@{self.place}"
        query = parts.query if is_open else "&".join(f"{name}={MASK}" for name, _ in self.query)
        return f"{self.scheme}://{place}{parts.path}{'?' if query else ''}{query}"


@dataclass(frozen=True, slots=True)
class UrlOption:
    """What may stand in the query of a store's URL. Not for secrets: a store's URL shows its options once it is open.

    name          as it is written in the URL
    purpose       half a sentence for the table of options in the documentation
    default       as text, parsed like the rest; None: the backend gets None
    parse         from text to what the backend gets, for example ``as_seconds``, ``as_count`` or ``one_of("on", "off")``
    """

    name: str
    purpose: str
    default: str | None = None
    parse: Callable[[str], Any] = str
    """Raises ValueError or RefusedError with a sentence that says what would be right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendKind:
    """One kind of store: what an entry point of the group ``headwater.backends`` has to name. Its name is the scheme.

    open          makes the backend of a URL and its options: by name, parsed, defaults filled in. Where there is no store yet,
                  it sets the database up if it may create one (third argument), and raises NotFoundError otherwise, having
                  written nothing. It raises RefusedError for a schema version that it does not know. It does not fork, for a
                  fork waits until it is done
    """

    example: str
    open: Callable[[StoreUrl, Mapping[str, Any], bool], Backend]
    options: tuple[UrlOption, ...] = ()

    def options_of(self, url: StoreUrl) -> dict[str, Any]:
        """The options of a URL, parsed, with defaults for the others.

        raises        RefusedError that names every unknown, repeated or malformed one, and what there is
        """
        known = {option.name: option for option in self.options}
        values = {option.name: None if option.default is None else option.parse(option.default) for option in self.options}
        faults: list[str] = []
        seen: set[str] = set()
        for name, text in url.query:
            if name not in known:
                faults.append(f"there is no option {name!r}")
            elif name in seen:
                faults.append(f"the option {name!r} stands there twice")
            else:
                try:
                    values[name] = known[name].parse(text)
                except (ValueError, RefusedError) as fault:
                    faults.append(f"the option {name!r}: {fault}")
            seen.add(name)
        if faults:
            names = ", ".join(known)
            there = f"the options of {url.scheme}:// are {names}" if known else f"{url.scheme}:// takes no options"
            raise RefusedError(f"store {url.shown!r}: {'; '.join(faults)}; {there}")
        return values


def parse_url(text: str) -> StoreUrl:
    """Take a URL apart.

    raises        RefusedError when the text is no URL; it is not repeated, because it may hold a password
    """
    try:
        parts = urlsplit(text)
        query = tuple(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query)))
        is_url = bool(_BEGINNING.match(text))
        text.encode()
    except ValueError:
        is_url = False
    if not is_url:
        raise RefusedError(f"{_UNSHOWN} is no URL: write scheme://place/name")
    if "\0" in unquote(text):
        raise RefusedError(f"{_UNSHOWN} has a NUL in it, which no name and no password can have")
    if "#" in text:
        raise RefusedError(f"{_UNSHOWN} has a # in it: write %23 where it belongs to a name or a password")
    if parts.netloc and "@" in parts.path + parts.query:
        raise RefusedError(
            f"{_UNSHOWN} has an @ behind its host: write %2F for / and %3F for ? in a password, and %40 for other @"
        )
    if not parts.netloc and re.search(":.*@", parts.path):
        raise RefusedError(
            f"{_UNSHOWN} has three slashes before what looks like a user and a password: write two,"
            " or %40 for an @ that belongs to a name"
        )
    login, has_login, place = parts.netloc.rpartition("@")
    if not all(_PORT.fullmatch(host) for host in place.split(",")):
        raise RefusedError(f"{_UNSHOWN} has a port that is no number: write user:password@host:port")
    user, has_password, password = login.partition(":")
    return StoreUrl(
        scheme=parts.scheme,
        place=place,
        path=unquote(parts.path.removeprefix("/")),
        user=unquote(user) if has_login else None,
        password=unquote(password) if has_password else None,
        query=query,
        whole=text,
    )


def as_count(text: str) -> int:
    """A whole number from 1."""
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise ValueError(f"{text!r} is no whole number from 1")
    return int(text)


def as_connections(text: str) -> int:
    """How many connections a pool may have: 1 to 1000."""
    count = as_count(text)
    if count > 1000:
        raise ValueError(f"{text!r} is more than 1000")
    return count


def as_seconds(text: str) -> float:
    """A duration such as ``500ms``, ``10s`` or ``2m``, above 0 and up to a day: drivers count longer ones wrongly."""
    seconds = parse_duration(text)
    if not 0 < seconds <= _LONGEST_SECONDS:
        raise ValueError("it must be above 0 and at most 1d")
    return seconds


def one_of(*words: str) -> Callable[[str], str]:
    """A parser that accepts only these words."""

    def parse(text: str) -> str:
        if text not in words:
            raise ValueError(f"{text!r} is none of {', '.join(words)}")
        return text

    return parse
