"""What a decoded object takes in memory: the sizes of all that belongs to it, added up."""

from __future__ import annotations

from collections.abc import Iterable
from sys import getsizeof
from typing import Any

import msgspec
from msgspec.structs import astuple

__all__ = ["weigh"]

_FLAT = frozenset((type(None), bool, int, float, str, bytes))
_BYTES, _ASCII, _NUMBER, _EMPTY, _GC = 33, 49, 32, 64, 16


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
