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
"""Position of a reference in a scan: realm and name."""
ObjectPosition = tuple[RealmKey, ObjectId, int]
"""Position of an object row in a scan: realm, id and part."""
P = TypeVar("P", bound=tuple[Any, ...])


class ReferenceMove(NamedTuple):
    """A former pointer that was replaced by something other than a commit on top of it, and the time of the replacement."""

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
    """A reference as a scan returns it: everything but its lists of former pointers."""

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
    """An object row as a scan returns it: everything but its value. ``bytes`` is the value's size."""

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
    """A range of a scan, in the database's scan order: of one realm, or of all realms (None).

    It begins after ``after`` and includes ``until``; None leaves that end open. Plain values that can be sent to other processes.
    """

    realm: RealmKey | None = None
    after: P | None = None
    until: P | None = None


class Capabilities(NamedTuple):
    """Features of a database beyond the minimum; declared, never guessed."""

    ordered_keys: bool
    """Scans are in the order of (realm, name) and (realm, id, part), and read one realm's rows without the others'.

    Without it, the order is the database's own, the same each time, and only a split of all realms can be scanned.
    """
    bulk_realm_deletion: bool
    """``delete_realm`` works: a realm's rows can be deleted in bounded batches without being read here."""
    atomic_commits: bool = False
    """``write_and_swap`` is all or nothing: a lost swap leaves no objects behind."""
    parallel_scans: bool = False
    """Several threads of one process scan splits faster than one thread does, because a server does the work."""


def collision(row: ObjectRow | None, *, place: str = "") -> CollisionError:
    """The error for a row that already exists with other bytes. ``row`` is None where the database does not say which row."""
    what = "an object" if row is None else f"object {row.id:016x} of realm key {row.realm}"
    return CollisionError(
        f"{place}{what} already exists with different content: another process uses the same node number, for example a copy of this"
        " machine. Nothing was replaced. This process will lease another node number; try again",
        object_id=0 if row is None else row.id,
    )


