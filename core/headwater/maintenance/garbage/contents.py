"""Contents: the ids of all content that kept commits hold, as a compact set; they decide which claims are released."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from uuid import UUID

from headwater.maintenance.garbage.marks import Marks
from headwater.maintenance.garbage.retention import Why
from headwater.store import ObjectId

__all__ = ["Contents"]

_BUCKETS = 256
_MIX = 0x9E3779B97F4A7C15
_MASK = 0xFFFFFFFFFFFFFFFF


class Contents:
    """Content ids by 63 bits of a hash: two that share them are taken for one, which can keep a claim and never release one.

    Hashes lie in buckets by their first bits; a bucket is sorted, and rid of what it has twice, when it has doubled.
    """

    def __init__(self) -> None:
        self._buckets: list[array[int]] = [array("Q") for _ in range(_BUCKETS)]
        self._sorted = [0] * _BUCKETS

    def update(self, content_ids: Iterable[bytes]) -> None:
        """Add ids, each as its 16 bytes."""
        buckets, bound = self._buckets, self._sorted
        for content_id in content_ids:
            number = _hash(content_id)
            place = number >> 55
            bucket = buckets[place]
            bucket.append(number)
            if len(bucket) > 2 * bound[place] + 1024:
                self._sort(place)

    def __contains__(self, content_id: object) -> bool:
        if not isinstance(content_id, UUID):
            return False
        number = _hash(content_id.bytes)
        bucket = self._sort(number >> 55)
        at = bisect_left(bucket, number)
        return at < len(bucket) and bucket[at] == number

    def __len__(self) -> int:
        return sum(len(self._sort(place)) for place in range(_BUCKETS))

    def chunks(self) -> Iterator[bytes]:
        """To be persisted, as those of ``Marks``."""
        marks = Marks(1 << 62)
        for place in range(_BUCKETS):
            marks.add_many([ObjectId(number) for number in self._sort(place)], Why.HEAD)
        return marks.chunks()

    @classmethod
    def from_chunks(cls, chunks: Iterable[bytes]) -> Contents:
        """What ``chunks`` told. Raises UnreadableError as ``Marks.from_chunks`` does."""
        made = cls()
        for number in Marks.from_chunks(chunks):
            made._buckets[number >> 55].append(number)
        return made

    def _sort(self, place: int) -> array[int]:
        bucket = self._buckets[place]
        if len(bucket) != self._sorted[place]:
            bucket = self._buckets[place] = array("Q", sorted(set(bucket)))
            self._sorted[place] = len(bucket)
        return bucket


def _hash(content_id: bytes) -> int:
    number = int.from_bytes(content_id, "big")
    return (((number ^ (number >> 64)) * _MIX) & _MASK) >> 1
