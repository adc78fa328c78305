"""Where indexes of these tests keep their objects: as bytes in a dictionary. It counts what is asked of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import TypeVar

from headwater.index import Index, IndexContainer, IndexEditor, IndexLimits, IndexValue, StoredIndex, Stripe, StripeList
from headwater.store import ObjectId, StoredObject
from headwater.store.stored_objects import decode_object, encode_object

__all__ = ["MANY", "ROOMY", "TINY", "Shelf", "commit", "filled", "numbered", "reopened", "stripes_below"]

T = TypeVar("T", bound=StoredObject)

TINY = IndexLimits(embedded_bytes=256, stripe_bytes=256)
ROOMY = IndexLimits(embedded_bytes=1024, stripe_bytes=1024)
MANY = IndexLimits(embedded_bytes=1024, stripe_bytes=256)
"""Beyond a thousand entries there are so many stripes that these get lists."""


class Shelf:
    """Objects by id, as they would lie in rows. ``asked``: the ids of every bulk read."""

    realm = "acme"

    def __init__(self) -> None:
        self.rows: dict[ObjectId, tuple[str, bytes]] = {}
        self.asked: list[list[ObjectId]] = []
        self._last = 1 << 40

    def copy(self) -> Shelf:
        shelf = Shelf()
        shelf.rows, shelf._last = dict(self.rows), self._last
        return shelf

    def new_ids(self, n: int) -> list[ObjectId]:
        self._last += n
        return [ObjectId(self._last - n + at) for at in range(n)]

    def put(self, objects: Iterable[tuple[ObjectId, StoredObject]]) -> None:
        self.rows.update({object_id: encode_object(object_id, value) for object_id, value in objects})

    def read_many(self, object_ids: Sequence[ObjectId], cls: type[T]) -> list[T | None]:
        self.asked.append(list(object_ids))
        return [
            decode_object(object_id, *self.rows[object_id], cls, realm=self.realm) if object_id in self.rows else None
            for object_id in object_ids
        ]


def commit(shelf: Shelf, index: Index, changes: Mapping[bytes, IndexValue | None], limits: IndexLimits) -> StoredIndex:
    """What the index becomes by changes; its new objects are on the shelf."""
    editor = IndexEditor(index)
    for key, value in changes.items():
        if value is None:
            editor.remove(key)
        else:
            editor.put(key, value)
    stored = editor.stored(shelf.new_ids, limits)
    shelf.put(stored.objects)
    return stored


def reopened(shelf: Shelf, stored: StoredIndex) -> Index:
    """The index as another process reads it: nothing of it is decoded yet."""
    held = stored.container
    return Index(IndexContainer(held.length, held.embedded, held.spilled, held.levels), shelf)


def filled(shelf: Shelf, count: int, limits: IndexLimits) -> StoredIndex:
    """An index of so many numbered entries, made in one commit."""
    return commit(shelf, Index(), numbered(count), limits)


def numbered(count: int) -> dict[bytes, IndexValue]:
    """Values of 8 and 24 bytes that no packing makes smaller."""
    return {
        key: IndexValue(ObjectId(number + 1), blake2b(key, digest_size=24).digest()) for number, key in enumerate(_keys(count))
    }


def _keys(count: int) -> list[bytes]:
    return [b"%06d" % number for number in range(count)]


def stripes_below(shelf: Shelf, container: IndexContainer) -> list[Stripe]:
    """All stripes of an index, in key order."""
    children = list(container.children.object_ids)
    if container.levels == 2:
        lists = [found for found in shelf.read_many(children, StripeList) if found is not None]
        children = [child for found in lists for child in found.children.object_ids]
    return [found for found in shelf.read_many(children, Stripe) if found is not None]
