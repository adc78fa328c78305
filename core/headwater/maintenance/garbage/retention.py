"""Which commits of a line of history stay: a pure judgement over positions and times."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from headwater.clock import Micros
from headwater.commits import Commit, CutPoint, Head, LogEnd, read_log
from headwater.errors import UnreadableError
from headwater.store import ObjectId, RealmStore, id_text

__all__ = ["BrokenHistoryError", "Line", "Place", "Why", "kept"]


class BrokenHistoryError(UnreadableError):
    """A commit is missing where no collection cut the history: it was lost, and what lies before it cannot be found any more.

    Attributes: the name of the line, the last commit that is there, and the id of the one that is missing.
    """

    def __init__(self, message: str, *, line: str = "", above: int = 0, lost: int = 0) -> None:  # defaults: it is pickled
        super().__init__(message)
        self.line = line
        self.above = ObjectId(above)
        self.lost = ObjectId(lost)


class Why(StrEnum):
    """Why a row stays. Each is counted under the first that holds."""

    HEAD = "head"
    GRACE = "grace"
    RETENTION = "retention"
    RECORD = "record"
    FILTER = "filter"
    """Marked, or taken for something that is: the filter beyond the exact set remembers no reasons."""
    YOUNG = "young"
    FIXED = "fixed"
    UNKNOWN = "unknown type"
    """Nothing leads to it, but this release does not know its type, and so not what else leads there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A pointer and what must stay behind it.

    left          when a reference left this pointer other than by a commit on top; None: it is HEAD now
    reader_cutoff what was HEAD after this moment stays
    commits, since  what retention keeps: so many commits, and all that were HEAD after ``since``
    cut           commits before this point are garbage already; none of them was HEAD after ``reader_cutoff``
    loaded        when the realm was imported, 0 for never: of what is not later, the archive had brought heads alone
    credible      no time beyond this one is right
    """

    name: str
    pointer: ObjectId
    left: Micros | None
    reader_cutoff: Micros
    commits: int
    since: Micros
    cut: CutPoint
    loaded: Micros
    credible: Micros

    def why(self, position: int, commit: Commit, superseded: Micros | None) -> Why | None:
        """Why a commit stays, or None; once None, then None for all that are older.

        position      0 for the pointer itself
        superseded    when the next one took its place, as a sound time; None: never
        """
        if superseded is None:
            return Why.HEAD
        if superseded >= self.reader_cutoff:
            return Why.GRACE
        if self.left is not None or self.cut.lets_go(commit):
            return None
        return Why.RETENTION if self._is_retained(position, superseded) else None

    def sound_time(self, commit: Commit, superseded: Micros | None) -> Micros:
        """When a commit was made at the latest: what it took the place of was superseded then.

        A pointer that was left may be later than that by the clock of who left it; then its own time counts, unless it cannot be right.
        """
        if superseded is None or (superseded == self.left and commit.time <= self.credible):
            return commit.time
        return min(commit.time, superseded)

    def lacks(self, position: int, oldest: Commit, superseded: Micros) -> bool:
        """Whether the commit before ``oldest`` was lost: it is not there, would stay, and no collection let it go.

        position      its own
        superseded    the sound time of ``oldest``
        """
        if oldest.time <= self.loaded:
            return False
        if superseded >= self.reader_cutoff:
            return self.left is not None or not self.cut.explains(oldest)
        return self.left is None and self._is_retained(position, superseded) and not self.cut.explains(oldest)

    def _is_retained(self, position: int, superseded: Micros) -> bool:
        return position < self.commits or superseded >= self.since


class Place(NamedTuple):
    """Where a walk down a line stands: the next commit, how many were above it, and when it was superseded (None: never)."""

    commit: ObjectId
    position: int
    superseded: Micros | None


def kept(rows: RealmStore, line: Line, since: Place | None = None) -> Iterator[tuple[Head, Why, Place]]:
    """The commits of a line that stay, newest first, each with its place. Reads twenty at a time, and one beyond the last.

    since         where an earlier walk stood; None: the pointer itself
    raises        ExpiredError when the first commit is not there · BrokenHistoryError when a later one is not that should be
    """
    place = since or Place(line.pointer, 0, line.left)
    superseded = place.superseded
    walk = read_log(rows, place.commit)
    found, position = None, place.position
    for position, found in enumerate(walk, place.position):
        why = line.why(position, found.commit, superseded)
        if why is None:
            return
        yield found, why, Place(found.id, position, superseded)
        superseded = line.sound_time(found.commit, superseded)
    if (
        walk.end is LogEnd.CUT
        and found is not None
        and superseded is not None
        and line.lacks(position + 1, found.commit, superseded)
    ):
        raise _broken(rows, line, found)


def _broken(rows: RealmStore, line: Line, above: Head) -> BrokenHistoryError:
    lost = above.commit.tail[0]
    return BrokenHistoryError(
        f"HISTORY_BROKEN: the history of {line.name!r} of realm {rows.realm!r} ends at commit {id_text(above.id)} (seq"
        f" {above.commit.seq}), where no collection cut it: commit {id_text(lost)} before it was lost",
        line=line.name,
        above=above.id,
        lost=lost,
    )
