"""The cache of one process: decoded immutable objects, absences and references, bounded by the memory that they take.

A reader takes a ticket, queries the database, and caches the answer under that ticket. So an outdated answer, overtaken by a
change on its way, is not cached::

    a late reader                     others
    ticket 7
    reads version 1
                                      swap to version 2: dropped at 8, put, evicted: dropped at 9
    puts version 1 under ticket 7:
    refused, for something was dropped at 9

Threads that ask the database for the same row at the same moment get it by one round trip::

    A asks, and reads                        its answer may be older than the questions of B and C
        B asks, C asks                       both wait for the next read, which B makes when that of A has ended
    A is answered
                      B reads, for C, too

A thread that only waits costs less than one that calls the database: every call gives the interpreter's lock up and has to get it back.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import count
from sys import getsizeof
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec
from msgspec.structs import astuple

from headwater.clock import Clock
from headwater.store.backend import ReferenceRow
from headwater.store.ids import ObjectId, RealmKey
from headwater.store.stored_objects import StoredObject, UnknownObject

_FLAT = frozenset((type(None), bool, int, float, str, bytes))
_BYTES, _ASCII, _NUMBER, _EMPTY, _GC = 33, 49, 32, 64, 16


def weigh(value: msgspec.Struct) -> int:
    """Bytes of memory: what tracemalloc reports, or up to three times as much, because shared values are counted each time.

    The stored size says little: 3 bytes of MessagePack become 100 of a dictionary, and a compressed row a hundred times more. Every
    object is weighed, in a quarter of the time that decoding takes over all: docs/develop/decisions/0025.
    """
    total = 0
    deeper: list[Any] = [value]
    while deeper:
        item = deeper.pop()
        if isinstance(item, msgspec.Struct):
            total += _size_of_fields(item, deeper)
        elif isinstance(item, dict):
            total += getsizeof(item) + _sizes(item, deeper) + _sizes(item.values(), deeper)
        elif isinstance(item, list | tuple | set | frozenset):
            total += getsizeof(item) + _sizes(item, deeper)
        else:
            total += getsizeof(item)
    return total


def _size_of_fields(value: msgspec.Struct, deeper: list[Any]) -> int:
    """The size of an object's fields. Unrolled by hand: calling getsizeof for each of a few fields takes twice as long."""
    total = _GC + type(value).__basicsize__
    for field in astuple(value):
        kind = type(field)
        if field is None or field is True or field is False:
            continue
        if kind is bytes:
            total += _BYTES + len(field)
        elif kind is str and field.isascii():
            total += _ASCII + len(field)
        elif kind in _FLAT:
            total += getsizeof(field) if kind is str else _NUMBER
        elif field:
            deeper.append(field)
        else:
            total += _EMPTY
    return total


def _sizes(items: Iterable[Any], deeper: list[Any]) -> int:
    """The total size of the flat items; the others are appended to ``deeper``."""
    if _FLAT.issuperset(map(type, items)):
        return sum(map(getsizeof, items))
    deeper += [item for item in items if type(item) not in _FLAT]
    return sum(getsizeof(item) for item in items if type(item) in _FLAT)


_ENTRY = 320
"""Bytes of an entry without its value: key, id, links, the entry itself and its share of the tables. Measured."""
_REFERENCE, _RECENT, _MOVE = 240, 44, 144
"""Bytes of a row, of one of its recent pointers and of one of its moves. Measured."""
_STRIPES = 4096
_Key = tuple[RealmKey, ObjectId | str]
_CHANCES = 1000
_DERIVED_SHARE = 8
_PATIENCE_SECONDS = 0.05
T = TypeVar("T")


class CacheTicket(NamedTuple):
    """The moment before a database query: the number of the last drop, and the monotonic time in seconds."""

    drop: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheStatistics:
    """Counters since the process started or forked. ``refused``: too large, or outdated; ``weight`` and ``budget`` are in bytes."""

    hits: int
    misses: int
    puts: int
    evictions: int
    refused: int
    entries: int
    weight: int
    budget: int


