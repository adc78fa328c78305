"""Where a reference stood at a moment: told by the times of its commits, and by the moves and the deletion that its row records.

    T          a          b
    |  line p  |  line q  |  line r     moves: (p, left at a), (q, left at b); the pointer is on r

The line at T is the first that was left after T; on it, the newest commit not after T. A row forgets moves older than the grace when
it records another, so that what lies before its newest move by more than that cannot be told.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headwater.catalogs.listed import relisted
from headwater.catalogs.names import NAMES, ListedName, listed_names
from headwater.clock import Micros, as_text
from headwater.commits import Commit, Head, read_commit
from headwater.errors import RefusedError
from headwater.maintenance.archives.moments import Absent, head_then
from headwater.store import RealmStore, Reference

__all__ = ["NamesThen", "names_at", "newest_not_after", "stood_at"]


@dataclass(frozen=True, slots=True)
class NamesThen:
    """The branches and tags that a catalog listed at a moment.

    listed        by index key
    relisted      by reference, when each was listed for the first time after that moment: by then it was not alive any more
    """

    time: Micros
    listed: Mapping[bytes, ListedName]
    relisted: Mapping[str, Micros]

    def has_living(self, key: bytes, row: Reference) -> bool:
        """Whether a name was listed, and its reference alive."""
        return key in self.listed and not isinstance(head_then(row, self.time, self.relisted.get(row.name)), Absent)


def stood_at(rows: RealmStore, row: Reference, time: Micros) -> Head | None:
    """The commit that was HEAD at a moment at which the reference was alive; None: it had none yet.

    raises        RefusedError when that cannot be told any more, with what can
    """
    if row.moves and time < row.moves[0].time - _remembered(rows):
        since = as_text(Micros(row.moves[0].time - _remembered(rows)))
        raise RefusedError(
            f"where reference {row.name!r} of realm {rows.realm!r} stood at {as_text(time)} cannot be told: it recorded what it left at"
            f" {as_text(row.moves[0].time)}, and moves before {since} are forgotten; give a commit instead"
        )
    pointer = head_then(row, time)
    if pointer is None or isinstance(pointer, Absent):
        return None
    return newest_not_after(rows, read_commit(rows, pointer), time, row.name)


def newest_not_after(rows: RealmStore, head: Head, time: Micros, name: str) -> Head | None:
    """The newest commit of a line that is not after a moment; None: the line begins later. Reads one commit in twenty on the way.

    raises        RefusedError when history is not kept so far back
    """
    current = head
    while current.commit.time > time:
        tail = current.commit.tail
        if not tail:
            return None
        oldest = rows.find(tail[-1], Commit)
        if oldest is not None and oldest.time > time:
            current = Head(tail[-1], oldest, rows)
            continue
        for commit_id, found in zip(tail, rows.read_many(tail, Commit), strict=True):
            if found is None:
                raise RefusedError(
                    f"history of reference {name!r} of realm {rows.realm!r} is kept from {as_text(current.commit.time)} on:"
                    f" where it stood at {as_text(time)} cannot be told"
                )
            current = Head(commit_id, found, rows)
            if found.time <= time:
                break
    return current


def names_at(rows: RealmStore, refs: Reference, catalog_id: str, time: Micros) -> NamesThen:
    """The names that the reference ``refs`` of a catalog listed at a moment.

    raises        RefusedError when that cannot be told any more
    """
    then = stood_at(rows, refs, time)
    listed = {} if then is None else {entry.key: entry for entry in listed_names(then.index(NAMES))}
    again = {} if refs.pointer is None else relisted(rows, refs.pointer, catalog_id, since=time)
    return NamesThen(time, listed, again)


def _remembered(rows: RealmStore) -> int:
    """A row that records a move still has those that were made so many microseconds before."""
    settings = rows.settings
    return round(max(settings.reader_grace_seconds, settings.writer_grace_seconds) * 1_000_000)
