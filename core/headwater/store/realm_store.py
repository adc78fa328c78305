"""The rows of one realm, typed: a reader without the means to write, and the store that reads and writes.

Scans and the deletion of a realm work with any key order. A list of rows that contains unreadable ones returns the readable rows and
the names of the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol, TypeVar

from headwater.clock import Clock, Micros
from headwater.errors import CollisionError, CorruptionError, RefusedError, SwapConflictError
from headwater.settings import Settings
from headwater.store.backend import (
    ObjectKey,
    ObjectPosition,
    ObjectRow,
    ReferenceKey,
    ReferencePosition,
    ReferenceRow,
    ScanSplit,
)
from headwater.store.cache import Cache
from headwater.store.ids import ObjectId, RealmId, RealmKey, id_text
from headwater.store.realm_objects import ObjectBatch, RealmObjects
from headwater.store.realm_refs import Reference, StoreContext, WriteGuard, advanced_row
from headwater.store.stored_objects import StoredObject, Versioned

T = TypeVar("T", bound=StoredObject)
A = TypeVar("A")
K = TypeVar("K", ReferenceKey, ObjectKey)
_SCAN_ROWS = 600
"""Rows of one round trip: of 100 to 20 000, on SQLite and PostgreSQL none was quicker (0.76 of the driver's own cursor)."""
_ROUNDS = 10


class RealmReader(Protocol):
    """The reading methods of a ``RealmStore``, which is one; see there for what they promise and raise.

    A function that takes a RealmReader writes nothing. To show it objects that are not written yet, wrap the reader.
    """

    @property
    def realm(self) -> RealmId: ...
    @property
    def key(self) -> RealmKey: ...
    @property
    def settings(self) -> Settings: ...
    @property
    def clock(self) -> Clock: ...

    def credible_until(self, now: Micros) -> Micros: ...
    def find_object(self, object_id: ObjectId, cls: type[T]) -> T | None: ...
    def read_object(self, object_id: ObjectId, cls: type[T]) -> T: ...
    def find_derived(self, object_id: ObjectId, cls: type[A]) -> A | None: ...
    def keep_derived(self, object_id: ObjectId, value: object, *, weight_bytes: int) -> None: ...
    def read_many(self, object_ids: Sequence[ObjectId], cls: type[T]) -> list[T | None]: ...
    def read_each(self, object_ids: Sequence[ObjectId], cls: type[T]) -> list[T | CorruptionError | None]: ...
    def find_versioned(self, object_id: ObjectId, cls: type[T]) -> Versioned[T] | None: ...
    def read_versioned(self, object_id: ObjectId, cls: type[T]) -> Versioned[T]: ...
    def read_many_versioned(self, object_ids: Sequence[ObjectId], cls: type[T]) -> list[Versioned[T] | None]: ...
    def find_reference(self, name: str, *, fresh: bool = False) -> Reference | None: ...
    def read_reference(self, name: str, *, fresh: bool = False) -> Reference: ...
    def find_row(self, name: str) -> Reference | None: ...
    def find_rows(self, names: Sequence[str]) -> list[Reference | None]: ...

    def without_cache(self, *, budget_bytes: int = 0) -> RealmReader: ...


class RealmStore(RealmObjects):
    """A handle on one realm's rows. Made by ``Store.system`` and ``Store.rows``; as thread-safe and fork-safe as its store.

    Times are microseconds since 1970 in UTC. ``find`` and what begins so returns None for what is not there, ``read`` raises.

    raises        UnavailableError from every call that asks the database, when it did certainly nothing; UnknownOutcomeError from
                  one that writes, when it may have; CorruptionError from one that reads, for rows that cannot be ours or were
                  altered; RefusedError for ids, names and values out of bounds, and for writes that the gate keeps out
    source        Apache Polaris persistence proposal, for what a realm's references and objects can be asked
    """

    def __init__(
        self, store: StoreContext, realm: RealmId, key: RealmKey, gate: WriteGuard | None, cache: Cache | None = None
    ) -> None:
        super().__init__(store, realm, key, gate, cache)
        self._deleted_to: tuple[ReferencePosition | None, ObjectPosition | None] = (None, None)
        self._is_being_deleted = False

    def without_cache(self, *, budget_bytes: int = 0) -> RealmStore:
        """This handle without the process' cache: every reference, and each object once, is read from the database.

        For callers that verify what is really stored. Its writes go into the shared cache, as those of every handle.

        budget_bytes  the size of the handle's own cache
        """
        own = Cache(clock=self.clock, budget_bytes=budget_bytes, reference_ttl_seconds=-1)
        return RealmStore(self.store, self.realm, self.key, self._gate, own)

    def write_and_advance(self, batch: ObjectBatch, seen: Reference, pointer: ObjectId) -> Reference:
        """Write the objects of a batch and make one of them the head: a commit on top, in one round trip where the database can.

        After an unclear answer see ``write_and_advance_again``. After a lost swap, the objects may exist: see ``discard``.

        raises        SwapConflictError when the reference has changed since it was read; CollisionError when another process has made an
                      id of the batch: then this process stops using its node; UnknownOutcomeError, which the caller must resolve
        """
        return self._write_and_advance(batch, seen, pointer, self._backend.write_and_swap)

    def write_and_advance_again(self, batch: ObjectBatch, seen: Reference, pointer: ObjectId) -> Reference:
        """Repeat a ``write_and_advance`` whose answer was unclear. Has no effect when the first call took effect.

        Where the database does not do both at once, the first call may have swapped, and others may have changed an updateable
        object of the batch since. So updateable objects are written only if they do not exist yet.
        """
        write = self._backend.write_and_swap if self._backend.capabilities.atomic_commits else self._write_missing_and_swap
        return self._write_and_advance(batch, seen, pointer, write)

    def _write_missing_and_swap(self, rows: Sequence[ObjectRow], seen: Reference, new: Reference) -> None:
        self._backend.write_objects([row for row in rows if row.token is None], are_new=True)
        for row in rows:
            if row.token is not None:
                with suppress(SwapConflictError):
                    self._backend.insert_object(row)
        self._backend.swap_reference(seen, new)

    def _write_and_advance(
        self,
        batch: ObjectBatch,
        seen: Reference,
        pointer: ObjectId,
        write: Callable[[Sequence[ObjectRow], Reference, Reference], None],
    ) -> Reference:
        new = advanced_row(seen, pointer)
        self._check_swap(seen, new)
        self.check_write()
        ticket = self._begin_swap(new)
        try:
            write(batch.rows, seen, new)
        except BaseException as fault:
            if isinstance(fault, CollisionError):
                self._leave_node(fault, batch)
            self._forget(batch.ids)
            self._forget_reference(new.name)
            raise
        self._remember(batch, ticket)
        self._shared.put_reference(new, ticket, is_written=True)
        return new

    def discard(self, batch: ObjectBatch) -> None:
        """Delete the objects that a lost ``write_and_advance`` may have left. Only when it surely did not take effect, and will not."""
        if self._backend.capabilities.atomic_commits:
            self._forget(batch.ids)
        else:
            self.delete_unchanged(batch.keys)

    def scan_objects(self, split: ScanSplit[ObjectPosition] | None = None) -> Iterator[list[ObjectKey]]:
        """Yield all object rows' keys, or those of one split of this realm, in batches, in constant memory.

        To continue from a key later: ``scan_objects(split._replace(after=key.position))``.
        """
        return self._scan(self._backend.scan_objects, split)

    def scan_references(self, split: ScanSplit[ReferencePosition] | None = None) -> Iterator[ReferenceKey]:
        """Yield all reference rows' keys, tombstones included, or those of one split of this realm."""
        return (key for batch in self._scan(self._backend.scan_references, split) for key in batch)

    def split_objects(self, count: int) -> list[ScanSplit[ObjectPosition]]:
        """Up to ``count`` splits that together are the scan of this realm's objects: plain values, to be scanned in parallel.

        Where keys are not ordered, the splits read the keys of all realms and return only this realm's.
        """
        return self._backend.split_objects(self.key if self._is_ordered else None, count)

    def split_references(self, count: int) -> list[ScanSplit[ReferencePosition]]:
        """Up to ``count`` splits of the scan of this realm's references; see ``split_objects``."""
        return self._backend.split_references(self.key if self._is_ordered else None, count)

    def is_empty(self) -> bool:
        """Whether the database holds no row of this realm."""
        rows = 1 if self._is_ordered else _SCAN_ROWS
        return not (
            any(self._scan(self._backend.scan_references, None, rows))
            or any(self._scan(self._backend.scan_objects, None, rows))
        )

    def delete_rows(self, limit: int) -> int:
        """Delete up to ``limit`` rows of any kind. Returns how many were deleted, 0 when none is left. For purging.

        The cache of the realm is cleared by the first call, by the call that finds no row left, and by every call that fails.
        """
        if limit < 1:
            raise RefusedError(f"realm {self.realm!r}: {limit} rows cannot be deleted, only 1 or more at a time")
        self.check_write()
        deleted = 0
        try:
            deleted = self._delete_rows(limit)
            return deleted
        finally:
            if not (deleted and self._is_being_deleted):
                self._is_being_deleted = True
                self._shared.forget_realm(self.key)
                self._cache.forget_realm(self.key)

    def _delete_rows(self, limit: int) -> int:
        if self._backend.capabilities.bulk_realm_deletion:
            return self._backend.delete_realm(self.key, limit)
        return self._delete_scanned(limit)

    def _delete_scanned(self, limit: int) -> int:
        """Scan for rows and delete up to ``limit`` of them. Returns how many were deleted, 0 when none is left.

        Each call continues where the last one stopped, and returns 0 only after a scan from the start.
        """
        for _ in range(_ROUNDS):
            is_whole = self._deleted_to == (None, None)
            keys, deleted = self._delete_from(*self._deleted_to, limit)
            if deleted or (is_whole and not keys):
                return deleted
        return 0  # others change everything that is found; whoever purges looks whether it is empty

    def _delete_from(self, reference: ReferencePosition | None, position: ObjectPosition | None, limit: int) -> tuple[int, int]:
        """Delete up to ``limit`` rows beyond two positions. Returns how many were found, and how many were deleted."""
        realm = self.key if self._is_ordered else None
        references = self.scan_references(ScanSplit(realm, reference))
        names = list(islice(references, limit))
        rest = limit - len(names)
        objects = (key for batch in self.scan_objects(ScanSplit(realm, position)) for key in batch)
        keys = list(islice(objects, rest))
        is_end = len(names) + len(keys) < limit
        self._deleted_to = (
            (None, None) if is_end else (names[-1].position if names else reference, keys[-1].position if keys else position)
        )
        deleted = sum(self._remove(key) for key in names)
        return len(names) + len(keys), deleted + (self._backend.delete_objects(keys) if keys else 0)

    def _remove(self, key: ReferenceKey) -> bool:
        try:
            self._backend.remove_reference(ReferenceRow(**key._asdict()))
        except SwapConflictError:
            return False
        return True

    @property
    def _is_ordered(self) -> bool:
        return self._backend.capabilities.ordered_keys

    def _scan(
        self, read: Callable[[ScanSplit[Any], Any, int], list[K]], split: ScanSplit[Any] | None, rows: int = _SCAN_ROWS
    ) -> Iterator[list[K]]:
        within = ScanSplit(self.key if self._is_ordered else None) if split is None else split
        self._check_split(within)
        return self._read_batches(read, within, rows)

    def _check_split(self, split: ScanSplit[Any]) -> None:
        """Check that a split is one of this realm, or of all realms where keys are not ordered, because no other splits exist."""
        why = ""
        if not self._is_ordered:
            if split.realm is not None:
                why = "this store cuts only the scan of all realms"
        elif {split.realm, *(position[0] for position in (split.after, split.until) if position is not None)} != {self.key}:
            why = "it is not one of this realm's"
        if why:
            raise RefusedError(
                f"the handle on realm {self.realm!r} does not scan that split: {why};"
                " take one that its split_objects or split_references cut"
            )

    def _read_batches(
        self, read: Callable[[ScanSplit[Any], Any, int], list[K]], split: ScanSplit[Any], rows: int
    ) -> Iterator[list[K]]:
        """Read a split to its end. Where keys are not ordered, all realms are read, and the others' rows left out."""
        after = None
        while batch := read(split, after, rows):
            after = batch[-1].position
            if not self._is_ordered:
                batch = [key for key in batch if key.realm == self.key]
            if batch:
                yield batch


RowT = TypeVar("RowT")


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadableRow:
    """An entry of a list that cannot be read.

    what          such as "task" or "realm"
    name          its name in the list
    realm         the realm that it belongs to; empty where the list does not say
    fault         what is wrong with it
    """

    what: str
    id: ObjectId
    name: str
    realm: str
    fault: str

    def __str__(self) -> str:
        return f"{self.what} {self.name} ({id_text(self.id)}) cannot be read: {self.fault}: `headwater fsck` tells what to do"


class ReadableRows(list[RowT]):
    """The readable rows, in the order of the list. ``unreadable`` names the others."""

    def __init__(self, readable: Iterable[RowT] = (), unreadable: Iterable[UnreadableRow] = ()) -> None:
        super().__init__(readable)
        self.unreadable = tuple(unreadable)

    def complete(self) -> ReadableRows[RowT]:
        """This list, for callers that must not miss an entry. Raises CorruptionError that names the first unreadable entry."""
        if self.unreadable:
            more = len(self.unreadable) - 1
            raise CorruptionError(f"{self.unreadable[0]}" + (f"; and {more} more" if more else ""))
        return self
