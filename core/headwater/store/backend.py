"""The interface of a database backend: rows as plain values, and about twenty simple methods over them.

Also cuts bulk calls into chunks of a size that databases handle well, and defines the error when a later chunk fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import msgspec

from headwater.clock import Micros
from headwater.errors import CollisionError, HeadwaterError, UnknownOutcomeError
from headwater.store.ids import ObjectId, RealmKey

ROW_BYTES = 350 * 1024
"""The most that one row's value may hold, on every backend."""
BULK_BYTES = 8 * 1024 * 1024
"""A bulk call with more bytes of values than this may take several round trips."""

ReferencePosition = tuple[RealmKey, str]
"""Where a scan of references stands: realm and name."""
ObjectPosition = tuple[RealmKey, ObjectId, int]
"""Where a scan of objects stands: realm, id and part."""
P = TypeVar("P", bound=tuple[Any, ...])


class ReferenceMove(NamedTuple):
    """A pointer that a reference left other than by a commit on top, and when."""

    pointer: ObjectId
    time: Micros


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceRow:
    """One reference as it is stored. ``deleted`` makes it a tombstone."""

    realm: RealmKey
    name: str
    pointer: ObjectId | None
    version: int
    created: Micros
    recent: tuple[ObjectId, ...] = ()
    moves: tuple[ReferenceMove, ...] = ()
    deleted: Micros | None = None


class ObjectRow(msgspec.Struct, frozen=True, kw_only=True, gc=False):  # made twelve times as fast as a frozen dataclass
    """One part of one object as it is stored; ``parts`` counts them, ``token`` is None for immutable objects."""

    realm: RealmKey
    id: ObjectId
    part: int
    type: str
    value: bytes
    created: Micros
    token: str | None
    parts: int


class ReferenceKey(NamedTuple):
    """What a scan says of a reference: everything but its lists of former pointers."""

    realm: RealmKey
    name: str
    pointer: ObjectId | None
    version: int
    created: Micros
    deleted: Micros | None

    @property
    def position(self) -> ReferencePosition:
        return (self.realm, self.name)


class ObjectKey(NamedTuple):
    """What a scan says of a row: everything but its value. ``bytes`` is the value's size."""

    realm: RealmKey
    id: ObjectId
    part: int
    type: str
    created: Micros
    token: str | None
    parts: int
    bytes: int

    @property
    def position(self) -> ObjectPosition:
        return (self.realm, self.id, self.part)


class ScanSplit(NamedTuple, Generic[P]):
    """A stretch of a scan, in the order in which the database scans: of one realm, or of all (None).

    It begins behind ``after`` and ends with ``until``; None leaves that end open. Plain values, to be sent to other processes.
    """

    realm: RealmKey | None = None
    after: P | None = None
    until: P | None = None


class Capabilities(NamedTuple):
    """What a database does beyond the minimum; declared, never guessed."""

    ordered_keys: bool
    """Scans are in the order of (realm, name) and (realm, id, part), and read one realm's rows without the others'.

    Without it, the order is the database's own, the same each time, and only a split of all realms can be scanned.
    """
    bulk_realm_deletion: bool
    """``delete_realm`` works: a realm's rows can be deleted in bounded batches without being read here."""
    atomic_commits: bool = False
    """``write_and_swap`` does all or nothing: a swap that is beaten leaves no objects behind."""
    parallel_scans: bool = False
    """Splits that several threads of one process scan are done sooner than by one: the work is done by a server."""


def collision(row: ObjectRow | None, *, place: str = "") -> CollisionError:
    """The error for a row that is there with other bytes; None where the database does not say which."""
    what = "an object" if row is None else f"object {row.id:016x} of realm key {row.realm}"
    return CollisionError(
        f"{place}{what} already exists with different content: another process uses the same node number, for example a copy of this"
        " machine. Nothing was replaced. This process will lease another node number; try again",
        object_id=0 if row is None else row.id,
    )