class Backend(Protocol):
    """Two row spaces of one database. Thread-safe; usable on both sides of a fork between ``before_fork`` and ``after_fork``.

    Every method may raise UnavailableError (it had no effect) and, where it writes, UnknownOutcomeError (it may have had some, or
    all); RefusedError for what this database will never do, and CorruptionError for rows that Headwater cannot have written.
    No method waits without a time limit. Bulk calls are one round trip up to BULK_BYTES of values. Every key is named at most once in
    a bulk call that writes or deletes. Times are microseconds since 1970 in UTC; ids, realm keys and versions are 1 to 2^63-1; a value
    has up to ROW_BYTES.

    source        Apache Polaris persistence proposal: references and objects as two spaces of rows, and what is asked of a database
    """

    @property
    def capabilities(self) -> Capabilities:
        """The features of this backend. They do not change while it is open."""
        ...

    def create_reference(self, row: ReferenceRow) -> None:
        """Insert the row; SwapConflictError when a row of that name exists."""
        ...

    def create_references(self, rows: Sequence[ReferenceRow]) -> list[bool]:
        """Insert every row whose name is free, each independently, in one round trip. Returns, in order, which were inserted."""
        ...

    def read_references(self, realm: RealmKey, names: Sequence[str]) -> list[ReferenceRow | None]:
        """Read one row per name, in the order of the names; None where there is none. Includes tombstones. Strongly consistent."""
        ...

    def swap_reference(self, seen: ReferenceRow, new: ReferenceRow) -> None:
        """Replace ``seen`` with ``new``; SwapConflictError unless the stored pointer and version equal those of ``seen``."""
        ...

    def write_and_swap(self, rows: Sequence[ObjectRow], seen: ReferenceRow, new: ReferenceRow) -> None:
        """Write objects, then swap the reference; in one round trip where the database can do both at once.

        The objects are new: see ``are_new`` of ``write_objects``. Every reader that sees ``new`` finds them. After SwapConflictError and
        UnavailableError (CollisionError is one), nothing was swapped, and the objects may be there unless ``capabilities`` declare
        ``atomic_commits``. After UnknownOutcomeError both may have happened. With ``atomic_commits`` the call may be repeated: if the
        first call did swap, the repetition fails with SwapConflictError and changes nothing.
        """
        ...

    def remove_reference(self, seen: ReferenceRow) -> None:
        """Delete the row; SwapConflictError unless the stored pointer and version equal those of ``seen``."""
        ...

    def read_objects(self, realm: RealmKey, keys: Sequence[tuple[ObjectId, int]]) -> list[ObjectRow | None]:
        """Read one row per (id, part) key, in the order of the keys; None where there is none."""
        ...

    def write_objects(self, rows: Sequence[ObjectRow], *, are_new: bool = False) -> None:
        """Insert or replace, unconditionally. May be repeated.

        are_new       CollisionError when a row exists with another type or value: no row is replaced then, but other rows that did
                      not exist may be inserted. A row that exists with the same type and value was written by an earlier attempt

        All parts of an object come in one call, and afterwards the object has no others: parts beyond them are deleted, even behind
        a gap. Replacing may take further round trips, inserting does not.
        """
        ...

    def insert_object(self, row: ObjectRow) -> None:
        """Insert the row; SwapConflictError when a row of that key exists."""
        ...

    def update_object(self, row: ObjectRow, seen_token: str) -> None:
        """Replace the row; SwapConflictError unless the stored token equals ``seen_token``."""
        ...

    def delete_objects(self, keys: Sequence[ObjectKey]) -> int:
        """Delete the rows whose creation time and token still equal those of their key. Returns how many were deleted."""
        ...

    def scan_references(
        self, split: ScanSplit[ReferencePosition], after: ReferencePosition | None, limit: int
    ) -> list[ReferenceKey]:
        """Return up to ``limit`` references of a split, after position ``after``, which need not exist. An empty list is the end."""
        ...

    def scan_objects(self, split: ScanSplit[ObjectPosition], after: ObjectPosition | None, limit: int) -> list[ObjectKey]:
        """Return up to ``limit`` object rows of a split, without their values, after position ``after``. An empty list is the end."""
        ...

    def split_references(self, realm: RealmKey | None, count: int) -> list[ScanSplit[ReferencePosition]]:
        """Cut the scan of a realm, or of all, into 1 to ``count`` splits of about as many rows each.

        Every row is in exactly one split, including rows that are written later. The first split has no ``after``, the last no ``until``.
        """
        ...

    def split_objects(self, realm: RealmKey | None, count: int) -> list[ScanSplit[ObjectPosition]]:
        """Cut the scan of object rows into splits; see ``split_references``."""
        ...

    def delete_realm(self, realm: RealmKey, limit: int) -> int:
        """Delete up to ``limit`` rows of a realm, of any kind. Returns how many were deleted, 0 when none is left.

        RefusedError where ``capabilities`` do not declare it.
        """
        ...

    def server_time(self) -> Micros | None:
        """The time on the database server's clock; None where the database uses this machine's clock."""
        ...

    def before_fork(self) -> None:
        """Prepare for a fork: release what a child must not inherit, and keep whole what it inherits, if calls of other threads could not.

        Several stores may share a backend: a second call before the fork changes nothing.
        """
        ...

    def after_fork(self, *, is_child: bool) -> None:
        """Resume after a fork, in the parent and in the child."""
        ...

    def close(self) -> None:
        """Close all connections; a second call does nothing. Any other call afterwards raises RefusedError."""
        ...


T = TypeVar("T")


def in_chunks(
    act: Callable[[Sequence[T]], object],
    rows: Sequence[T],
    *,
    size: Callable[[T], int],
    group: Callable[[T], object] = id,
) -> None:
    """Call ``act`` with about BULK_BYTES of rows at a time. A group, whose rows are adjacent, is never divided.

    size          bytes that a row takes on the wire
    raises        what ``act`` raises for the first chunk; UnknownOutcomeError for a later chunk, because earlier ones were applied
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
    """Cut rows into chunks of about BULK_BYTES without dividing a group."""
    start = total = 0
    for end, row in enumerate(rows):
        total += size(row)
        if total > BULK_BYTES and end > start and group(row) != group(rows[end - 1]):
            yield rows[start:end]
            start, total = end, size(row)
    if rows:
        yield rows[start:]