class _Entry(msgspec.Struct, gc=False):
    """A cached value, or None for an absence. ``until`` is a monotonic time in seconds; None means no expiry."""

    value: StoredObject | ReferenceRow | None
    weight: int
    asked: float
    until: float | None
    used: bool = False


class DerivedValues:
    """What was worked out from immutable objects, by their realm and id. Drops what was used least recently. Thread-safe."""

    def __init__(self, budget_bytes: int) -> None:
        self._budget = budget_bytes
        self._weight = 0
        self._lock = threading.Lock()
        self._values: OrderedDict[tuple[RealmKey, ObjectId], tuple[object, int]] = OrderedDict()

    def find(self, realm: RealmKey, object_id: ObjectId) -> object | None:
        with self._lock:
            held = self._values.get((realm, object_id))
            if held is None:
                return None
            self._values.move_to_end((realm, object_id))
        return held[0]

    def keep(self, realm: RealmKey, object_id: ObjectId, value: object, weight: int) -> None:
        """Keep a value that takes so many bytes, unless it alone takes a quarter of the budget."""
        if weight > self._budget // 4:
            return
        with self._lock:
            _, before = self._values.pop((realm, object_id), (None, 0))
            self._values[realm, object_id] = (value, weight)
            self._weight += weight - before
            # the one that was just kept is never among them: it takes a quarter at most
            while self._weight > self._budget:
                _, (_, dropped) = self._values.popitem(last=False)
                self._weight -= dropped


