"""Where a reference stood at a moment: told by the times of its commits, and by the moves and the deletion that its row records.

    T          a          b
    |  line p  |  line q  |  line r     moves: (p, left at a), (q, left at b); the pointer is on r

The line at T is the first that was left after T; on it, the newest commit not after T. A row forgets moves older than the grace when
it records another, so that what lies before its newest move by more than that cannot be told.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from headwater.catalogs.names import NAMES, ListedName, listed_names
from headwater.clock import Micros, as_text
from headwater.commits import Commit, Head, load_head, log, read_commit
from headwater.errors import RefusedError
from headwater.index import Value
from headwater.store import ObjectId, RealmStore, Reference

__all__ = ["NamesThen", "names_at", "newest_not_after", "stood_at", "was_alive"]


@dataclass(frozen=True, slots=True)
class NamesThen:
    """The branches and tags that a catalog listed at a moment.

    listed        by index key
    relisted      when each was listed for the first time after that moment: it had no living row just before, or lost it by then
    """

    listed: Mapping[bytes, ListedName]
    relisted: Mapping[bytes, Micros]


def stood_at(rows: RealmStore, row: Reference, time: Micros) -> Head | None:
    """The commit that was HEAD at a moment at which the reference was alive; None: it had none yet.

    raises        RefusedError when that cannot be told any more, with what can
    """
    if row.moves and time < row.moves[0].time - _remembered(rows):
        since = as_text(Micros(row.moves[0].time - _remembered(rows)))
        raise RefusedError(
            f"where reference {row.name!r} of realm {rows.realm!r} stood at {as_text(time)} cannot be told: it was put elsewhere at"
            f" {as_text(row.moves[0].time)}, and moves before {since} are forgotten; give a commit instead"
        )
    later = _left_after(row, time)
    pointer = row.pointer if later is None else later[0]
    return None if pointer is None else newest_not_after(rows, read_commit(rows, pointer), time, row.name)


def was_alive(row: Reference, relisted: Micros | None, time: Micros) -> bool:
    """Whether a reference that was listed then was alive at a moment.

    relisted      see ``NamesThen``
    """
    if row.created > time:
        return False
    if relisted is None:
        return row.deleted is None or row.deleted > time
    later = _left_after(row, time)
    return later is not None and later[1] <= relisted


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


def names_at(rows: RealmStore, refs: Reference, time: Micros) -> NamesThen:
    """The names that the reference ``refs`` of a catalog listed at a moment.

    raises        RefusedError when that cannot be told any more
    """
    then = stood_at(rows, refs, time)
    listed = {} if then is None else {entry.key: entry for entry in listed_names(then.index(NAMES))}
    now = load_head(rows, refs)
    return NamesThen(listed, {} if now is None else dict(_relisted(rows, now.id, time)))


def _relisted(rows: RealmStore, start: ObjectId, time: Micros) -> Iterator[tuple[bytes, Micros]]:
    """Newest first: of several listings of a name the earliest comes last."""
    for found in log(rows, start):
        if found.commit.time <= time:
            return
        for operation in found.commit.operations:
            if operation.index == NAMES and not operation.removed:
                yield operation.key, ListedName.decode(operation.key, Value(None, operation.data)).listed


def _left_after(row: Reference, time: Micros) -> tuple[ObjectId | None, Micros] | None:
    """The first pointer that the reference left after a moment, and when."""
    for move in reversed(row.moves):
        if move.time > time:
            return move.pointer, move.time
    if row.deleted is not None and row.deleted > time:
        return row.pointer, row.deleted
    return None


def _remembered(rows: RealmStore) -> int:
    """A row that records a move still has those that were made so many microseconds before."""
    settings = rows.settings
    return round(max(settings.reader_grace_seconds, settings.writer_grace_seconds) * 1_000_000)
