"""References as values: what each kind of change makes of the row that was seen. Nothing here touches a database.

A recorded move has an even time. An odd one is a note that a commit on top took effect late: the reference is on its line still.
"""

from __future__ import annotations

import dataclasses

from headwater.clock import Micros
from headwater.errors import RefusedError
from headwater.store.backend import Move, ReferenceRow
from headwater.store.identity import ObjectId

__all__ = ["MOVES_LIMIT", "Reference", "advanced", "buried", "is_note", "moved", "raised", "recreated", "with_move"]

RECENT_POINTERS = 20
MOVES_LIMIT = 4000
"""Recorded moves in one row: 16 bytes each, well under a row's limit."""

Reference = ReferenceRow
"""What a reader gets to see is the row itself."""


def advanced(seen: ReferenceRow, pointer: ObjectId) -> ReferenceRow:
    """A commit on top."""
    return dataclasses.replace(seen, pointer=pointer, version=seen.version + 1, recent=_recent(seen))


def moved(seen: ReferenceRow, pointer: ObjectId, *, now: Micros, since: Micros) -> ReferenceRow:
    """Onto a commit that is not on top of the old one: the old one is recorded."""
    return dataclasses.replace(advanced(seen, pointer), moves=_moves(seen, seen.pointer, now=_even(now), since=since))


def with_move(seen: ReferenceRow, left: ObjectId, *, now: Micros, since: Micros) -> ReferenceRow:
    """The same pointer, with the note that ``left`` was HEAD until now. Real moves stay told, however old: only another one may drop
    them, whose mover has seen to what they lead to. But where they fill the row, the last alone."""
    noted = _moves(seen, left, now=Micros(now | 1), since=since)
    old = tuple(move for move in seen.moves if not is_note(move) and move not in noted)
    is_full = len(noted) + len(old) > MOVES_LIMIT
    last = next((move for move in seen.moves if not is_note(move)), None)
    kept = ((last,) if last in old else ()) if is_full else old
    return dataclasses.replace(seen, version=seen.version + 1, moves=(*noted, *kept))


def is_note(move: Move) -> bool:
    """Whether the reference left that pointer by a commit on top after all, and this tells how late."""
    return bool(move.time & 1)


def raised(seen: ReferenceRow, *, now: Micros, credible: Micros) -> ReferenceRow:
    """The same pointer under a higher version: whoever saw the old one is beaten.

    credible      a time beyond this one is of a clock that was ahead: now counts instead, so that every grace is as long as promised
                  and none lasts for years
    """

    def mended(time: Micros) -> Micros:
        return time if time <= credible else Micros(now & ~1 | time & 1)

    return dataclasses.replace(
        seen,
        version=seen.version + 1,
        created=mended(seen.created),
        moves=tuple(Move(move.pointer, mended(move.time)) for move in seen.moves),
        deleted=None if seen.deleted is None else mended(seen.deleted),
    )


def buried(seen: ReferenceRow, *, now: Micros) -> ReferenceRow:
    """A tombstone."""
    return dataclasses.replace(seen, version=seen.version + 1, deleted=now)


def recreated(tombstone: ReferenceRow, pointer: ObjectId | None, *, since: Micros) -> ReferenceRow:
    """Alive again: version and recorded moves go on, and what the tombstone protected is one of them."""
    assert tombstone.deleted is not None
    return dataclasses.replace(
        tombstone,
        pointer=pointer,
        version=tombstone.version + 1,
        recent=_recent(tombstone),
        moves=_moves(tombstone, tombstone.pointer, now=_even(tombstone.deleted), since=since),
        deleted=None,
    )


def _even(time: Micros) -> Micros:
    return Micros(time & ~1)


def _recent(seen: ReferenceRow) -> tuple[ObjectId, ...]:
    return seen.recent if seen.pointer is None else (seen.pointer, *seen.recent)[:RECENT_POINTERS]


def _moves(seen: ReferenceRow, left: ObjectId | None, *, now: Micros, since: Micros) -> tuple[Move, ...]:
    kept = tuple(move for move in seen.moves if move.time >= since)
    if left is None:
        return kept
    if len(kept) >= MOVES_LIMIT:
        raise RefusedError(
            f"reference {seen.name!r} was moved {len(kept)} times within the grace, which is all that its row can record: try again later"
        )
    return (Move(left, now), *kept)
