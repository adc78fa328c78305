"""Which commits of a line of history stay: a pure judgement over positions and times."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from headwater.clock import Micros
from headwater.commits import Head, log
from headwater.store import ObjectId, RealmStore

__all__ = ["Line", "Place", "Why", "kept"]


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
    cut           commits before this time are garbage already; none of them was HEAD after ``reader_cutoff``
    """

    name: str
    pointer: ObjectId
    left: Micros | None
    reader_cutoff: Micros
    commits: int
    since: Micros
    cut: Micros

    def why(self, position: int, time: Micros, superseded: Micros | None) -> Why | None:
        """Why a commit stays, or None; once None, then None for all that are older.

        position      0 for the pointer itself
        time          the commit's own
        superseded    when the next one took its place; None: never
        """
        if superseded is None:
            return Why.HEAD
        if superseded >= self.reader_cutoff:
            return Why.GRACE
        if time < self.cut or self.left is not None:
            return None
        if position < self.commits or superseded >= self.since:
            return Why.RETENTION
        return None


class Place(NamedTuple):
    """Where a walk down a line stands: the next commit, how many were above it, and when it was superseded (None: never)."""

    commit: ObjectId
    position: int
    superseded: Micros | None


def kept(rows: RealmStore, line: Line, since: Place | None = None) -> Iterator[tuple[Head, Why, Place]]:
    """The commits of a line that stay, newest first, each with its place. Reads twenty at a time, and one beyond the last.

    since         where an earlier walk stood; None: the pointer itself
    raises        ExpiredError when the first commit is not there
    """
    place = since or Place(line.pointer, 0, line.left)
    superseded = place.superseded
    for position, found in enumerate(log(rows, place.commit), place.position):
        why = line.why(position, found.commit.time, superseded)
        if why is None:
            return
        yield found, why, Place(found.id, position, superseded)
        superseded = found.commit.time
