"""A Bloom filter of object ids in three bytes an entry: it never denies what was added, and sometimes claims what was not."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from rbloom import Bloom

from headwater.errors import CorruptionError

_MIX = 0x9E3779B97F4A7C15F39CC0605CEDC835
"""The golden ratio in 128 bits, odd: products with it differ in their high bits even for consecutive ids."""
_FULL = 30
"""About this many times its capacity sets every bit of a filter."""
_HALF, _ALL = 1 << 127, (1 << 128) - 1


class BloomFilter:
    """A Bloom filter of 63-bit ids, sized once.

    capacity      entries for which the share of false positives is ``fpp``; more may be added, and it rises
    salt          up to 63 bits: another salt gives other false positives
    """

    def __init__(self, capacity: int, fpp: float, salt: int = 0) -> None:
        self.capacity = max(capacity, 1000)
        self.salt = salt
        self._bloom = Bloom(self.capacity, fpp, _spread(salt))

    def add_id(self, object_id: int) -> None:
        self._bloom.add(object_id)

    def __contains__(self, object_id: int) -> bool:
        return object_id in self._bloom

    def __len__(self) -> int:
        """How many distinct entries it has, estimated from the bits that are set."""
        items = self._bloom.approx_items
        return _FULL * self.capacity if math.isinf(items) else round(items)

    @property
    def size_bytes(self) -> int:
        return self._bloom.size_in_bits // 8

    @property
    def fpp(self) -> float:
        """The current share of false positives, estimated from the bits that are set."""
        bits = self._bloom.size_in_bits
        hashes = max(int(bits / self.capacity * math.log(2)), 1)  # as rbloom chooses them
        items = self._bloom.approx_items
        # With all bits set it claims everything: the caller must see it as over-full, not as empty.
        return 1.0 if math.isinf(items) else float((1 - math.exp(-items * hashes / bits)) ** hashes)

    def pieces(self, piece_bytes: int) -> Iterator[bytes]:
        """The whole filter as bytes, in pieces of at most ``piece_bytes``."""
        saved = memoryview(self._bloom.save_bytes())
        for start in range(0, len(saved), piece_bytes):
            yield bytes(saved[start : start + piece_bytes])

    @classmethod
    def joined(cls, capacity: int, salt: int, pieces: list[bytes]) -> BloomFilter:
        """The filter that ``pieces`` gave. Raises CorruptionError when these are not the pieces of one."""
        made = cls.__new__(cls)
        made.capacity, made.salt = capacity, salt
        try:
            # With the salt that it was saved with: another one would deny what was added, and that would be deleted.
            made._bloom = Bloom.load_bytes(b"".join(pieces), _spread(salt))
        except ValueError as fault:
            raise CorruptionError(f"the filter of a collection's marks cannot be read: {fault}") from fault
        return made


def _spread(salt: int) -> Callable[[int], int]:
    mix = (_MIX ^ (salt << 1)) & _ALL

    def spread(object_id: int) -> int:
        mixed = (object_id * mix) & _ALL
        return (mixed ^ (mixed >> 64)) - _HALF

    return spread
