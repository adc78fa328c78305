"""Keys and values that an ordered map gets wrong: long shared prefixes, every byte, NUL at the end, the longest keys, large values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from headwater.index import KEY_BYTES

__all__ = ["near_key", "new_data", "new_key"]

_WORDS = (b"sales", b"stock", b"staff", b"orders", b"returns", b"daily", b"v2")
_DEEP = b"warehouse\x00eu-central\x00" * 12


def _path(chance: Random) -> bytes:
    return b"\x00".join(chance.choice(_WORDS) for _ in range(chance.randint(1, 4))) + b"%d" % chance.randrange(30)


def _deep(chance: Random) -> bytes:
    return _DEEP + b"t%03d" % chance.randrange(200)


def _number(chance: Random) -> bytes:
    return b"k%06d" % chance.randrange(300)


def _one_byte(chance: Random) -> bytes:
    return bytes([chance.randrange(256)])


def _ends_in_zeros(chance: Random) -> bytes:
    return chance.choice(_WORDS) + b"\x00" * chance.randint(0, 3)


def _high(chance: Random) -> bytes:
    return b"\xff" * chance.randint(1, 4) + chance.choice((b"", b"\x00", b"a"))


def _longest(chance: Random) -> bytes:
    filler = chance.choice((b"x", b"\x00", b"\xff"))
    return filler * (KEY_BYTES - 1) + bytes([chance.randrange(256)])


def _anything(chance: Random) -> bytes:
    return chance.randbytes(chance.randint(1, 40))


_SHAPES: Sequence[Callable[[Random], bytes]] = (
    *(_path, _path, _deep, _number, _number, _number),
    *(_one_byte, _ends_in_zeros, _high, _longest, _anything),
)


def new_key(chance: Random) -> bytes:
    """A key that may be there already: the shapes have few members, so that they meet."""
    return chance.choice(_SHAPES)(chance)


def near_key(chance: Random, keys: Sequence[bytes]) -> bytes:
    """A key that is there, or one right beside it: what a search takes for the other."""
    key = chance.choice(keys) if keys else new_key(chance)
    beside = (key, key, key + b"\x00", key[:-1], key[: len(key) // 2], key[:-1] + bytes([max(key[-1], 1) - 1]), key + b"\xff")
    return chance.choice(beside)


def new_data(chance: Random, *, largest: int) -> bytes:
    """A few bytes, mostly as many as content has; now and then none, or more than an embedded part holds."""
    size = chance.choice((24, 24, 24, 24, 24, 24, 0, 1, 7, 60, 130, min(largest, 700)))
    if chance.random() < 0.01:
        size = largest
    return chance.randbytes(size)
