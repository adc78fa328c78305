"""Unpacks the blocks of Avro files within bounds: a few kilobytes can be packed so that they unpack to all the memory there is."""

from __future__ import annotations

import bz2
import lzma
import sys
import zlib
from collections.abc import Callable, Mapping
from typing import Protocol

MOST_IN_A_BLOCK = 256 * 1024 * 1024
"""Some writers put a whole manifest, 8 MiB packed, into one."""
MOST_IN_A_FILE = 4 * MOST_IN_A_BLOCK
_CRC_BYTES = 4


class AvroFileError(ValueError):
    """The file is broken, or is not what it should be."""


class _Decompressor(Protocol):
    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...
    @property
    def eof(self) -> bool: ...


class BlockUnpacker:
    """Unpacks the blocks of one file."""

    def __init__(self, codec: bytes) -> None:
        self._left = MOST_IN_A_FILE
        try:
            self._unpack = _CODECS[codec]
        except KeyError:
            raise AvroFileError("it is packed in a way that is not read") from None

    def unpack(self, packed: bytes) -> bytes:
        """Unpack a block; raises AvroFileError for one that is broken, or has too much."""
        limit = min(self._left, MOST_IN_A_BLOCK)
        block = self._unpack(packed, limit)
        if len(block) > limit:
            raise AvroFileError(f"its blocks unpack to more than {MOST_IN_A_BLOCK} bytes, or all to more than {MOST_IN_A_FILE}")
        self._left -= len(block)
        return block


def _streamed(begin: Callable[[], _Decompressor]) -> Callable[[bytes, int], bytes]:
    def unpack(packed: bytes, limit: int) -> bytes:
        decompressor = begin()
        block = decompressor.decompress(packed, limit + 1)
        if len(block) <= limit and not decompressor.eof:
            raise AvroFileError("a block of it is cut off")
        return block

    return unpack


def _zstandard() -> _Decompressor:
    if sys.version_info >= (3, 14):
        from compression.zstd import ZstdDecompressor
    else:
        from backports.zstd import ZstdDecompressor  # only who follows manifests needs it
    return ZstdDecompressor()


def _snappy(packed: bytes, limit: int) -> bytes:
    from cramjam import snappy  # only who follows manifests needs it

    body = packed[:-_CRC_BYTES]
    size = snappy.decompress_raw_len(body)
    if size > limit:
        return bytes(limit + 1)
    block = bytes(snappy.decompress_raw(body))
    if zlib.crc32(block).to_bytes(_CRC_BYTES, "big") != packed[-_CRC_BYTES:]:
        raise AvroFileError("a block of it is damaged")
    return block


_CODECS: Mapping[bytes, Callable[[bytes, int], bytes]] = {
    b"null": lambda packed, limit: packed,
    b"deflate": _streamed(lambda: zlib.decompressobj(-15)),
    b"bzip2": _streamed(bz2.BZ2Decompressor),
    b"xz": _streamed(lzma.LZMADecompressor),
    b"zstandard": _streamed(_zstandard),
    b"snappy": _snappy,
}
