"""What a decoded object takes in memory: the sizes of all that belongs to it, added up."""

from __future__ import annotations

import random
from collections.abc import Iterable
from sys import getsizeof
from typing import Any

import msgspec
from msgspec.structs import astuple

__all__ = ["Scale", "weigh"]

_FLAT = frozenset((type(None), bool, int, float, str, bytes))
_BYTES, _ASCII, _NUMBER, _EMPTY, _GC = 33, 49, 32, 64, 16
_SAMPLE = 31
_SMALL_BYTES = 1024
_OLD = 0.75


class _Kind:
    """What is known of the objects of one type and of about one size.

    ratio         bytes of memory for each byte stored
    left          how many objects are taken for like it until the next is weighed
    """

    __slots__ = ("left", "ratio")

    def __init__(self, ratio: float) -> None:
        self.left = 0
        self.ratio = ratio


class Scale:
    """Weighs many small objects in a fraction of the time: one in about 16 of a type, and the others like it by their stored bytes.

    Like it are those whose stored bytes have as many binary digits. Of one type, small objects often are texts and large ones
    lists of dictionaries: a ratio over all of them would be far too small for the large ones. A budget is for the sum of many,
    in which what single ones are taken for too much or too little cancels out. Those beyond a size, and those whose stored bytes
    are compressed, are weighed each. Which one is next is left to chance, so that no pattern in what is written can pass.
    Threads that meet here may weigh one more or less.
    """

    def __init__(self) -> None:
        self._kinds: dict[tuple[type[msgspec.Struct], int], _Kind] = {}

    def weigh(self, value: msgspec.Struct, stored_bytes: int | None) -> int:
        """Bytes of memory, about. ``stored_bytes``: of its envelope, or None when they tell nothing, as where they are compressed."""
        if stored_bytes is None or stored_bytes > _SMALL_BYTES:
            return weigh(value)
        like = (type(value), stored_bytes.bit_length())
        kind = self._kinds.get(like)
        if kind is not None and kind.left > 0:
            kind.left -= 1
            return int(stored_bytes * kind.ratio)
        weight = weigh(value)
        ratio = weight / max(1, stored_bytes)
        if kind is None:
            self._kinds[like] = _Kind(ratio)
        else:
            kind.ratio = _OLD * kind.ratio + (1 - _OLD) * ratio
            kind.left = random.randrange(_SAMPLE)
        return weight


def weigh(value: msgspec.Struct) -> int:
    """Bytes of memory: as tracemalloc has it, or up to three times as much, for values that objects share are counted each time.

    The stored size says little: 3 bytes of MessagePack become 100 of a dictionary, and a compressed row a hundred times more.
    """
    total = 0
    deeper: list[Any] = [value]
    while deeper:
        item = deeper.pop()
        if isinstance(item, msgspec.Struct):
            total += _size_of_fields(item, deeper)
        elif isinstance(item, dict):
            total += getsizeof(item) + _sizes(item, deeper) + _sizes(item.values(), deeper)
        elif isinstance(item, list | tuple | set | frozenset):
            total += getsizeof(item) + _sizes(item, deeper)
        else:
            total += getsizeof(item)
    return total


def _size_of_fields(value: msgspec.Struct, deeper: list[Any]) -> int:
    """By hand, because asking each of a few fields for its size takes twice as long."""
    total = _GC + type(value).__basicsize__
    for field in astuple(value):
        kind = type(field)
        if field is None or field is True or field is False:
            continue
        if kind is bytes:
            total += _BYTES + len(field)
        elif kind is str and field.isascii():
            total += _ASCII + len(field)
        elif kind in _FLAT:
            total += getsizeof(field) if kind is str else _NUMBER
        elif field:
            deeper.append(field)
        else:
            total += _EMPTY
    return total


def _sizes(items: Iterable[Any], deeper: list[Any]) -> int:
    """Of all flat ones; the others go to ``deeper``."""
    if _FLAT.issuperset(map(type, items)):
        return sum(map(getsizeof, items))
    deeper += [item for item in items if type(item) not in _FLAT]
    return sum(getsizeof(item) for item in items if type(item) in _FLAT)
