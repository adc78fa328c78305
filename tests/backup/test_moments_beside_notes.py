"""What a late commit noted that it left was left long before: the line of the pointer tells when, and the note does not."""

from __future__ import annotations

from headwater.clock import Micros
from headwater.commits import pointer_as_of
from headwater.store import ObjectId, RealmKey, ReferenceMove, ReferenceRow

LEFT, HEAD = ObjectId(5), ObjectId(9)
NOON = 1_780_000_000_000_000


def row(*moves: ReferenceMove) -> ReferenceRow:
    return ReferenceRow(realm=RealmKey(7), name="grants", pointer=HEAD, version=3, created=Micros(1), moves=moves)


def test_note_is_no_move() -> None:
    assert pointer_as_of(row(ReferenceMove(LEFT, Micros(NOON + 1))), Micros(NOON - 60)) == HEAD


def test_move_is_one() -> None:
    assert pointer_as_of(row(ReferenceMove(LEFT, Micros(NOON))), Micros(NOON - 60)) == LEFT
