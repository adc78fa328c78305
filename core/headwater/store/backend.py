"""What a database must be able to do: rows as plain values, and about a dozen dumb methods over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from headwater.clock import Micros
from headwater.store.identity import ObjectId, RealmKey

__all__ = ["ROW_BYTES", "Backend", "Capabilities", "Move", "ObjectKey", "ObjectRow", "ReferenceRow"]

ROW_BYTES = 350 * 1024
"""The most that one row's value may hold, on every backend."""


class Move(NamedTuple):
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
    moves: tuple[Move, ...] = ()
    deleted: Micros | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectRow:
    """One part of one object as it is stored; ``parts`` counts them, ``token`` is None for immutable objects."""

    realm: RealmKey
    id: ObjectId
    part: int
    type: str
    value: bytes
    created: Micros
    token: str | None
    parts: int


class ObjectKey(NamedTuple):
    """What a scan says of a row: everything but its value. ``bytes`` is the value's size."""

    realm: RealmKey
    id: ObjectId
    part: int
    type: str
    created: Micros
    token: str | None
    bytes: int


class Capabilities(NamedTuple):
    """What a database does beyond the minimum; declared, never guessed."""

    ordered_keys: bool
    """Scans yield one realm's rows without reading the others', in the order of their keys."""
    bulk_realm_deletion: bool
    """A realm's rows can be deleted in bounded batches without being read."""


class Backend(Protocol):
    """Two row spaces of one database. Thread-safe; usable on both sides of a fork between ``before_fork`` and ``after_fork``.

    Every method may raise UnavailableError (it had no effect) and, where it writes, UnknownOutcomeError (it may have had).
    Bulk calls are one round trip.
    """

    @property
    def capabilities(self) -> Capabilities: ...

    def create_reference(self, row: ReferenceRow) -> None:
        """Insert; BeatenError when a row of that name is there."""
        ...

    def read_references(self, realm: RealmKey, names: Sequence[str]) -> list[ReferenceRow | None]:
        """As many answers as names, in their order; tombstones included. Strongly consistent."""
        ...

    def swap_reference(self, seen: ReferenceRow, new: ReferenceRow) -> None:
        """Replace ``seen`` by ``new``; BeatenError unless pointer and version are as seen."""
        ...

    def remove_reference(self, seen: ReferenceRow) -> None:
        """Delete the row; BeatenError unless pointer and version are as seen."""
        ...

    def read_objects(self, realm: RealmKey, keys: Sequence[tuple[ObjectId, int]]) -> list[ObjectRow | None]:
        """As many answers as (id, part) keys, in their order."""
        ...

    def write_objects(self, rows: Sequence[ObjectRow]) -> None:
        """Insert or replace, unconditionally. May be repeated."""
        ...

    def insert_object(self, row: ObjectRow) -> None:
        """Insert; BeatenError when a row of that key is there."""
        ...

    def update_object(self, row: ObjectRow, seen_token: str) -> None:
        """Replace; BeatenError unless the stored token is as seen."""
        ...

    def delete_objects(self, keys: Sequence[ObjectKey]) -> int:
        """Delete those rows whose creation time and token are still as in their key; returns how many went."""
        ...

    def scan_references(self, realm: RealmKey | None, after: tuple[RealmKey, str] | None, limit: int) -> list[ReferenceRow]:
        """Up to ``limit`` references in key order, of one realm or of all; an empty list is the end."""
        ...

    def scan_objects(self, realm: RealmKey | None, after: ObjectKey | None, limit: int) -> list[ObjectKey]:
        """Up to ``limit`` object rows in key order without their values; an empty list is the end."""
        ...

    def delete_realm(self, realm: RealmKey, limit: int) -> int:
        """Delete up to ``limit`` rows of a realm, whatever they are; returns how many went, 0 when none is left."""
        ...

    def before_fork(self) -> None:
        """Called before this process forks: wait for calls under way, hold new ones up, let go what a child must not inherit.

        Several stores may share a backend: a second call before the fork changes nothing.
        """
        ...

    def after_fork(self, *, is_child: bool) -> None:
        """Called after the fork, in the parent and in the child: go on."""
        ...

    def close(self) -> None: ...
