"""Parts of objects that nobody reads: what a rewriting with fewer parts left, where it was interrupted before its end."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from headwater.store import ObjectId, ObjectKey, RealmStore

__all__ = ["LeftOvers"]

_READ_TOGETHER = 20
"""First parts that are read in one round trip, with their values: 7 MiB at most."""


class LeftOvers:
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
