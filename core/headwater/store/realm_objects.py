"""Typed objects of one realm: reading immutable objects in bulk through the cache, and updateable objects by version.

Also converts objects to rows and back (large objects are cut into parts), and reads an object's pointers while decoding no more of it
than that takes.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import NamedTuple, TypeVar

from msgspec.structs import replace

from headwater.clock import Micros
from headwater.errors import CollisionError, CorruptionError, NotFoundError, RefusedError, SwapConflictError
from headwater.store.backend import ROW_BYTES, Backend, ObjectKey, ObjectRow
from headwater.store.cache import CacheTicket
from headwater.store.ids import ObjectId, RealmId, RealmKey, id_text, node_of
from headwater.store.realm_refs import RealmReferences
from headwater.store.stored_objects import (
    MOST_PARTS,
    StoredObject,
    UnknownObject,
    Versioned,
    decode_object,
    encode_object,
    is_whole,
    object_parts,
    pointing_number,
    registered_type,
)

T = TypeVar("T", bound=StoredObject)
A = TypeVar("A")
_realm_of, _id_of, _row_of = attrgetter("realm"), attrgetter("id"), attrgetter("id", "part")


class ObjectBatch(NamedTuple):
    """Objects as rows, ready to be written, perhaps more than once. Made by ``RealmStore.pack``."""

    rows: list[ObjectRow]
    remembered: list[tuple[ObjectId, StoredObject]]
    """The immutable objects, to be cached."""
    others: list[ObjectId]

    @property
    def ids(self) -> list[ObjectId]:
        """The object id of every row; an object of several parts appears once per part."""
        return [row.id for row in self.rows]

    @property
    def keys(self) -> list[ObjectKey]:
        return [
            ObjectKey(row.realm, row.id, row.part, row.type, row.created, row.token, row.parts, len(row.value))
            for row in self.rows
        ]


class RealmObjects(RealmReferences):
    """A handle on one realm: its references and objects. ``RealmStore`` adds what concerns both."""

    def find_object(self, object_id: ObjectId, cls: type[T]) -> T | None:
        """Read one immutable object, from the cache if possible; None when it does not exist."""
        value = self._cache.find_object(self.key, object_id)
        if isinstance(value, cls):
            return value
        return self._read_cold([object_id], cls, {} if value is None else {object_id: value})[0]

    def read_object(self, object_id: ObjectId, cls: type[T]) -> T:
        """Read one immutable object, from the cache if possible; NotFoundError when it does not exist."""
        value = self.find_object(object_id, cls)
        if value is None:
            raise NotFoundError(f"object {id_text(object_id)} ({cls.__name__}) is not in realm {self.realm!r}")
        return value

    def find_derived(self, object_id: ObjectId, cls: type[A]) -> A | None:
        """What ``keep_derived`` has kept, if it is still there; nothing is read, so ask for the object first."""
        value = self._cache.derived.find(self.key, object_id)
        return value if isinstance(value, cls) else None

    def keep_derived(self, object_id: ObjectId, value: object, *, weight_bytes: int) -> None:
        """Keep what was worked out from an immutable object, and depends on nothing else, for as long as there is room."""
        self._cache.derived.keep(self.key, object_id, value, weight_bytes)

    def read_many(self, object_ids: Sequence[ObjectId], cls: type[T]) -> list[T | None]:
        """Immutable objects in the order of their ids, None where there is none; one round trip for what is not cached.

        ``cls`` determines how long absence is cached, if at all (see ``object_type``).
        """
        values = {}
        for object_id in object_ids:
            value = self._cache.find_object(self.key, object_id)
            if value is not None:
                values[object_id] = value
        return self._read_cold(object_ids, cls, values)

    def read_pointing(self, object_ids: Sequence[ObjectId]) -> list[Pointers | None]:
        """Read the pointers of objects of any type, None where there is none; one round trip, and a second one for objects in parts.

        For a walk over everything: objects whose type has no pointers are not decoded, nor is their checksum verified, and nothing
        new is cached.
        """
        pointers: dict[ObjectId, Pointers] = {}
        for object_id in object_ids:
            value = self._cache.find_object(self.key, object_id)
            if value is not None:
                pointers[object_id] = pointers_of(value)
        absent = [object_id for object_id in dict.fromkeys(object_ids) if object_id not in pointers]
        if absent:
            self._check_ids(absent)
            several: list[ObjectId] = []
            for row in self._backend.read_objects(self.key, [(object_id, 0) for object_id in absent]):
                if row is None:
                    continue
                if row.parts > 1 and not is_leaf(row.type):
                    several.append(row.id)
                else:
                    pointers[row.id] = pointers_in(row, row.value, realm=self.realm)
            for row, envelope in self._load(several):
                pointers[row.id] = pointers_in(row, envelope, realm=self.realm)
        return [pointers.get(object_id) for object_id in object_ids]

    def read_many_versioned(self, object_ids: Sequence[ObjectId], cls: type[T]) -> list[Versioned[T] | None]:
        """Read updateable objects from the database, never from the cache."""
        versioned = {}
        for row, envelope in self._load(list(dict.fromkeys(object_ids))):
            value = decode_object(row.id, row.type, envelope, cls, realm=self.realm, token=row.token)
            versioned[row.id] = Versioned(row.id, value, self._token(row), row.created)
        return [versioned.get(object_id) for object_id in object_ids]

    def read_each(self, object_ids: Sequence[ObjectId], cls: type[T]) -> list[T | CorruptionError | None]:
        """Read immutable objects like ``read_many``; an unreadable one yields its error, at the cost of further round trips."""
        return _apart(object_ids, lambda ids: self.read_many(ids, cls))

    def read_each_versioned(self, object_ids: Sequence[ObjectId], cls: type[T]) -> list[Versioned[T] | CorruptionError | None]:
        """Read updateable objects like ``read_many_versioned``; an unreadable one yields its error."""
        return _apart(object_ids, lambda ids: self.read_many_versioned(ids, cls))

    def find_versioned(self, object_id: ObjectId, cls: type[T]) -> Versioned[T] | None:
        """Read one updateable object from the database; None when it does not exist."""
        return self.read_many_versioned([object_id], cls)[0]

    def read_versioned(self, object_id: ObjectId, cls: type[T]) -> Versioned[T]:
        """Read one updateable object from the database; NotFoundError when it does not exist."""
        seen = self.find_versioned(object_id, cls)
        if seen is None:
            raise NotFoundError(f"object {id_text(object_id)} ({cls.__name__}) is not in realm {self.realm!r}")
        return seen

    def write_objects(self, objects: Iterable[tuple[ObjectId, StoredObject]], *, are_new: bool = False) -> list[ObjectKey]:
        """Write unconditionally, in one round trip, in as many parts as it takes. Returns the keys of the rows written.

        A repeated write is the same write. An UnknownOutcomeError means that some of them may be there.

        are_new       their ids were made for them; CollisionError when one exists with other bytes: then this process stops making
                      ids with its node
        raises        RefusedError, before anything is written, for an id that appears twice, for an updateable object beyond
                      one row and for any object beyond 256 MiB
        """
        batch = self.pack(objects)
        ticket = self._shared.ticket()
        try:
            if batch.rows:
                self._backend.write_objects(batch.rows, are_new=are_new)
        except BaseException as fault:
            if isinstance(fault, CollisionError):
                self._leave_node(fault, batch)
            self._forget(batch.ids)
            raise
        self._remember(batch, ticket)
        return batch.keys

    def pack(self, objects: Iterable[tuple[ObjectId, StoredObject]]) -> ObjectBatch:
        """Encode objects as rows, to be written by ``write_and_advance``. Raises RefusedError as ``write_objects`` does."""
        self.check_write()
        written = list(objects)
        object_ids = [object_id for object_id, _ in written]
        self._check_ids(object_ids)
        self._check_once(object_ids, "object")
        now = self.clock.now()
        rows: list[ObjectRow] = []
        remembered: list[tuple[ObjectId, StoredObject]] = []
        others: list[ObjectId] = []
        for object_id, value in written:
            parts = self._rows_of(object_id, value, now)
            rows += parts
            if parts[0].token is None:
                remembered.append((object_id, value))
            else:
                others.append(object_id)
        return ObjectBatch(rows, remembered, others)

    def insert_object(self, object_id: ObjectId, value: T) -> Versioned[T]:
        """Create an updateable object; SwapConflictError when the id exists."""
        self.check_write()
        row = self._single_row(object_id, value)
        try:
            self._backend.insert_object(row)
        finally:
            self._forget([object_id])
        return Versioned(object_id, value, self._token(row), row.created)

    def update_object(self, seen: Versioned[T], new: T) -> Versioned[T]:
        """Replace the version that was read; SwapConflictError when it has changed since. Keeps fields that only a later release knows."""
        self.check_write()
        if new.unknown is None and seen.value.unknown is not None and type(new) is type(seen.value):
            new = replace(new, unknown=seen.value.unknown)
        row = self._single_row(seen.id, new)
        self._backend.update_object(row, seen.token)
        return Versioned(seen.id, new, self._token(row), row.created)

    def confirm_object(self, seen: Versioned[T]) -> Versioned[T]:
        """Make what was read of an updateable object durable: write it once more, under a new token; see ``confirm_reference``."""
        return self.update_object(seen, seen.value)

    def delete_object(self, seen: Versioned[T]) -> None:
        """Delete the version that was read; SwapConflictError when it has changed since."""
        key = ObjectKey(self.key, seen.id, 0, _type_of(seen.value), seen.created, seen.token, 1, 0)
        if not self.delete_unchanged([key]):
            raise SwapConflictError(f"object {id_text(seen.id)} of realm {self.realm!r} was changed by another")

    def delete_unchanged(self, keys: Sequence[ObjectKey]) -> int:
        """Delete the rows that are unchanged since they were scanned or written. Returns how many were deleted."""
        self.check_write()
        self._check_keys(keys)
        if not keys:
            return 0
        try:
            return self._backend.delete_objects(keys)
        finally:
            self._forget([key.id for key in keys])

    def is_intact(self, object_id: ObjectId) -> bool:
        """Whether an object exists with the bytes that were written, or in a format that only a later release knows."""
        try:
            loaded = self._load([object_id]) if object_id else []
        except CorruptionError:
            return False
        return bool(loaded) and all(is_whole(row.id, row.type, envelope) for row, envelope in loaded)

    def raw_rows(self, object_id: ObjectId) -> list[ObjectRow]:
        """The rows of an object as stored, without decoding them; only those that the backend can return."""
        rows: list[ObjectRow] = []
        while True:
            try:
                [row] = self._backend.read_objects(self.key, [(object_id, len(rows))])
            except CorruptionError:
                return rows
            if row is None or len(rows) >= MOST_PARTS:
                return rows
            rows.append(row)

    def _check_keys(self, keys: Sequence[ObjectKey]) -> None:
        if not set(map(_realm_of, keys)) <= {self.key}:
            foreign = next(key for key in keys if key.realm != self.key)
            self._check_realm(foreign.realm, f"object {foreign.id}")
        self._check_ids(list(map(_id_of, keys)))
        self._check_once(list(map(_row_of, keys)), "row (id, part)")

    def _leave_node(self, fault: CollisionError, batch: ObjectBatch) -> None:
        """Stop using the node of a colliding id; the nodes of all written ids where the database does not say which one collided."""
        for node in {node_of(taken) for taken in ([ObjectId(fault.object_id)] if fault.object_id else batch.ids)}:
            self.store.ids.leave(node)

    def _remember(self, batch: ObjectBatch, ticket: CacheTicket) -> None:
        """Cache the objects just written. Answers that were read under an older ticket are refused from now on."""
        self._shared.put_object(self.key, batch.remembered, ticket, is_written=True)
        if batch.others:
            self._shared.forget_object(self.key, batch.others)
        if self._cache is not self._shared:
            self._cache.forget_object(self.key, batch.ids)

    def _read_cold(self, object_ids: Sequence[ObjectId], cls: type[T], values: dict[ObjectId, StoredObject]) -> list[T | None]:
        within = cls.absent_seconds if self._cache is self._shared else 0.0
        absent = [
            object_id
            for object_id in dict.fromkeys(object_ids)
            if object_id not in values and not (within and self._shared.is_absent(self.key, object_id, within_seconds=within))
        ]
        if absent:
            ticket = self._cache.ticket()
            immutable: list[tuple[ObjectId, StoredObject]] = []
            realm = self.realm
            for row, envelope in self._load(absent):
                object_id, token = row.id, row.token
                value = values[object_id] = decode_object(object_id, row.type, envelope, StoredObject, realm=realm, token=token)
                if token is None and not value.updateable:
                    immutable.append((object_id, value))
            self._cache.put_object(self.key, immutable, ticket)
            if within:
                for object_id in absent:
                    if object_id not in values:
                        self._shared.put_absence(self.key, object_id, ticket, seconds=within)
        answers = []
        for object_id in object_ids:
            answer = values.get(object_id)
            answers.append(answer if isinstance(answer, cls) else self._as(object_id, answer, cls))
        return answers

    def _load(self, object_ids: Sequence[ObjectId]) -> list[Loaded]:
        self._check_ids(object_ids)
        return load_object(self._backend, self.realm, self.key, object_ids) if object_ids else []

    def _forget(self, object_ids: list[ObjectId]) -> None:
        self._shared.forget_object(self.key, object_ids)
        if self._cache is not self._shared:
            self._cache.forget_object(self.key, object_ids)

    def _as(self, object_id: ObjectId, value: StoredObject | None, cls: type[T]) -> T | None:
        if value is None or isinstance(value, cls):
            return value
        raise CorruptionError(
            f"object {id_text(object_id)} in realm {self.realm!r} is a {type(value).__name__}, not a {cls.__name__}"
        )

    def _token(self, row: ObjectRow) -> str:
        if row.token is None:
            raise CorruptionError(f"object {id_text(row.id)} of type {row.type!r} in realm {self.realm!r} has no version token")
        return row.token

    def _rows_of(self, object_id: ObjectId, value: StoredObject, now: Micros) -> list[ObjectRow]:
        name, envelope = encode_object(object_id, value)
        token = _new_token() if _is_updateable(value) else None
        if len(envelope) <= ROW_BYTES:
            row = ObjectRow(realm=self.key, id=object_id, part=0, type=name, value=envelope, created=now, token=token, parts=1)
            return [row]
        parts = object_parts(envelope)
        if token is not None:
            raise self._too_large(object_id, name, len(envelope))
        count = len(parts)
        return [
            ObjectRow(realm=self.key, id=object_id, part=part, type=name, value=body, created=now, token=token, parts=count)
            for part, body in enumerate(parts)
        ]

    def _single_row(self, object_id: ObjectId, value: StoredObject) -> ObjectRow:
        self._check_ids((object_id,))
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


def _apart(object_ids: Sequence[ObjectId], read: Callable[[Sequence[ObjectId]], list[A]]) -> list[A | CorruptionError]:
    """Read in one call, or by halves when that fails: a backend may refuse a whole answer because of one foreign row."""
    try:
        return [*read(object_ids)]
    except CorruptionError as fault:
        if len(object_ids) == 1:
            return [fault]
    half = len(object_ids) // 2
    return _apart(object_ids[:half], read) + _apart(object_ids[half:], read)


def _new_token() -> str:
    return secrets.token_hex(8)


def _is_updateable(value: StoredObject) -> bool:
    return value.is_updateable if isinstance(value, UnknownObject) else value.updateable


def _type_of(value: StoredObject) -> str:
    return value.name if isinstance(value, UnknownObject) else value.type_name


_LOOKS = 3


Loaded = tuple[ObjectRow, bytes]
"""Part 0 of an object, and the bytes of all its parts."""


def load_object(backend: Backend, realm: RealmId, key: RealmKey, object_ids: Sequence[ObjectId]) -> list[Loaded]:
    """Load the objects that exist, in no order: one round trip, and a second one if some have several parts.

    Between the two, another process may rewrite or delete an object::

        reader                    writer
        part 0 of 3
                                  the same object, 2 parts
        parts 1 and 2: 1 is new, 2 is missing

    So objects whose parts do not fit together are read again.

    raises        CorruptionError when a part stays missing, or a row's number of parts is impossible. The checksum then decides
                  whether the parts belong together
    """
    loaded: list[Loaded] = []
    wanted: Sequence[ObjectId] = object_ids
    for look in range(1, _LOOKS + 1):
        several: list[ObjectRow] = []
        for row in backend.read_objects(key, [(object_id, 0) for object_id in wanted]):
            if row is not None:
                if row.parts == 1:
                    loaded.append((row, row.value))
                else:
                    several.append(row)
        if not several:
            break
        torn = _put_together(backend, realm, key, several, loaded, is_last=look == _LOOKS)
        if not torn:
            break
        wanted = torn
    return loaded


def _put_together(
    backend: Backend, realm: RealmId, key: RealmKey, rows: Sequence[ObjectRow], loaded: list[Loaded], *, is_last: bool
) -> list[ObjectId]:
    """Append the other parts. Returns the ids of objects that must be read again."""
    for row in rows:
        if not 1 < row.parts <= MOST_PARTS:
            raise CorruptionError(f"{_where(row, realm)}: it cannot have {row.parts} parts, the row was altered")
    others = [(row.id, part) for row in rows for part in range(1, row.parts)]
    parts = dict(zip(others, backend.read_objects(key, others), strict=True))
    torn = []
    for row in rows:
        pieces = [parts[row.id, part] for part in range(1, row.parts)]
        present = [piece for piece in pieces if piece is not None]
        is_whole = len(present) == len(pieces)
        if is_last and not is_whole:
            raise CorruptionError(f"{_where(row, realm)}: one of its {row.parts} parts is missing")
        if is_last or (is_whole and all(piece.created == row.created for piece in present)):
            loaded.append((row, b"".join((row.value, *(piece.value for piece in present)))))
        else:
            torn.append(row.id)
    return torn


def _where(row: ObjectRow, realm: RealmId) -> str:
    return f"object {id_text(row.id)} of type {row.type!r} in realm {realm!r}"


class Pointers(NamedTuple):
    """An object as a walk sees it.

    targets       the objects that it points to; None when this release cannot tell
    is_leaf       nothing of its type ever points to anything
    bytes         of its first row, about; 0 when it came from the cache
    why           the reason why this release cannot tell; otherwise empty
    """

    type: str
    targets: Sequence[ObjectId] | None
    is_leaf: bool = False
    bytes: int = 0
    why: str = ""


def is_leaf(type_name: str) -> bool:
    """Whether objects of a type never point to others. False for unknown types."""
    cls = registered_type(type_name)
    return cls is not None and cls.points_to is StoredObject.points_to


def unknown_pointers_reason(value: StoredObject) -> str:
    """The reason why this release cannot tell an object's pointers, as the end of a sentence; empty when it can."""
    if isinstance(value, UnknownObject):
        return _unknown_type(value.name)
    if value.unknown is not None and value.unknown.pointing > value.pointing:
        return _newer(value.type_name)
    return ""


