"""How stripes and lists come from where objects are stored. What is not there is an error, and never an absent key."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from headwater.errors import UnreadableError
from headwater.index.containers import Objects
from headwater.store import ObjectId, StoredObject, id_text

__all__ = ["Pace", "load", "load_ahead", "load_one"]

T = TypeVar("T", bound=StoredObject)
_MOST = 16


def load(objects: Objects | None, object_ids: Sequence[ObjectId], cls: type[T]) -> list[T]:
    """Parts of an index, in one go.

    raises        UnreadableError when one of them is missing or damaged
    """
    if objects is None:
        raise UnreadableError(f"an index with {len(object_ids)} spilled parts was opened without the objects that hold them")
    found = objects.read_many(object_ids, cls)
    if None in found:
        missing = object_ids[found.index(None)]
        raise UnreadableError(
            f"{cls.type_name} {id_text(missing)} of an index{_realm_of(objects)} is not there: run `headwater fsck`"
        )
    return found  # type: ignore[return-value]  # None is not in it


def load_one(objects: Objects | None, object_id: ObjectId, cls: type[T]) -> T:
    """As ``load``, for one."""
    if objects is not None:
        (found,) = objects.read_many((object_id,), cls)
        if found is not None:
            return found
    return load(objects, (object_id,), cls)[0]


class Pace:
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


def load_ahead(objects: Objects | None, object_ids: Sequence[ObjectId], cls: type[T], pace: Pace) -> Iterator[T]:
    """One after the other, read in growing bulks."""
    at = 0
    while at < len(object_ids):
        step = pace.step()
        yield from load(objects, object_ids[at : at + step], cls)
        at += step


def _realm_of(objects: Objects) -> str:
    realm = getattr(objects, "realm", None)
    return "" if realm is None else f" in realm {realm!r}"
