"""Walk everything that a commit reaches: faults are gathered with the keys that lead to them, and none hides another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from headwater.catalogs import IDS
from headwater.catalogs.stored_metadata import IcebergMetadata
from headwater.commits import Commit
from headwater.errors import CorruptionError
from headwater.gc.live_set import LiveSet
from headwater.gc.retention import KeepReason
from headwater.index import IndexValue, Stripe, StripeList
from headwater.store import ObjectId, RealmStore, StoredObject, id_text, unknown_pointers_reason

_BATCH = 100
_USES = 20
"""The number of keys reported for one lost object, at most."""


@dataclass(frozen=True, slots=True)
class ObjectFault:
    """A needed object that cannot be read. ``text`` is a whole sentence; ``is_unknown``: a later release wrote it, and can read it."""

    object_id: ObjectId
    text: str
    is_unknown: bool = False


@dataclass(frozen=True, slots=True)
class ObjectUse:
    """The index key under which a commit holds an object; an empty key means a part of the index itself.

    of            for an index of a content's metadata: the key of that content
    """

    index: str
    key: bytes
    of: bytes = b""


class FaultWalker:
    """Walks from commits downwards. Objects that were found sound are not read again, however many commits share them.

    Memory: nine bytes an object, and more for those that lead to faults.
    """

    def __init__(self, rows: RealmStore) -> None:
        self._rows = rows
        self._met = LiveSet(rows.settings.mark_exact_bytes)
        self._tainted: set[ObjectId] = set()
        """Visited objects that cannot be read, or that lead to one. They are reported again when another commit reaches them."""

    def faults_below(self, root: ObjectId) -> tuple[list[ObjectFault], Mapping[ObjectId, frozenset[ObjectId]]]:
        """What a commit reaches and cannot be read, the commit itself included; and what leads there: from each object on a way
        to a fault, the next ones on that way.
        """
        faults: dict[ObjectId, ObjectFault] = {}
        inner: list[ObjectId] = []
        again: set[ObjectId] = set()
        waiting = self._new([root], again)
        while waiting:
            batch, waiting = waiting[-_BATCH:], waiting[:-_BATCH]
            for object_id, value in read_with_faults(self._rows, batch):
                targets = _targets(self._rows, object_id, value)
                if isinstance(targets, ObjectFault):
                    faults[object_id] = targets
                elif targets:
                    inner.append(object_id)
                    waiting += self._new(targets, again)
        ways = self._ways(inner, set(faults)) if faults else {}
        self._tainted |= faults.keys() | ways.keys()
        return list(faults.values()), ways

    def _new(self, targets: Sequence[ObjectId], again: set[ObjectId]) -> list[ObjectId]:
        """The ids to walk: visited for the first time, or tainted and new in this walk."""
        fresh = self._met.unmarked(targets)
        self._met.mark_many(fresh, KeepReason.HEAD)
        repeated = self._tainted.intersection(targets) - again if self._tainted else set[ObjectId]()
        again |= repeated
        return [*fresh, *repeated]

    def _ways(self, inner: Sequence[ObjectId], bad: set[ObjectId]) -> dict[ObjectId, frozenset[ObjectId]]:
        """The objects that lead to a bad one. Takes as many rounds as there are levels."""
        ways: dict[ObjectId, frozenset[ObjectId]] = {}
        while True:
            goals = bad | ways.keys()
            leading = dict(self._leading(inner, goals))
            if leading == ways:
                return ways
            ways = leading

    def _leading(self, inner: Sequence[ObjectId], goals: set[ObjectId]) -> Iterator[tuple[ObjectId, frozenset[ObjectId]]]:
        for start in range(0, len(inner), _BATCH):
            for object_id, value in read_with_faults(self._rows, inner[start : start + _BATCH]):
                if isinstance(value, StoredObject):
                    towards = goals.intersection(value.points_to())
                    if towards:
                        yield object_id, frozenset(towards)


def read_with_faults(rows: RealmStore, ids: Sequence[ObjectId]) -> list[tuple[ObjectId, StoredObject | CorruptionError | None]]:
    """Read objects by id; each with the object, the reason why it cannot be read, or None where it is missing."""
    return list(zip(ids, rows.read_each(ids, StoredObject), strict=True))


def uses_below(
    rows: RealmStore, root: ObjectId, bad: ObjectId, ways: Mapping[ObjectId, frozenset[ObjectId]]
) -> list[ObjectUse]:
    """The keys under which a commit holds an unreadable object, in no order; at most twenty."""
    uses: dict[ObjectUse, None] = {}
    waiting: list[tuple[ObjectId, ObjectUse]] = [(root, ObjectUse("", b""))]
    walked = {(root, "", b"")}
    while waiting and len(uses) < _USES:
        object_id, way = waiting.pop()
        [(_, value)] = read_with_faults(rows, [object_id])
        if not isinstance(value, StoredObject):
            continue
        for use, target in held_objects(value, way):
            if target == bad:
                uses[use] = None
            elif target in ways and (target, use.index, use.of) not in walked:
                walked.add((target, use.index, use.of))
                waiting.append((target, use))
    return list(uses)[:_USES]


def held_objects(value: StoredObject, way: ObjectUse) -> Iterator[tuple[ObjectUse, ObjectId]]:
    """The objects that an object points to, each with the index and the key that hold it.

    way           how the object itself is held
    """
    if isinstance(value, Commit):
        for name, container in value.indexes.items():
            yield from _pairs(ObjectUse(name, b""), container.page.between(0, container.page.count))
            yield from ((ObjectUse(name, b""), target) for target in container.children.object_ids)
        if value.depth:
            for operation in value.operations:
                if operation.object_id is not None:
                    yield _use(ObjectUse(operation.index, b""), operation.key, operation.data), operation.object_id
            yield from ((ObjectUse("", b""), target) for target in value.beneath())
        return
    inner = ObjectUse(way.index, b"", way.of)
    if isinstance(value, IcebergMetadata):
        yield from _pairs(inner, value.pieces.page.between(0, value.pieces.page.count))
        yield from ((inner, target) for target in value.pieces.children.object_ids)
    elif isinstance(value, Stripe):
        yield from _pairs(inner, value.page.between(0, value.page.count))
    elif isinstance(value, StripeList):
        yield from _pairs(inner, value.page.between(0, value.page.count))
        yield from ((inner, target) for target in value.children.object_ids)
    else:
        yield from ((inner, target) for target in value.points_to())


def _pairs(inner: ObjectUse, entries: Sequence[tuple[bytes, IndexValue | None]]) -> Iterator[tuple[ObjectUse, ObjectId]]:
    for key, value in entries:
        if value is not None and value.object_id is not None:
            yield _use(inner, bytes(key), bytes(value.data)), value.object_id


def _use(inner: ObjectUse, key: bytes, data: bytes) -> ObjectUse:
    """The object that an entry of an index holds. In ``ids`` it is a content's metadata, whose pieces lie in an index below."""
    return ObjectUse(inner.index, b"", data) if inner.index == IDS and not inner.of else ObjectUse(inner.index, key, inner.of)


def _targets(
    rows: RealmStore, object_id: ObjectId, value: StoredObject | CorruptionError | None
) -> Sequence[ObjectId] | ObjectFault:
    if value is None:
        return ObjectFault(object_id, f"object {id_text(object_id)} of realm {rows.realm!r} is referred to, but not there")
    if isinstance(value, CorruptionError):
        return ObjectFault(object_id, str(value))
    if why := unknown_pointers_reason(value):
        return ObjectFault(object_id, f"object {id_text(object_id)} of realm {rows.realm!r} {why}", is_unknown=True)
    try:
        return list(value.points_to())
    except CorruptionError as fault:
        return ObjectFault(
            object_id, f"object {id_text(object_id)} of type {value.type_name!r} in realm {rows.realm!r}: {fault}"
        )