def pointers_of(value: StoredObject) -> Pointers:
    name = value.name if isinstance(value, UnknownObject) else value.type_name
    if why := unknown_pointers_reason(value):
        return Pointers(name, None, why=why)
    return Pointers(name, tuple(value.points_to()), type(value).points_to is StoredObject.points_to)


def pointers_in(row: ObjectRow, envelope: bytes, *, realm: str) -> Pointers:
    """The pointers of a stored object; CorruptionError when an object that may have pointers cannot be decoded."""
    cls = registered_type(row.type)
    if cls is None:
        return Pointers(row.type, None, bytes=len(row.value), why=_unknown_type(row.type))
    if pointing_number(row.value) > cls.pointing:
        return Pointers(row.type, None, bytes=len(row.value), why=_newer(row.type))
    if cls.points_to is StoredObject.points_to:
        return Pointers(row.type, (), is_leaf=True, bytes=len(row.value))
    value = decode_object(row.id, row.type, envelope, StoredObject, realm=realm, token=row.token)
    return Pointers(row.type, tuple(value.points_to()), bytes=len(row.value))


def _unknown_type(name: str) -> str:
    return f"has the type {name!r}, which this release does not know"


def _newer(name: str) -> str:
    return f"of type {name!r} was written by a later release, and may point to more than this release knows"
