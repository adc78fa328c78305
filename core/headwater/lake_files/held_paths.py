"""What was held: digests of the paths that a document of this store named once, as far as the files may still be there.

They lie in one file of the catalog's work folder, whose digest the store remembers; so nobody else can have written it. Without the
file nothing was held, and files that nobody refers to are only reported.

    8 bytes ``hwheld1`` and 0x00 · 4 bytes number of buckets · for each bucket 4 bytes count, then its digests, sorted, 16 bytes each
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from headwater.errors import CorruptionError
from headwater.lake_files.file_columns import DIGEST_BYTES, packed_digests
from headwater.lake_files.file_runs import BUCKETS

if TYPE_CHECKING:
    import pyarrow as pa

_MAGIC = b"hwheld1\0"
_COUNT = struct.Struct(">I")


class HeldPaths:
    """The digests by bucket."""

    def __init__(self, buckets: Sequence[bytes] = (b"",) * BUCKETS) -> None:
        self._buckets = buckets

    def __len__(self) -> int:
        return sum(map(len, self._buckets)) // DIGEST_BYTES

    def bucket(self, number: int) -> pa.FixedSizeBinaryArray:
        return packed_digests(self._buckets[number])


def pack_held(buckets: Iterable[bytes]) -> bytes:
    """The file of these digests, those of a bucket one behind the other."""
    parts = list(buckets)
    return b"".join([_MAGIC, _COUNT.pack(len(parts)), *(_COUNT.pack(len(part) // DIGEST_BYTES) + part for part in parts)])


def unpack_held(data: bytes) -> HeldPaths:
    """What ``pack_held`` packed.

    raises        CorruptionError
    """
    at = len(_MAGIC) + _COUNT.size
    try:
        if not data.startswith(_MAGIC) or _COUNT.unpack_from(data, len(_MAGIC)) != (BUCKETS,):
            raise CorruptionError("the file of what was held is of another release")
        buckets = []
        for _ in range(BUCKETS):
            (count,) = _COUNT.unpack_from(data, at)
            end = at + _COUNT.size + count * DIGEST_BYTES
            buckets.append(data[at + _COUNT.size : end])
            at = end
    except struct.error as fault:
        raise CorruptionError(f"the file of what was held ends early: {fault}") from fault
    if at != len(data):
        raise CorruptionError("the file of what was held is longer or shorter than it says")
    return HeldPaths(buckets)
