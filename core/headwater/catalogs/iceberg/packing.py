"""Bytes in fewer bytes while a survey lasts, in little time."""

from __future__ import annotations

import zlib

__all__ = ["expand", "keep", "squeeze"]

_SQUEEZE_FROM = 512
"""Below, it takes as long as all else that is done with the bytes, and saves next to nothing."""
_QUICK = 1
_WINDOW_BITS, _MEMORY = 13, 6
"""Measured on metadata of 20 KB: as small as with zlib's own measures, in two thirds of the time, for its state stays in the
processor's cache."""
_PLAIN, _SQUEEZED = b"\x00", b"\x01"


def squeeze(data: bytes) -> bytes:
    """``expand`` gives it back."""
    if len(data) < _SQUEEZE_FROM:
        return keep(data)
    squeezer = zlib.compressobj(_QUICK, zlib.DEFLATED, _WINDOW_BITS, _MEMORY)
    return b"".join((_SQUEEZED, squeezer.compress(data), squeezer.flush()))


def keep(data: bytes) -> bytes:
    """As they are, for ``expand``."""
    return _PLAIN + data


def expand(packed: bytes) -> bytes | memoryview:
    rest = memoryview(packed)[1:]
    return zlib.decompress(rest) if packed[:1] == _SQUEEZED else rest
