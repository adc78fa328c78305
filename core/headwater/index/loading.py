"""How stripes and lists come from where objects are stored. What is not there is an error, and never an absent key."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from headwater.errors import UnreadableError
from headwater.index.containers import Objects
from headwater.index.stripes import Stripe, StripeList
from headwater.store import ObjectId, id_text

__all__ = ["ReadAhead", "load", "load_ahead", "load_one"]

P = TypeVar("P", Stripe, StripeList)
_MOST = 16


def load(objects: Objects | None, object_ids: Sequence[ObjectId], cls: type[P]) -> list[P]:
    """Parts of an index, in one go.

    raises        UnreadableError that names the part, when one is missing or damaged
    """
    present = _present(objects)
    found = present.read_many(object_ids, cls)
    return [_opened(present, object_id, part, cls) for object_id, part in zip(object_ids, found, strict=True)]


def load_one(objects: Objects | None, object_id: ObjectId, cls: type[P]) -> P:
    """As ``load``, for one."""
    present = _present(objects)
    return _opened(present, object_id, present.read_many((object_id,), cls)[0], cls)


class ReadAhead:
    """How many objects a range reads ahead: 1, 2, 4 ... 16, and no more than it takes for what is left to be read.

    left          how many entries are wanted yet; None: all
    """

    def __init__(self, left: int | None) -> None:
        self._left = left
        self._next = 1
        self._read = 0
        self._entries = 0

    def step(self) -> int:
        """How many objects to read now."""
        step, self._next = self._next, min(2 * self._next, _MOST)
        if self._left is not None and self._read:
            each = max(self._entries // self._read, 1)
            step = min(step, max(-(-self._left // each), 1))
        return step

    def note(self, objects: int, entries: int) -> None:
        """So many were read, with so many entries in the range."""
        self._read += objects
        self._entries += entries
        if self._left is not None:
            self._left -= entries


def load_ahead(objects: Objects | None, object_ids: Sequence[ObjectId], cls: type[P], pace: ReadAhead) -> Iterator[P]:
    """One after the other, read in growing bulks."""
    at = 0
    while at < len(object_ids):
        step = pace.step()
        yield from load(objects, object_ids[at : at + step], cls)
        at += step


def _present(objects: Objects | None) -> Objects:
    if objects is None:
        raise UnreadableError("an index with spilled parts was opened without the objects that hold them")
    return objects


def _opened(objects: Objects, object_id: ObjectId, part: P | None, cls: type[P]) -> P:
    """The part, if it is there and a page of this release lies in it."""
    fault: Exception | None = None
    if part is not None:
        if vars(part):  # it was opened before
            return part
        try:
            assert part.page
            return part
        except UnreadableError as raised:
            fault = raised
    realm = getattr(objects, "realm", None)
    place = "" if realm is None else f" in realm {realm!r}"
    raise UnreadableError(
        f"{cls.type_name} {id_text(object_id)} of an index{place}: {fault or 'it is not there'}. Run `headwater fsck`"
    ) from fault
