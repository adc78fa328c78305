"""Every question that can be put to an index, and what a plain dictionary answers."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from random import Random

from odd_keys import near_key, new_key

from engines.model.index_promises import index_has_just_its_keys
from headwater.index import Index, IndexValue

__all__ = ["assert_answers_alike", "assert_same"]

Expected = Mapping[bytes, IndexValue]


def assert_same(index: Index, expected: Expected) -> None:
    """The index holds just this, in key order, however it is read as a whole."""
    assert index_has_just_its_keys(index, expected) == []


def assert_answers_alike(index: Index, expected: Expected, chance: Random, *, questions: int = 12) -> None:
    """Random questions of every kind, about keys that are there and keys right beside them."""
    keys = sorted(expected)
    assert len(index) == len(keys)
    for _ in range(questions):
        _ask_for_keys(index, expected, keys, chance)
        _ask_for_a_range(index, expected, keys, chance)
        _ask_for_a_prefix(index, expected, keys, chance)


def _ask_for_keys(index: Index, expected: Expected, keys: list[bytes], chance: Random) -> None:
    wanted = [near_key(chance, keys) if chance.random() < 0.8 else new_key(chance) for _ in range(chance.randint(1, 6))]
    one = wanted[0]
    assert index.get(one) == expected.get(one), one
    assert (one in index) == (one in expected), one
    assert index.get_many(wanted) == {key: expected[key] for key in wanted if key in expected}, wanted


def _ask_for_a_range(index: Index, expected: Expected, keys: list[bytes], chance: Random) -> None:
    start, end = (near_key(chance, keys) if chance.random() < 0.8 else None for _ in range(2))
    reverse, limit = chance.random() < 0.5, _limit(chance)
    low = 0 if start is None else bisect_left(keys, start)
    high = len(keys) if end is None else bisect_left(keys, end)
    told = list(index.range(start, end, reverse=reverse, limit=limit))
    assert told == _read(expected, keys[low:high], reverse, limit), (start, end, reverse, limit)
    assert list(index.keys(start, end, reverse=reverse, limit=limit)) == [key for key, _ in told]


def _ask_for_a_prefix(index: Index, expected: Expected, keys: list[bytes], chance: Random) -> None:
    key = near_key(chance, keys)
    prefix = key[: chance.randint(0, len(key))]
    after = near_key(chance, keys) if chance.random() < 0.6 else None
    reverse, limit = chance.random() < 0.5, _limit(chance)
    found = list(_beginning_with(prefix, keys))
    if after is not None:
        found = found[: bisect_left(found, after)] if reverse else found[bisect_right(found, after) :]
    told = index.prefix(prefix, after=after, reverse=reverse, limit=limit)
    assert list(told) == _read(expected, found, reverse, limit), (prefix, after, reverse, limit)


def _beginning_with(prefix: bytes, keys: list[bytes]) -> Iterator[bytes]:
    for key in keys[bisect_left(keys, prefix) :]:
        if not key.startswith(prefix):
            return
        yield key


def _read(expected: Expected, keys: list[bytes], reverse: bool, limit: int | None) -> list[tuple[bytes, IndexValue]]:
    ordered = keys[::-1] if reverse else keys
    return [(key, expected[key]) for key in ordered[:limit]]


def _limit(chance: Random) -> int | None:
    return chance.choice((None, None, 0, 1, 2, 7, 1000))
