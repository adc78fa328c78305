"""The rows of one realm: typed objects and references over the dumb backend. No call can name another realm's rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

from headwater.errors import BeatenError, CollisionError, RefusedError
from headwater.store.backend import ObjectKey, ObjectPosition, ObjectRow, ReferenceKey, ReferencePosition, Split
from headwater.store.cache import Cache
from headwater.store.handles import Gate, Whole
from headwater.store.identity import ObjectId, RealmId, RealmKey
from headwater.store.realm_objects import Batch, RealmObjects
from headwater.store.realm_references import RealmReferences
from headwater.store.references import Reference, advanced
from headwater.store.scanning import Scans

__all__ = ["Batch", "Gate", "RealmStore", "Whole"]


class RealmStore(RealmObjects, RealmReferences):
    """A handle on one realm's rows. Made by ``Store.system`` and ``Store.rows``; as thread-safe and fork-safe as its store.

    Times are microseconds since 1970 in UTC. ``find`` and what begins so returns None for what is not there, ``read`` raises.

    raises        UnavailableError from every call that asks the database, when it did certainly nothing; UnknownOutcomeError from
                  one that writes, when it may have; UnreadableError from one that reads, for rows that cannot be ours or were
                  altered; RefusedError for ids, names and values out of bounds, and for writes that the gate keeps out
    source        Apache Polaris persistence proposal, for what a realm's references and objects can be asked
    """

    def __init__(self, store: Whole, realm: RealmId, key: RealmKey, gate: Gate | None, cache: Cache | None = None) -> None:
        super().__init__(store, realm, key, gate, cache)
        self._scans = Scans(store.backend, realm, key)
        self._is_being_deleted = False

    def without_cache(self, *, budget_bytes: int = 0) -> RealmStore:
        """The same handle without what this process remembers: every reference, and each object once, is asked of the database.

        For those who judge what is really there. What it writes is remembered for the others, as by every handle.

        budget_bytes  how much of what it reads this handle alone may remember
        """
        own = Cache(clock=self.clock, budget_bytes=budget_bytes, reference_ttl_seconds=-1)
        return RealmStore(self.store, self.realm, self.key, self._gate, own)

    # commits

    def write_and_advance(self, batch: Batch, seen: Reference, pointer: ObjectId) -> Reference:
        """Write the objects of a batch and make one of them the head: a commit on top, in one round trip where the database can.

        After an unclear answer see ``write_and_advance_again``. When it was beaten, the objects may be there: see ``discard``.

        raises        BeatenError when the reference was not as seen; CollisionError when another process has made an id of the batch:
                      then this one makes no more with its node; UnknownOutcomeError, which is the caller's to find out
        """
        return self._write_and_advance(batch, seen, pointer, self._backend.write_and_swap)

    def write_and_advance_again(self, batch: Batch, seen: Reference, pointer: ObjectId) -> Reference:
        """The same call once more, whose answer was unclear. It has no effect when the first one had its own.

        Where the database does not do both at once, the first call may have swapped, and others may have changed an updateable
        object of the batch since. So these are written only if they are not there yet.
        """
        write = self._backend.write_and_swap if self._backend.capabilities.atomic_commits else self._write_missing_and_swap
        return self._write_and_advance(batch, seen, pointer, write)

    def _write_missing_and_swap(self, rows: Sequence[ObjectRow], seen: Reference, new: Reference) -> None:
        self._backend.write_objects([row for row in rows if row.token is None], are_new=True)
        for row in rows:
            if row.token is not None:
                with suppress(BeatenError):
                    self._backend.insert_object(row)
        self._backend.swap_reference(seen, new)

    def _write_and_advance(
        self,
        batch: Batch,
        seen: Reference,
        pointer: ObjectId,
        write: Callable[[Sequence[ObjectRow], Reference, Reference], None],
    ) -> Reference:
        new = advanced(seen, pointer)
        self._bounds.check_swap(seen, new)
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

    def discard(self, batch: Batch) -> None:
        """Delete what a beaten ``write_and_advance`` may have left. Only for who knows that it did not happen, and will not."""
        if self._backend.capabilities.atomic_commits:
            self._forget(batch.ids)
        else:
            self.delete_unchanged(batch.keys)

    # maintenance

    def scan_objects(self, split: Split[ObjectPosition] | None = None) -> Iterator[list[ObjectKey]]:
        """All object rows' keys, or those of one split of this realm, in batches, in constant memory.

        To go on from a key later: ``scan_objects(split._replace(after=key.position))``.
        """
        return self._scans.objects(split)

    def scan_references(self, split: Split[ReferencePosition] | None = None) -> Iterator[ReferenceKey]:
        """All reference rows' keys, tombstones included, or those of one split of this realm."""
        return (key for batch in self._scans.references(split) for key in batch)

    def split_objects(self, count: int) -> list[Split[ObjectPosition]]:
        """Up to ``count`` splits that together are the scan of this realm's objects: plain values, to be scanned in parallel.

        Where keys are not ordered, together they read all realms' keys, and this realm's come out.
        """
        return self._scans.split_objects(count)

    def split_references(self, count: int) -> list[Split[ReferencePosition]]:
        """The same for references."""
        return self._scans.split_references(count)

    def is_empty(self) -> bool:
        """Whether the database holds no row of this realm."""
        return self._scans.is_empty()

    def delete_rows(self, limit: int) -> int:
        """Delete up to ``limit`` rows, whatever they are; returns how many went, 0 when none is left. For purging.

        What this process remembers of the realm is forgotten with the first call, with the one that finds none left, and with every
        one that fails.
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
        return self._scans.delete(limit)
