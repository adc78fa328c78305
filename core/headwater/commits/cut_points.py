"""Which commits of a reference are garbage for good: those before its cut."""

from __future__ import annotations

from typing import NamedTuple

from headwater.clock import Micros
from headwater.commits.commit import Commit, Head, descends
from headwater.commits.commit_log import read_log
from headwater.commits.commit_times import sound_times
from headwater.commits.gc_record import CutLines, HistoryCut
from headwater.errors import ExpiredError, UnknownOutcomeError
from headwater.store import ObjectId, RealmReader, Reference, ReferenceMove, id_text, is_note

_ASKED = 50
"""The limit of lines that are asked whether they have a commit: a reference without a cut of its own would otherwise cost all."""


class CutPoint(NamedTuple):
    """Where a line of history was cut: at a position if that is known, otherwise at a time that is surely not too early.

    seq           of the oldest commit that was kept; 0: only the time is known
    """

    time: Micros
    seq: int = 0

    def lets_go(self, commit: Commit) -> bool:
        """Whether a commit of that line lies before the cut: it is garbage, and stays garbage."""
        return commit.seq < self.seq if self.seq else commit.time < self.time

    def explains(self, oldest: Commit) -> bool:
        """Whether what lies before a commit may be gone by this cut: it is the oldest that was kept, or older."""
        return oldest.seq <= self.seq if self.seq else oldest.time <= self.time


UNCUT = CutPoint(Micros(0))
"""The cut point of a history that no collection ever cut."""


def find_cut_point(rows: RealmReader, row: Reference, cuts: CutLines) -> CutPoint:
    """Returns the point before which the commits of a reference are garbage.

    A reference that was put elsewhere since the last cut, or made since then, stands on a line that others cut. That is found by the
    newest commit that the cuts can have seen: the line that has it has all that is below it, and was kept down to its own cut.

        main   A                       A   B   C   <- main, assigned to the head of dev
        dev    A - B - C, only C kept          both lead to A, but B is garbage: what counts is the cut of dev

    Where no such line is found, the newest of all cuts is taken: it is surely not before the right one. A reference that was put back
    on its own line still has its own cut, also with new commits on top of that.
    """
    if row.pointer is None or not cuts.lines:
        return CutPoint(cuts.latest)
    own = cuts.lines.get(row.name)
    try:
        if own is not None and newest_move(row) == own.moved and descends(rows, row.pointer, own.head, own.seq):
            return CutPoint(own.time, own.oldest)
        return _cut_of_line(rows, row.name, row.pointer, cuts)
    except (ExpiredError, UnknownOutcomeError):
        return CutPoint(cuts.latest)  # too late a cut refuses a legal target; too early a one accepts garbage


def left_line_name(name: str, pointer: ObjectId) -> str:
    """The name under which cuts have a pointer that a reference left."""
    return f"{name}@{id_text(pointer)}"


def is_note_collected(row: Reference, left: ReferenceMove, commit: Commit, cut: CutPoint, cuts: CutLines) -> bool:
    """Whether a note came so late that the last collection had let go of the commit that it names.

    commit        the one that was left
    cut           the reference's own
    """
    return is_note(left) and cut.lets_go(commit) and left_line_name(row.name, left.pointer) not in cuts.lines


def newest_move(row: Reference) -> Micros:
    """When the reference was last moved other than by a commit on top, by the mover's clock; 0 for never."""
    # The note of a late commit is no move: with it as one, all of the reference's history would count as cut by others.
    return next((move.time for move in row.moves if not is_note(move)), Micros(0))


def _cut_of_line(rows: RealmReader, name: str, pointer: ObjectId, cuts: CutLines) -> CutPoint:
    """The cut of a line that has everything that a pointer leads to, except commits later than every head that was cut."""
    line, newest = sound_times(read_log(rows, pointer)), _newest_of_kin(name, cuts)
    found, time = next(((found, time) for found, time in line if time <= newest), (None, newest))
    if found is None:
        return CutPoint(cuts.latest)
    seq = found.commit.seq
    able = [(line, cut) for line, cut in cuts.lines.items() if cut.seq >= seq and cut.newest >= time]
    able.sort(key=lambda entry: (entry[0] != name, _home(entry[0]) != _home(name), entry[1].time))
    points = (CutPoint(cut.time, cut.oldest) for _, cut in able[:_ASKED] if _has(rows, cut, found))
    return next(points, CutPoint(cuts.latest))


def _newest_of_kin(name: str, cuts: CutLines) -> Micros:
    """The time of the newest head among the lines that may have this one's commits; among all lines if none may."""
    # A later commit is on no line. The own references of a catalog get a note in each collection, so their heads are newer than
    # all others: by their time, a commit made right after a collection, by a slow clock, would be sought on lines without it.
    kin = (cut.newest for line, cut in cuts.lines.items() if _home(line) == _home(name) and _is_deep(line) == _is_deep(name))
    return max(kin, default=cuts.newest)


def _is_deep(name: str) -> bool:
    """Whether a reference is one of many of its kind within its home."""
    return name.count("/") > 2


def _home(name: str) -> list[str]:
    """The home of a reference, such as its catalog: references of one home share history as a rule."""
    return name.split("/")[:2]


def _has(rows: RealmReader, cut: HistoryCut, found: Head) -> bool:
    try:
        return descends(rows, cut.head, found.id, found.commit.seq)
    except UnknownOutcomeError:
        return False
