"""Which commits of a reference are garbage for good: those before its cut."""

from __future__ import annotations

from headwater.clock import Micros
from headwater.commits.ancestry import descends
from headwater.commits.collection import Cut, CutLines
from headwater.commits.history import log
from headwater.errors import ExpiredError, UnknownOutcomeError
from headwater.store import ObjectId, RealmStore, Reference, is_note

__all__ = ["cut_time", "newest_move"]


def cut_time(rows: RealmStore, row: Reference, cuts: CutLines) -> Micros:
    """Commits of this reference before this time are garbage.

    A reference that was put elsewhere since the last cut, or made since then, stands on a line that others cut: the newest of all
    cuts is then the only one that is surely not before its own. That holds also where it was put on a descendant:

        main   A                       A   B   C   <- main, assigned to the head of dev
        dev    A - B - C, only C kept          both lead to A, but B is garbage

    A reference that was put back on its own line still has its own cut, also with new commits on top of that.
    """
    own = cuts.lines.get(row.name)
    if own is not None and row.pointer is not None and _is_on_line(rows, row, row.pointer, own, cuts.newest):
        return own.time
    return cuts.latest


def newest_move(row: Reference) -> Micros:
    """When the reference was last moved other than by a commit on top, by the mover's clock; 0 for never.

    That a commit took effect late is noted among the moves, and is none: all history would count as cut by others.
    """
    return next((move.time for move in row.moves if not is_note(move)), Micros(0))


def _is_on_line(rows: RealmStore, row: Reference, pointer: ObjectId, cut: Cut, newest: Micros) -> bool:
    """Whether all that a pointer leads to is on a line that was cut, or later than ``newest`` and so than every cut."""
    try:
        if newest_move(row) == cut.moved:
            return descends(rows, pointer, cut.head, cut.seq)
        found = next((found for found in log(rows, pointer) if found.commit.time <= newest), None)
        return found is not None and descends(rows, cut.head, found.id, found.commit.seq)
    except (ExpiredError, UnknownOutcomeError):
        return False
