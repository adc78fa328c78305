"""Classify scanned rows: why each row stays, or that it is garbage.

A row stays when its object is in the live set, or for one of the reasons that need no mark: it is young, under a fixed id, or of a type
that this release does not know. A part beyond the number of parts that its object has now is garbage although its object stays: a
rewriting with fewer parts was interrupted before it deleted the rest.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from operator import itemgetter

from headwater.clock import Micros
from headwater.gc.live_set import LiveSet
from headwater.gc.retention import KeepReason
from headwater.store import ObjectId, ObjectKey, RealmStore, is_fixed, registered_type

_id = itemgetter(ObjectKey._fields.index("id"))
_part = itemgetter(ObjectKey._fields.index("part"))


class RowClassifier:
    """Decides on the rows of one scan, batch after batch, in constant memory. For one thread; ``marks`` is only read.

    cutoff        what is younger stays
    """

    def __init__(self, rows: RealmStore, marks: LiveSet, cutoff: Micros) -> None:
        self._marks = marks
        self._cutoff = cutoff
        self._left_overs = LeftoverParts(rows)
        self._known: dict[str, bool] = {}

    def classify(self, batch: Sequence[ObjectKey]) -> tuple[list[KeepReason | None], int]:
        """Why each row stays, None for garbage; and how many of the garbage are left-over parts."""
        judged = self._marks.reasons_of(list(map(_id, batch)))
        if None in judged:
            for at, why in enumerate(judged):
                if why is None:
                    judged[at] = self._unmarked(batch[at])
        if not any(map(_part, batch)):
            self._left_overs.pass_by(batch)
            return judged, 0
        left = self._left_overs.among(batch, self._old(batch, judged))
        for at, key in enumerate(batch) if left else ():
            if key in left:
                judged[at] = None
        return judged, len(left)

    def _unmarked(self, key: ObjectKey) -> KeepReason | None:
        if key.created > self._cutoff:
            return KeepReason.FIXED if is_fixed(key.id) else KeepReason.YOUNG
        if is_fixed(key.id):
            return KeepReason.FIXED
        return None if self._is_known(key.type) else KeepReason.UNKNOWN

    def _old(self, batch: Sequence[ObjectKey], judged: Sequence[KeepReason | None]) -> list[ObjectKey]:
        """Further parts of what stays, each old enough to go by itself."""
        return [
            key
            for key, why in zip(batch, judged, strict=True)
            if key.part and key.created <= self._cutoff and why not in (None, KeepReason.UNKNOWN)
        ]

    def _is_known(self, type_name: str) -> bool:
        """Whether this release knows a type. What it does not know stays: nobody here can tell what it is for."""
        known = self._known.get(type_name)
        if known is None:
            known = self._known[type_name] = registered_type(type_name) is not None
        return known


_READ_TOGETHER = 20
"""First parts that are read in one round trip, with their values: 7 MiB at most."""


class LeftoverParts:
    """Finds the left-over parts in one scan of a realm, batch by batch, in constant memory.

    An object has as many parts as its first one says; a row with a higher number belongs to an older writing of it. Whoever
    deletes such a row by the creation time that was scanned cannot hit a part of a newer writing, which has another.
    """

    def __init__(self, rows: RealmStore) -> None:
        self._rows = rows
        self._latest: tuple[ObjectId, int] | None = None
        """The last first part that was scanned, and its count: where keys are ordered, the next batch begins with its others."""

    def pass_by(self, batch: Sequence[ObjectKey]) -> None:
        """A batch of first parts only: nothing in it is left over."""
        if batch:
            self._latest = (batch[-1].id, batch[-1].parts)

    def among(self, batch: Sequence[ObjectKey], judged: Collection[ObjectKey]) -> frozenset[ObjectKey]:
        """Those of ``judged`` that are left over. ``batch`` is all that was scanned; where the first part is not in it, it is read."""
        counts = dict([] if self._latest is None else [self._latest])
        for key in batch:
            if key.part == 0:
                self._latest = (key.id, key.parts)
                counts[key.id] = key.parts
        further = [key for key in judged if key.part > 0]
        counts |= self._read({key.id for key in further} - counts.keys())
        return frozenset(key for key in further if key.part >= counts.get(key.id, key.part + 1))

    def _read(self, asked: Collection[ObjectId]) -> dict[ObjectId, int]:
        """What the first parts say. One that is not there says nothing: whether the rest of such an object stays is not judged here."""
        ids, counts = sorted(asked), dict[ObjectId, int]()
        for start in range(0, len(ids), _READ_TOGETHER):
            keys = [(object_id, 0) for object_id in ids[start : start + _READ_TOGETHER]]
            found = self._rows.store.backend.read_objects(self._rows.key, keys)
            counts |= {row.id: row.parts for row in found if row is not None}
        return counts
