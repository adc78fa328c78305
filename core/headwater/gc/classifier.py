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
    """Classifies the rows of one scan, batch after batch, in constant memory. For one thread; ``marks`` is only read.

    cutoff        rows that are younger stay
    """

    def __init__(self, rows: RealmStore, marks: LiveSet, cutoff: Micros) -> None:
        self._marks = marks
        self._cutoff = cutoff
        self._left_overs = LeftoverParts(rows)
        self._known: dict[str, bool] = {}  # by type name

    def classify(self, batch: Sequence[ObjectKey]) -> tuple[list[KeepReason | None], int]:
        """Returns the reason why each row stays, None for garbage; and how many garbage rows are left-over parts."""
        reasons = self._marks.reasons_of(list(map(_id, batch)))
        if None in reasons:
            for at, why in enumerate(reasons):
                if why is None:
                    reasons[at] = self._unmarked(batch[at])
        if not any(map(_part, batch)):
            self._left_overs.pass_by(batch)
            return reasons, 0
        left = self._left_overs.among(batch, self._old(batch, reasons))
        for at, key in enumerate(batch) if left else ():
            if key in left:
                reasons[at] = None
        return reasons, len(left)

    def _unmarked(self, key: ObjectKey) -> KeepReason | None:
        # Young before all else: the objects of a commit that is being written are there before any reference leads to them.
        if key.created > self._cutoff:
            return KeepReason.FIXED if is_fixed(key.id) else KeepReason.YOUNG
        if is_fixed(key.id):
            return KeepReason.FIXED
        return None if self._is_known(key.type) else KeepReason.UNKNOWN

    def _old(self, batch: Sequence[ObjectKey], reasons: Sequence[KeepReason | None]) -> list[ObjectKey]:
        """The further parts of objects that stay, as far as they are old enough to be left over."""
        # A young part may be of a rewriting that has not written its first part yet.
        return [
            key
            for key, why in zip(batch, reasons, strict=True)
            if key.part and key.created <= self._cutoff and why not in (None, KeepReason.UNKNOWN)
        ]

    def _is_known(self, type_name: str) -> bool:
        """Whether this release knows a type. Rows of an unknown type stay: a later release may need them."""
        known = self._known.get(type_name)
        if known is None:
            known = self._known[type_name] = registered_type(type_name) is not None
        return known


_READ_TOGETHER = 20
"""How many first parts are read in one round trip, with their values: 7 MiB at most."""


class LeftoverParts:
    """Finds the left-over parts in one scan of a realm, batch by batch, in constant memory.

    The first part says how many parts an object has; a row with a higher number belongs to an older writing of it. A deletion of
    such a row on condition of the scanned creation time cannot hit a part of a newer writing, which has another time.
    """

    def __init__(self, rows: RealmStore) -> None:
        self._rows = rows
        self._latest: tuple[ObjectId, int] | None = None
        """The last first part that was scanned, and its count: where keys are ordered, the next batch begins with its others."""

    def pass_by(self, batch: Sequence[ObjectKey]) -> None:
        """A batch of first parts only: nothing in it is left over."""
        if batch:
            self._latest = (batch[-1].id, batch[-1].parts)

    def among(self, batch: Sequence[ObjectKey], asked: Collection[ObjectKey]) -> frozenset[ObjectKey]:
        """Returns the rows of ``asked`` that are left over. A first part that ``batch`` does not have is read.

        batch         every row of this part of the scan
        """
        counts = dict([] if self._latest is None else [self._latest])
        for key in batch:
            if key.part == 0:
                self._latest = (key.id, key.parts)
                counts[key.id] = key.parts
        further = [key for key in asked if key.part > 0]
        counts |= self._read({key.id for key in further} - counts.keys())
        # Without a first part nothing says how many there should be: the row stays.
        return frozenset(key for key in further if key.part >= counts.get(key.id, key.part + 1))

    def _read(self, asked: Collection[ObjectId]) -> dict[ObjectId, int]:
        """Read how many parts objects have, from their first parts. An object without a first part is left out."""
        ids, counts = sorted(asked), dict[ObjectId, int]()
        for start in range(0, len(ids), _READ_TOGETHER):
            keys = [(object_id, 0) for object_id in ids[start : start + _READ_TOGETHER]]
            found = self._rows.store.backend.read_objects(self._rows.key, keys)
            counts |= {row.id: row.parts for row in found if row is not None}
        return counts
