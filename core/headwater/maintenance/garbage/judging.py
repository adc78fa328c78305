"""Why a row stays: its object is marked, or one of the reasons that need no mark."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter

from headwater.clock import Micros
from headwater.maintenance.garbage.marks import Marks
from headwater.maintenance.garbage.parts import LeftOvers
from headwater.maintenance.garbage.retention import Why
from headwater.store import ObjectKey, RealmStore, is_fixed, registered_type

__all__ = ["Judge"]

_id = itemgetter(ObjectKey._fields.index("id"))
_part = itemgetter(ObjectKey._fields.index("part"))


class Judge:
    """Decides on the rows of one scan, batch after batch, in constant memory. For one thread; ``marks`` is only read.

    cutoff        what is younger stays
    """

    def __init__(self, rows: RealmStore, marks: Marks, cutoff: Micros) -> None:
        self._marks = marks
        self._cutoff = cutoff
        self._left_overs = LeftOvers(rows)
        self._known: dict[str, bool] = {}

    def judge(self, batch: Sequence[ObjectKey]) -> tuple[list[Why | None], int]:
        """Why each row stays, None for garbage; and how many of the garbage are left-over parts."""
        judged = self._marks.judge(list(map(_id, batch)))
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

    def _unmarked(self, key: ObjectKey) -> Why | None:
        if key.created > self._cutoff:
            return Why.FIXED if is_fixed(key.id) else Why.YOUNG
        if is_fixed(key.id):
            return Why.FIXED
        return None if self._is_known(key.type) else Why.UNKNOWN

    def _old(self, batch: Sequence[ObjectKey], judged: Sequence[Why | None]) -> list[ObjectKey]:
        """Further parts of what stays, each old enough to go by itself."""
        return [
            key
            for key, why in zip(batch, judged, strict=True)
            if key.part and key.created <= self._cutoff and why not in (None, Why.UNKNOWN)
        ]

    def _is_known(self, type_name: str) -> bool:
        """Whether this release knows a type. What it does not know stays: nobody here can tell what it is for."""
        known = self._known.get(type_name)
        if known is None:
            known = self._known[type_name] = registered_type(type_name) is not None
        return known