class Cache:
    """Objects by realm and id, references by realm and name. Evicts by second chance: recently used entries stay longest.

    Hits take no lock: with a lock they would cost twice as much, and reading threads would wait for each other. A hit is one
    ``get`` of a dictionary whose keys are numbers and text, which no other thread can interrupt, and an entry never changes except
    for its flag ``used``; losing an update of that flag does no harm. Every change of the dictionaries and counters holds the lock.

    row_reads     reads of references that are under way, for those who read past the cache
    derived       of the objects; ask for the object first, which may have been deleted
    """

    def __init__(self, *, clock: Clock, budget_bytes: int, reference_ttl_seconds: float) -> None:
        self._clock = clock
        self._budget = budget_bytes
        self._ttl = reference_ttl_seconds
        self.after_fork()

    def after_fork(self) -> None:
        """Start empty in a forked child, where a thread of the parent may have held the lock."""
        self._lock = threading.Lock()
        self.row_reads = SharedReads[ReferenceRow | None]()
        self._drop = 0
        self._puts = self._evictions = self._refused = self._looks = 0
        # counters that threads need no lock for; each look at one counts too, and is taken off again
        self._hits, self._misses = count(), count()
        self._empty()

    def clear(self) -> None:
        with self._lock:
            self._empty()

    def forget_realm(self, realm: RealmKey) -> None:
        """Drop all entries of one realm. Answers on their way, of any realm, will not be cached either."""
        with self._lock:
            self._drop += 1
            self._dropped = [self._drop] * _STRIPES
            for key in [key for key in self._entries if key[0] == realm]:
                self._remove(key)
            # of other realms, too: a realm is forgotten once in its life, and they are worked out again
            self.derived = DerivedValues(self._budget // _DERIVED_SHARE)

    def _empty(self) -> None:
        self._drop += 1
        self._dropped = [self._drop] * _STRIPES
        self._weight = 0
        self._entries: OrderedDict[_Key, _Entry] = OrderedDict()
        self.derived = DerivedValues(self._budget // _DERIVED_SHARE)

    def ticket(self) -> CacheTicket:
        """Take a ticket. Call this before the database is queried."""
        return CacheTicket(self._drop, self._clock.monotonic())

    def find_object(self, realm: RealmKey, object_id: ObjectId) -> StoredObject | None:
        entry = self._entries.get((realm, object_id))
        if entry is None or entry.value is None or (entry.until is not None and self._clock.monotonic() > entry.until):
            next(self._misses)
            return None
        entry.used = True
        next(self._hits)
        return entry.value  # type: ignore[return-value]  # under a number there are only objects

    def is_absent(self, realm: RealmKey, object_id: ObjectId, *, within_seconds: float) -> bool:
        """Whether the database reported, at most that many seconds ago, that it has no such object."""
        if within_seconds <= 0:
            return False
        entry = self._entries.get((realm, object_id))
        if entry is None or entry.value is not None or self._clock.monotonic() - entry.asked > within_seconds:
            return False
        entry.used = True
        next(self._hits)
        return True

    def put_object(
        self,
        realm: RealmKey,
        objects: Iterable[tuple[ObjectId, StoredObject]],
        ticket: CacheTicket,
        *,
        is_written: bool = False,
    ) -> None:
        """Cache immutable objects for as long as their types allow.

        is_written    they were just written under this ticket: an earlier reader that found one absent is outdated
        """
        entries: list[tuple[_Key, _Entry]] = []
        kept_out: list[ObjectId] = []
        asked = ticket.seconds
        for object_id, value in objects:
            seconds = value.cached_seconds
            if not self._budget or seconds == 0 or isinstance(value, UnknownObject):
                kept_out.append(object_id)  # an unknown type may be known a moment later, once its module was imported
            else:
                until = None if seconds is None else asked + seconds
                entries.append(((realm, object_id), _Entry(value, _ENTRY + weigh(value), asked, until)))
        self._put(entries, ticket, is_written)
        if is_written and kept_out:
            self.forget_object(realm, kept_out)

    def put_absence(self, realm: RealmKey, object_id: ObjectId, ticket: CacheTicket, *, seconds: float) -> None:
        """Cache that there is no such object. An object that was cached meanwhile stays."""
        if seconds > 0:
            self._put([((realm, object_id), _Entry(None, _ENTRY, ticket.seconds, ticket.seconds + seconds))], ticket, False)

    def forget_object(self, realm: RealmKey, object_ids: list[ObjectId]) -> None:
        """Drop objects and absences, including those that concurrent readers are about to cache."""
        with self._lock:  # a collection forgets what it deletes: in one go, a third of the time that one by one takes
            self._drop += 1
            drop, dropped, entries = self._drop, self._dropped, self._entries
            for object_id in object_ids:
                key = (realm, object_id)
                dropped[hash(key) % _STRIPES] = drop
                if key in entries:
                    self._remove(key)

    def find_reference(self, realm: RealmKey, name: str) -> ReferenceRow | None:
        entry = self._entries.get((realm, name))
        if entry is None or self._clock.monotonic() - entry.asked > self._ttl:
            next(self._misses)
            return None
        entry.used = True
        next(self._hits)
        return entry.value  # type: ignore[return-value]  # under a name there are only references

    def put_reference(self, row: ReferenceRow, ticket: CacheTicket, *, is_written: bool = False) -> None:
        """Cache a reference as it was read; its time to live began with the ticket.

        is_written    it was just written under this ticket: an earlier reader of the row is outdated
        """
        weight = _ENTRY + _REFERENCE + len(row.name) + _RECENT * len(row.recent) + _MOVE * len(row.moves)
        self._put([((row.realm, row.name), _Entry(row, weight, ticket.seconds, None))], ticket, is_written)

    def forget_reference(self, realm: RealmKey, name: str) -> None:
        """Drop a reference, including one that a concurrent reader is about to cache."""
        with self._lock:
            self._forget((realm, name))

    def statistics(self) -> CacheStatistics:
        with self._lock:
            self._looks += 1
            return CacheStatistics(
                hits=next(self._hits) - self._looks + 1,
                misses=next(self._misses) - self._looks + 1,
                puts=self._puts,
                evictions=self._evictions,
                refused=self._refused,
                entries=len(self._entries),
                weight=self._weight,
                budget=self._budget,
            )

    def _put(self, entries: list[tuple[_Key, _Entry]], ticket: CacheTicket, is_written: bool) -> None:
        with self._lock:
            for key, entry in entries:
                is_late = self._dropped[hash(key) % _STRIPES] > ticket.drop
                if is_written:
                    self._mark(key)
                before = self._entries.get(key)
                is_outdone = before is not None and _is_newer(before, entry)
                if is_late or is_outdone or entry.weight > self._budget:
                    self._refused += 1
                    if not is_outdone and isinstance(entry.value, ReferenceRow):
                        self._forget(key)  # its reader has seen this version: nobody may bring back an older one
                    elif is_written and not is_outdone:
                        self._remove(key)
                    continue
                if before is not None:
                    self._remove(key)
                if self._weight + entry.weight > self._budget:
                    self._make_room(entry.weight)
                self._entries[key] = entry
                self._weight += entry.weight
                self._puts += 1

    def _make_room(self, weight: int) -> None:
        """Evict by second chance: the oldest entry goes, unless it was used since it was last inspected; then it counts as new.

        No put inspects more than a thousand entries: otherwise one put would pay for all hits since the last one.
        """
        chances = _CHANCES
        while self._weight + weight > self._budget:
            key, entry = next(iter(self._entries.items()))
            if entry.used and chances:
                chances -= 1
                entry.used = False
                self._entries.move_to_end(key)
                continue
            self._remove(key)
            self._evictions += 1
            if isinstance(entry.value, ReferenceRow):  # an older version must not come back; objects have only one
                self._mark(key)

    def _forget(self, key: _Key) -> None:
        self._mark(key)
        self._remove(key)

    def _mark(self, key: _Key) -> None:
        self._drop += 1
        self._dropped[hash(key) % _STRIPES] = self._drop

    def _remove(self, key: _Key) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._weight -= entry.weight


def _is_newer(cached: _Entry, entry: _Entry) -> bool:
    """Whether the cached entry must stay: a reference of a higher version, or an object where the new answer is an absence."""
    if isinstance(cached.value, ReferenceRow) and isinstance(entry.value, ReferenceRow):
        return (cached.value.version, cached.asked) > (entry.value.version, entry.asked)
    return cached.value is not None and entry.value is None


class _SharedRead(Generic[T]):
    """One read, for all who asked before it began. ``running`` is held until it has ended, and then there is an answer or none."""

    __slots__ = ("answer", "running")

    def __init__(self) -> None:
        self.running = threading.Lock()
        self.running.acquire()
        self.answer: tuple[T] | None = None


class SharedReads(Generic[T]):
    """Shares reads by key. Nobody gets an answer of a read that began before they asked. Thread-safe; not for a forked child.

    patience_seconds  how long a read waits for the one before it: what hangs must not hold up all that come after it
    """

    def __init__(self, *, patience_seconds: float = _PATIENCE_SECONDS) -> None:
        self._patience = patience_seconds
        self._lock = threading.Lock()
        self._running: dict[object, _SharedRead[T]] = {}
        self._next: dict[object, _SharedRead[T]] = {}

    def share_read(self, key: object, read: Callable[[], T]) -> T:
        """The answer of ``read``, which this thread or another calls; where another's fails, this one calls its own."""
        with self._lock:
            shared = self._next.get(key)
            if shared is None:
                mine = _SharedRead[T]()
                before = self._running.get(key)
                (self._running if before is None else self._next)[key] = mine
        if shared is None:
            return self._read_for_all(key, mine, before, read)
        with shared.running:
            pass
        return read() if shared.answer is None else shared.answer[0]

    def _read_for_all(self, key: object, mine: _SharedRead[T], before: _SharedRead[T] | None, read: Callable[[], T]) -> T:
        try:
            if before is not None:
                if before.running.acquire(timeout=self._patience):
                    before.running.release()
                with self._lock:  # from here on, who asks has to wait for the next one
                    del self._next[key]
                    self._running[key] = mine
            mine.answer = (read(),)
            return mine.answer[0]
        finally:
            with self._lock:
                for reads in (self._next, self._running):
                    if reads.get(key) is mine:
                        del reads[key]
            mine.running.release()
