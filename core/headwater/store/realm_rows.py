"""The rows of one realm: typed objects and references over the dumb backend. No call can name another realm's rows."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple, Protocol, TypeVar

from headwater.clock import Clock, Micros
from headwater.errors import BeatenError, HeadwaterError, MissingError, RefusedError, UnknownOutcomeError, UnreadableError
from headwater.settings import Settings
from headwater.store.backend import (
    ROW_BYTES,
    Backend,
    ObjectKey,
    ObjectPosition,
    ObjectRow,
    ReferenceKey,
    ReferencePosition,
    ReferenceRow,
    Split,
)
from headwater.store.bounds import Bounds
from headwater.store.cache import Cache
from headwater.store.codec import decode, encode, is_compressed, parts_of
from headwater.store.identity import ObjectId, RealmId, RealmKey, id_text
from headwater.store.object_rows import Loaded, load
from headwater.store.objects import StoredObject, UnknownObject, Versioned
from headwater.store.references import Reference, advanced, buried, moved, raised, recreated, with_move
from headwater.store.scanning import Scans

__all__ = ["Batch", "Gate", "RealmStore", "Whole"]

T = TypeVar("T", bound=StoredObject)
_TRIES = 10


class Gate(Protocol):
    """What decides whether a handle may write now."""

    def check_write(self) -> None:
        """Raise RefusedError when it may not."""
        ...


class Batch(NamedTuple):
    """Objects as rows, ready to be written, perhaps more than once. Made by ``RealmStore.pack``."""

    rows: list[ObjectRow]
    remembered: list[tuple[ObjectId, StoredObject, int | None]]
    """What the cache keeps, with the bytes of the envelope where they tell."""
    others: list[ObjectId]

    @property
    def keys(self) -> list[ObjectKey]:
        return [
            ObjectKey(row.realm, row.id, row.part, row.type, row.created, row.token, row.parts, len(row.value))
            for row in self.rows
        ]


class Whole(Protocol):
    """What the handles on one store share; the store itself."""

    @property
    def backend(self) -> Backend: ...
    @property
    def cache(self) -> Cache: ...
    @property
    def settings(self) -> Settings: ...
    @property
    def clock(self) -> Clock: ...
    def new_id(self) -> ObjectId: ...
    def new_ids(self, n: int) -> list[ObjectId]: ...


class RealmStore:
    """A handle on one realm's rows. Made by ``Store.system`` and ``Store.rows``; as thread-safe and fork-safe as its store.

    Times are microseconds since 1970 in UTC. ``find`` and what begins so returns None for what is not there, ``read`` raises.

    raises        UnavailableError from every call that asks the database, when it did certainly nothing; UnknownOutcomeError from
                  one that writes, when it may have; UnreadableError from one that reads, for rows that cannot be ours or were
                  altered; RefusedError for ids, names and values out of bounds, and for writes that the gate keeps out
    source        Apache Polaris persistence proposal, for what a realm's references and objects can be asked
    """

    def __init__(self, store: Whole, realm: RealmId, key: RealmKey, gate: Gate | None, cache: Cache | None = None) -> None:
        self.store = store
        self.realm = realm
        self.key = key
        self._gate = gate
        self._backend = store.backend
        self._shared = store.cache
        self._cache = store.cache if cache is None else cache
        self._bounds = Bounds(realm, key)
        self._scans = Scans(store.backend, realm, key)

    @property
    def settings(self) -> Settings:
        return self.store.settings

    @property
    def clock(self) -> Clock:
        return self.store.clock

    def without_cache(self, *, budget_bytes: int = 0) -> RealmStore:
        """The same handle without what this process remembers: every reference, and each object once, is asked of the database.

        For those who judge what is really there. What it writes is remembered for the others, as by every handle.

        budget_bytes  how much of what it reads this handle alone may remember
        """
        own = Cache(clock=self.clock, budget_bytes=budget_bytes, reference_ttl_seconds=-1)
        return RealmStore(self.store, self.realm, self.key, self._gate, own)

    def new_id(self) -> ObjectId:
        """As ``Store.new_id``."""
        return self.store.new_id()

    def new_ids(self, n: int) -> list[ObjectId]:
        """As ``Store.new_ids``."""
        return self.store.new_ids(n)

    def check_write(self) -> None:
        """Raise RefusedError when this handle may not write now."""
        if self._gate is not None:
            self._gate.check_write()

    # objects

    def find(self, object_id: ObjectId, cls: type[T]) -> T | None:
        """As ``read_many``, for one."""
        value = self._cache.find(self.key, object_id)
        if isinstance(value, cls):
            return value
        return self._read_cold([object_id], cls, {} if value is None else {object_id: value})[0]

    def read(self, object_id: ObjectId, cls: type[T]) -> T:
        """As ``read_many``, for one; MissingError when it is not there."""
        value = self.find(object_id, cls)
        if value is None:
            raise MissingError(f"object {id_text(object_id)} ({cls.__name__}) is not in realm {self.realm!r}")
        return value

    def read_many(self, object_ids: Sequence[ObjectId], cls: type[T]) -> list[T | None]:
        """Immutable objects in the order of their ids, None where there is none; one round trip for what is not cached.

        How long absence is remembered, if at all, is for ``cls`` to say (see ``object_type``).
        """
        found = {}
        for object_id in object_ids:
            value = self._cache.find(self.key, object_id)
            if value is not None:
                found[object_id] = value
        return self._read_cold(object_ids, cls, found)

    def read_many_versioned(self, object_ids: Sequence[ObjectId], cls: type[T]) -> list[Versioned[T] | None]:
        """Updateable objects as they are now, never from the cache."""
        found = {}
        for row, envelope in self._load(list(dict.fromkeys(object_ids))):
            value = decode(row.id, row.type, envelope, cls, realm=self.realm, token=row.token)
            found[row.id] = Versioned(row.id, value, self._token(row), row.created)
        return [found.get(object_id) for object_id in object_ids]

    def find_versioned(self, object_id: ObjectId, cls: type[T]) -> Versioned[T] | None:
        """As ``read_many_versioned``, for one."""
        return self.read_many_versioned([object_id], cls)[0]

    def read_versioned(self, object_id: ObjectId, cls: type[T]) -> Versioned[T]:
        """As ``read_many_versioned``, for one; MissingError when it is not there."""
        seen = self.find_versioned(object_id, cls)
        if seen is None:
            raise MissingError(f"object {id_text(object_id)} ({cls.__name__}) is not in realm {self.realm!r}")
        return seen

    def write(self, objects: Iterable[tuple[ObjectId, StoredObject]]) -> list[ObjectKey]:
        """Write unconditionally, in one round trip, in as many parts as it takes. Returns the keys of the rows written.

        A repeated write is the same write. An UnknownOutcomeError means that some of them may be there.

        raises        RefusedError, before anything is written, for an id that stands there twice, for an updateable object beyond
                      one row and for any object beyond 256 MiB
        """
        batch = self.pack(objects)
        with self._remembering(batch):
            if batch.rows:
                self._backend.write_objects(batch.rows)
        return batch.keys

    def pack(self, objects: Iterable[tuple[ObjectId, StoredObject]]) -> Batch:
        """Objects as the rows that they will be, to be written by ``write_and_advance``. Raises RefusedError as ``write`` does."""
        self.check_write()
        written = list(objects)
        self._bounds.check_once([object_id for object_id, _ in written])
        now = self.clock.now()
        rows: list[ObjectRow] = []
        remembered: list[tuple[ObjectId, StoredObject, int | None]] = []
        others: list[ObjectId] = []
        for object_id, value in written:
            parts = self._rows_of(object_id, value, now)
            rows += parts
            if parts[0].token is None:
                remembered.append((object_id, value, _telling_bytes(parts[0].value)))
            else:
                others.append(object_id)
        return Batch(rows, remembered, others)

    def write_and_advance(self, batch: Batch, seen: Reference, pointer: ObjectId) -> Reference:
        """Write the objects of a batch and make one of them the head: a commit on top, in one round trip where the database can.

        May be repeated as it is after an unclear answer. When it was beaten, the objects may be there: see ``discard``.

        raises        BeatenError when the reference was not as seen; UnknownOutcomeError, which is the caller's to find out
        """
        new = advanced(seen, pointer)
        self._bounds.check_swap(seen, new)
        self.check_write()
        with self._remembering(batch), self._swapping(new):
            self._backend.write_and_swap(batch.rows, seen, new)
        return new

    def discard(self, batch: Batch) -> None:
        """Delete what a beaten ``write_and_advance`` may have left. Only for who knows that it did not happen, and will not."""
        if self._backend.capabilities.atomic_commits:
            self._forget([row.id for row in batch.rows])
        else:
            self.delete_unchanged(batch.keys)

    def insert(self, object_id: ObjectId, value: T) -> Versioned[T]:
        """Create an updateable object; BeatenError when the id is there."""
        self.check_write()
        row = self._single_row(object_id, value)
        try:
            self._backend.insert_object(row)
        finally:
            self._forget([object_id])
        return Versioned(object_id, value, self._token(row), row.created)

    def update(self, seen: Versioned[T], new: T) -> Versioned[T]:
        """Replace what was seen; BeatenError when another was faster."""
        self.check_write()
        row = self._single_row(seen.id, new)
        self._backend.update_object(row, seen.token)
        return Versioned(seen.id, new, self._token(row), row.created)

    def delete(self, seen: Versioned[T]) -> None:
        """Delete what was seen; BeatenError when another was faster."""
        key = ObjectKey(self.key, seen.id, 0, _type_of(seen.value), seen.created, seen.token, 1, 0)
        if not self.delete_unchanged([key]):
            raise BeatenError(f"object {id_text(seen.id)} of realm {self.realm!r} was changed by another")

    def delete_unchanged(self, keys: Sequence[ObjectKey]) -> int:
        """Delete those rows that are still as they were scanned or written; returns how many went."""
        self.check_write()
        self._bounds.check_keys(keys)
        if not keys:
            return 0
        try:
            return self._backend.delete_objects(keys)
        finally:
            self._forget([key.id for key in keys])

    # references

    def find_reference(self, name: str, *, fresh: bool = False) -> Reference | None:
        """The living reference; from the cache within its time to live, unless ``fresh``. Absence is never told from the cache."""
        row = None if fresh else self._cache.find_reference(self.key, name)
        if row is None or row.deleted is not None:
            row = self.find_row(name)
        return None if row is None or row.deleted is not None else row

    def read_reference(self, name: str, *, fresh: bool = False) -> Reference:
        """As ``find_reference``; MissingError when it is not there."""
        reference = self.find_reference(name, fresh=fresh)
        if reference is None:
            raise MissingError(f"reference {name!r} is not in realm {self.realm!r}")
        return reference

    def find_row(self, name: str) -> Reference | None:
        """The reference as it is in the database now, tombstones included."""
        return self.find_rows([name])[0]

    def find_rows(self, names: Sequence[str]) -> list[Reference | None]:
        """The same for many in one round trip, in the order of their names, None where there is none."""
        self._bounds.check_names(names)
        ticket = self._cache.ticket()
        rows = self._backend.read_references(self.key, names) if names else []
        for name, row in zip(names, rows, strict=True):
            if row is None:
                self._cache.forget_reference(self.key, name)
            else:
                self._bounds.check_found(row)
                self._cache.put_reference(row, ticket)
        return rows

    def create_reference(self, name: str, pointer: ObjectId | None = None) -> Reference:
        """Create, or swap over a tombstone; BeatenError when the name is alive.

        The name must stand in its index before. A pointer to an existing commit needs the collector's handshake: use
        ``headwater.commits.create_at``.
        """
        return self.create_reference_as_seen(name, self.find_row(name), pointer)

    def create_references(self, names: Sequence[str]) -> list[Reference]:
        """See that all of these references are there, and return them in the order of their names.

        One round trip when none was there. One that is alive is left alone, and one that was deleted is created again. The names
        must stand in their index before.

        raises        RefusedError for a name that stands there twice; UnknownOutcomeError when the database went away after an
                      unclear answer: some of them may be there, and creating them once more does no harm
        """
        self._bounds.check_names_once(names)
        found: dict[str, Reference] = {}
        unclear: UnknownOutcomeError | None = None
        for _ in range(_TRIES):
            rest = [name for name in names if name not in found]
            if not rest:
                return [found[name] for name in names]
            self.check_write()
            try:
                found.update(self._create_absent(rest))
            except UnknownOutcomeError as fault:
                unclear = fault
            except HeadwaterError as fault:
                if unclear is None:
                    raise
                raise unclear from fault
        if unclear is not None:
            raise unclear
        raise BeatenError(f"references {rest!r} of realm {self.realm!r} are created and deleted by others all the time")

    def create_reference_as_seen(self, name: str, seen: Reference | None, pointer: ObjectId | None = None) -> Reference:
        """Create what was seen to be absent (None) or a tombstone; BeatenError when it is not so any more."""
        if seen is None:
            return self._insert_reference(name, pointer)
        if seen.name != name:
            raise RefusedError(f"reference {name!r} of realm {self.realm!r} is not made of {seen.name!r}")
        if seen.deleted is None:
            raise BeatenError(f"reference {name!r} of realm {self.realm!r} is there already")
        return self._settle(seen, recreated(seen, pointer, since=self._moves_since()))

    def advance_reference(self, seen: Reference, pointer: ObjectId) -> Reference:
        """A commit on top. The outcome is the caller's to find out: UnknownOutcomeError is passed on."""
        return self.swap(seen, advanced(seen, pointer))

    def move_reference(self, seen: Reference, pointer: ObjectId) -> Reference:
        """Onto another commit than one on top; what it leaves is recorded."""
        return self._leave(seen, lambda now: moved(seen, pointer, now=now, since=self._moves_since()))

    def record_move(self, seen: Reference, left: ObjectId) -> Reference:
        """Note that ``left`` was HEAD until now."""
        return self._settle(seen, with_move(seen, left, now=self.clock.now(), since=self._moves_since()))

    def raise_version(self, seen: Reference) -> Reference:
        """Beat everyone who saw this version; the pointer stays."""
        return self._settle(seen, raised(seen))

    def delete_reference(self, seen: Reference) -> Reference:
        """Leave a tombstone."""
        return self._leave(seen, lambda now: buried(seen, now=now))

    def bury_reference(self, name: str) -> Reference:
        """Put a tombstone where a listed name has no row; BeatenError when it has one."""
        return self._insert_reference(name, None, deleted=self.clock.now())

    def remove_tombstone(self, seen: Reference) -> None:
        """Remove the row; BeatenError when it changed, for example because the reference was created again."""
        if seen.deleted is None:
            raise RefusedError(f"reference {seen.name!r} of realm {self.realm!r} is alive: delete it first")
        self._bounds.check_row(seen)
        self.check_write()
        try:
            self._backend.remove_reference(seen)
        finally:
            self._forget_reference(seen.name)

    def swap(self, seen: Reference, new: Reference) -> Reference:
        """One compare-and-swap of a whole row. BeatenError when it was not as seen; UnknownOutcomeError is passed on."""
        self._bounds.check_swap(seen, new)
        self.check_write()
        with self._swapping(new):
            self._backend.swap_reference(seen, new)
        return new

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
        """Delete up to ``limit`` rows, whatever they are; returns how many went, 0 when none is left. For purging."""
        if limit < 1:
            raise RefusedError(f"realm {self.realm!r}: {limit} rows cannot be deleted, only 1 or more at a time")
        self.check_write()
        try:
            if self._backend.capabilities.bulk_realm_deletion:
                return self._backend.delete_realm(self.key, limit)
            return self._scans.delete(limit)
        finally:
            self._shared.clear()
            self._cache.clear()

    # inside

    @contextmanager
    def _remembering(self, batch: Batch) -> Iterator[None]:
        """Around a write of the batch: who reads meanwhile what was there before is not believed."""
        ticket = self._shared.ticket()
        try:
            yield
        except HeadwaterError:
            self._forget([row.id for row in batch.rows])
            raise
        self._shared.put(self.key, batch.remembered, ticket, is_written=True)
        if batch.others:
            self._shared.forget(self.key, batch.others)
        if self._cache is not self._shared:
            self._cache.forget(self.key, [row.id for row in batch.rows])

    @contextmanager
    def _swapping(self, new: Reference) -> Iterator[None]:
        """Around a swap."""
        self._forget_reference(new.name)
        ticket = self._shared.ticket()
        try:
            yield
        except BaseException:
            self._forget_reference(new.name)  # again: a reader may have brought it back meanwhile, and it may be outdated now
            raise
        self._shared.put_reference(new, ticket, is_written=True)

    def _read_cold(self, object_ids: Sequence[ObjectId], cls: type[T], found: dict[ObjectId, StoredObject]) -> list[T | None]:
        within = cls.absent_seconds if self._cache is self._shared else 0.0
        absent = [
            object_id
            for object_id in dict.fromkeys(object_ids)
            if object_id not in found and not (within and self._shared.is_absent(self.key, object_id, within_seconds=within))
        ]
        if absent:
            ticket = self._cache.ticket()
            immutable: list[tuple[ObjectId, StoredObject, int | None]] = []
            realm = self.realm
            for row, envelope in self._load(absent):
                object_id, token = row.id, row.token
                value = found[object_id] = decode(object_id, row.type, envelope, StoredObject, realm=realm, token=token)
                if token is None and not value.updateable:
                    immutable.append((object_id, value, _telling_bytes(envelope)))
            self._cache.put(self.key, immutable, ticket)
            if within:
                for object_id in absent:
                    if object_id not in found:
                        self._shared.put_absence(self.key, object_id, ticket, seconds=within)
        answers = []
        for object_id in object_ids:
            answer = found.get(object_id)
            answers.append(answer if isinstance(answer, cls) else self._as(object_id, answer, cls))
        return answers

    def _load(self, object_ids: Sequence[ObjectId]) -> list[Loaded]:
        self._bounds.check_ids(object_ids)
        return load(self._backend, self.realm, self.key, object_ids) if object_ids else []

    def _forget(self, object_ids: list[ObjectId]) -> None:
        self._shared.forget(self.key, object_ids)
        if self._cache is not self._shared:
            self._cache.forget(self.key, object_ids)

    def _forget_reference(self, name: str) -> None:
        self._shared.forget_reference(self.key, name)
        if self._cache is not self._shared:
            self._cache.forget_reference(self.key, name)

    def _as(self, object_id: ObjectId, value: StoredObject | None, cls: type[T]) -> T | None:
        if value is None or isinstance(value, cls):
            return value
        raise UnreadableError(
            f"object {id_text(object_id)} in realm {self.realm!r} is a {type(value).__name__}, not a {cls.__name__}"
        )

    def _token(self, row: ObjectRow) -> str:
        if row.token is None:
            raise UnreadableError(f"object {id_text(row.id)} of type {row.type!r} in realm {self.realm!r} has no version token")
        return row.token

    def _rows_of(self, object_id: ObjectId, value: StoredObject, now: Micros) -> list[ObjectRow]:
        name, envelope = encode(object_id, value)
        token = _new_token() if _is_updateable(value) else None
        if len(envelope) <= ROW_BYTES:
            row = ObjectRow(realm=self.key, id=object_id, part=0, type=name, value=envelope, created=now, token=token, parts=1)
            return [row]
        parts = parts_of(envelope)
        if token is not None:
            raise self._too_large(object_id, name, len(envelope))
        count = len(parts)
        return [
            ObjectRow(realm=self.key, id=object_id, part=part, type=name, value=body, created=now, token=token, parts=count)
            for part, body in enumerate(parts)
        ]

    def _single_row(self, object_id: ObjectId, value: StoredObject) -> ObjectRow:
        self._bounds.check_ids((object_id,))
        if not _is_updateable(value):
            raise RefusedError(
                f"objects of type {_type_of(value)!r} are immutable: write them, do not insert or update them"
                f" (object {id_text(object_id)} of realm {self.realm!r})"
            )
        return self._rows_of(object_id, value, self.clock.now())[0]

    def _too_large(self, object_id: ObjectId, name: str, size: int) -> RefusedError:
        return RefusedError(
            f"object {id_text(object_id)} of type {name!r} in realm {self.realm!r} has {size} bytes;"
            f" an updateable object may have {ROW_BYTES}"
        )

    def _insert_reference(self, name: str, pointer: ObjectId | None, deleted: Micros | None = None) -> Reference:
        self.check_write()
        row = self._new_row(name, pointer, deleted)
        ticket = self._shared.ticket()
        try:
            self._backend.create_reference(row)
        except UnknownOutcomeError as unclear:
            self._create_again(row, unclear)
        self._shared.put_reference(row, ticket, is_written=True)
        return row

    def _new_row(self, name: str, pointer: ObjectId | None = None, deleted: Micros | None = None) -> ReferenceRow:
        self._bounds.check_names((name,))
        if pointer is not None:
            self._bounds.check_ids((pointer,))
        return ReferenceRow(
            realm=self.key, name=name, pointer=pointer, version=self.new_id(), created=self.clock.now(), deleted=deleted
        )

    def _create_absent(self, names: Sequence[str]) -> dict[str, Reference]:
        """Those that are there after one try. Whose they are is all the same, so an unclear answer asks only for another try."""
        rows = [self._new_row(name) for name in names]
        ticket = self._shared.ticket()
        made = self._backend.create_references(rows)
        found = {row.name: row for row, is_made in zip(rows, made, strict=True) if is_made}
        for row in found.values():
            self._shared.put_reference(row, ticket, is_written=True)
        rest = [name for name in names if name not in found]
        for stored in self.find_rows(rest):
            if stored is not None:
                try:
                    found[stored.name] = self.create_reference_as_seen(stored.name, stored) if stored.deleted else stored
                except BeatenError:
                    continue  # another created it again: it is found by the next try
        return found

    def _create_again(self, row: ReferenceRow, unclear: UnknownOutcomeError) -> None:
        """After an unclear answer: the version is an id of ours, so a row that carries it is ours."""
        try:
            self._backend.create_reference(row)
        except BeatenError as beaten:
            stored = self._look_again(row.name, unclear)
            if stored == row:
                return
            if stored is None or stored.created == row.created:
                raise unclear from None  # perhaps ours, and changed by others since
            raise beaten from None
        except HeadwaterError as fault:
            raise unclear from fault

    def _look_again(self, name: str, unclear: UnknownOutcomeError) -> Reference | None:
        try:
            return self.find_row(name)
        except HeadwaterError as fault:
            raise unclear from fault

    def _settle(self, seen: Reference, new: Reference) -> Reference:
        """A swap that may be repeated after an unclear answer, because doing it twice would say the same."""
        try:
            return self.swap(seen, new)
        except UnknownOutcomeError as unclear:
            try:
                return self.swap(seen, new)
            except BeatenError as beaten:
                stored = self._look_again(seen.name, unclear)
                if stored == new:
                    return new
                if stored is not None and stored.version == new.version:
                    raise beaten from None  # another took the version that ours would have had
                raise unclear from None
            except HeadwaterError as fault:
                raise unclear from fault

    def _leave(self, seen: Reference, make: Callable[[Micros], Reference]) -> Reference:
        """Swap away from a pointer, with the time. A swap that ended long after that time has the time now recorded as well."""
        started = self.clock.monotonic()
        done = self._settle(seen, make(self.clock.now()))
        if seen.pointer is None or self.clock.monotonic() - started <= self.settings.commit_timeout_seconds:
            return done
        found: Reference | None = done
        while found is not None:
            try:
                return self.record_move(found, seen.pointer)
            except BeatenError:
                found = self.find_row(seen.name)
        return done

    def _moves_since(self) -> Micros:
        """Moves before this are of no interest to any collector, however its clock differs from ours."""
        grace = max(self.settings.reader_grace_seconds, self.settings.writer_grace_seconds)
        slack = self.settings.clock_bound_seconds + self.settings.commit_timeout_seconds
        return Micros(self.clock.now() - round((grace + slack) * 1_000_000))


def _telling_bytes(envelope: bytes) -> int | None:
    """An envelope's size, where it tells what the object takes in memory."""
    return None if is_compressed(envelope) else len(envelope)


def _new_token() -> str:
    return secrets.token_hex(8)


def _is_updateable(value: StoredObject) -> bool:
    return value.is_updateable if isinstance(value, UnknownObject) else value.updateable


def _type_of(value: StoredObject) -> str:
    return value.name if isinstance(value, UnknownObject) else value.type_name