class Backend(Protocol):
    """Two row spaces of one database. Thread-safe; usable on both sides of a fork between ``before_fork`` and ``after_fork``.

    Every method may raise UnavailableError (it had no effect) and, where it writes, UnknownOutcomeError (it may have had some, or
    all); RefusedError for what this database will never do, and CorruptionError for rows that cannot be ours. None waits for ever.
    Bulk calls are one round trip up to BULK_BYTES of values. Every key is named at most once in a bulk call that writes or deletes.
    Times are microseconds since 1970 in UTC; ids, realm keys and versions are 1 to 2^63-1; a value has up to ROW_BYTES.

    source        Apache Polaris persistence proposal: references and objects as two spaces of rows, and what is asked of a database
    """

    @property
    def capabilities(self) -> Capabilities:
        """The same for as long as the backend is open."""
        ...

    def create_reference(self, row: ReferenceRow) -> None:
        """Insert; SwapConflictError when a row of that name is there."""
        ...

    def create_references(self, rows: Sequence[ReferenceRow]) -> list[bool]:
        """Insert each whose name is free, on its own, in one round trip; says in their order which were inserted."""
        ...

    def read_references(self, realm: RealmKey, names: Sequence[str]) -> list[ReferenceRow | None]:
        """As many answers as names, in their order; tombstones included. Strongly consistent."""
        ...

    def swap_reference(self, seen: ReferenceRow, new: ReferenceRow) -> None:
        """Replace ``seen`` by ``new``; SwapConflictError unless pointer and version are as seen."""
        ...

    def write_and_swap(self, rows: Sequence[ObjectRow], seen: ReferenceRow, new: ReferenceRow) -> None:
        """``write_objects``, and then ``swap_reference``; in one round trip where the database can do both at once.

        The objects are new: see ``are_new`` there. Whoever sees ``new`` finds them. After SwapConflictError and UnavailableError, such as
        CollisionError, nothing was swapped, and the objects may be there unless ``capabilities`` declare ``atomic_commits``; after
        UnknownOutcomeError both may have happened. With ``atomic_commits`` it may be repeated: when the same call did swap before,
        it is beaten and changes nothing.
        """
        ...

    def remove_reference(self, seen: ReferenceRow) -> None:
        """Delete the row; SwapConflictError unless pointer and version are as seen."""
        ...

    def read_objects(self, realm: RealmKey, keys: Sequence[tuple[ObjectId, int]]) -> list[ObjectRow | None]:
        """As many answers as (id, part) keys, in their order."""
        ...

    def write_objects(self, rows: Sequence[ObjectRow], *, are_new: bool = False) -> None:
        """Insert or replace, unconditionally. May be repeated.

        are_new       CollisionError, when a row is there with another type or value: nothing is replaced then, and those of the others
                      that were not there may be. A row that is there with the same type and value was written by an earlier try

        The parts of an object come together in one call, and afterwards it has no others: what it had more before is deleted,
        also behind a part that is missing.
        Replacing may take further round trips, inserting does not.
        """
        ...

    def insert_object(self, row: ObjectRow) -> None:
        """Insert; SwapConflictError when a row of that key is there."""
        ...

    def update_object(self, row: ObjectRow, seen_token: str) -> None:
        """Replace; SwapConflictError unless the stored token is as seen."""
        ...

    def delete_objects(self, keys: Sequence[ObjectKey]) -> int:
        """Delete those rows whose creation time and token are still as in their key; returns how many went."""
        ...

    def scan_references(
        self, split: ScanSplit[ReferencePosition], after: ReferencePosition | None, limit: int
    ) -> list[ReferenceKey]:
        """Up to ``limit`` references of a split, those behind ``after``, which need not exist any more; an empty list is the end."""
        ...

    def scan_objects(self, split: ScanSplit[ObjectPosition], after: ObjectPosition | None, limit: int) -> list[ObjectKey]:
        """The same for object rows; their values are not read."""
        ...

    def split_references(self, realm: RealmKey | None, count: int) -> list[ScanSplit[ReferencePosition]]:
        """Cut the scan of a realm, or of all, into 1 to ``count`` splits of about as many rows each.

        Together they are the whole scan, each row in just one of them, also rows that are written later; the first has no ``after``,
        the last no ``until``.
        """
        ...

    def split_objects(self, realm: RealmKey | None, count: int) -> list[ScanSplit[ObjectPosition]]:
        """The same for object rows."""
        ...

    def delete_realm(self, realm: RealmKey, limit: int) -> int:
        """Delete up to ``limit`` rows of a realm, whatever they are; returns how many went, 0 when none is left.

        RefusedError where ``capabilities`` do not declare it.
        """
        ...

    def server_time(self) -> Micros | None:
        """What the clock of the database's server says; None where the database has no clock but that of this machine."""
        ...

    def before_fork(self) -> None:
        """Called before this process forks: wait for calls under way, hold new ones up, let go what a child must not inherit.

        Several stores may share a backend: a second call before the fork changes nothing.
        """
        ...

    def after_fork(self, *, is_child: bool) -> None:
        """Called after the fork, in the parent and in the child: go on."""
        ...

    def close(self) -> None:
        """Let go of all connections; a second time does nothing. Any other call after it raises RefusedError."""
        ...


T = TypeVar("T")


def in_chunks(
    act: Callable[[Sequence[T]], object],
    rows: Sequence[T],
    *,
    size: Callable[[T], int],
    group: Callable[[T], object] = id,
) -> None:
    """Act on about BULK_BYTES of rows at a time, and never on a part of a group, whose rows stand together.

    size          bytes that a row takes on its way
    raises        what ``act`` raises at the first chunk; UnknownOutcomeError for the same at a later one, for some has happened
    """
    has_happened = False
    for chunk in chunks(rows, size=size, group=group):
        try:
            act(chunk)
        except HeadwaterError as fault:
            if not has_happened or isinstance(fault, UnknownOutcomeError):
                raise
            raise UnknownOutcomeError(f"{fault}; an earlier part of the same call happened") from fault
        has_happened = True


def chunks(rows: Sequence[T], *, size: Callable[[T], int], group: Callable[[T], object] = id) -> Iterator[Sequence[T]]:
    """Cut rows as ``in_chunks`` does."""
    start = total = 0
    for end, row in enumerate(rows):
        total += size(row)
        if total > BULK_BYTES and end > start and group(row) != group(rows[end - 1]):
            yield rows[start:end]
            start, total = end, size(row)
    if rows:
        yield rows[start:]
