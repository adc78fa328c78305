"""Rows with the keys and values that databases get wrong: extreme numbers, odd text, near keys, empty and large values."""

from __future__ import annotations

import os
from typing import TypeVar

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

from headwater.clock import Micros
from headwater.store import ROW_BYTES, ObjectId, RealmKey, ReferenceMove

__all__ = [
    "BIGGEST",
    "IS_SOAK",
    "few",
    "moves",
    "names",
    "object_ids",
    "pointers",
    "realms",
    "run_of",
    "times",
    "tokens",
    "type_names",
    "values",
    "versions",
]

BIGGEST = (1 << 63) - 1
IS_SOAK = os.environ.get("HEADWATER_SOAK") == "1"

K = TypeVar("K")

_EDGES = [1, 2, 127, 128, 255, 256, 257, 65535, 65536, (1 << 31) - 1, 1 << 31, 1 << 32, (1 << 53) - 1, 1 << 53, (1 << 53) + 1]
_numbers = st.one_of(st.sampled_from([*_EDGES, BIGGEST - 1, BIGGEST]), st.integers(1, BIGGEST))
_ODD_NAMES = [
    "a",
    "a\x01",
    "a ",
    " a",
    "A",
    "a/b",
    "a.b",
    "a\\",
    "$a",
    "a'b\"c",
    "%",
    "_",
    "a%",
    "{}",
    "null",
    "1",
    "\u00e4",
    "a\u0308",
    "\u212b",
    "\x7f",
    "\u0080",
    "\ud7ff",
    "\ue000",
    "\uffff",
    "\U00010000",
    "\U0010ffff",
    "i\u0307",
    "\u202e",
    "\r\n",
    "x" * 500,
    "x" * 499 + "y",
    "\u00e4" * 250,
    "\U0001f30a" * 125,
]
_text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=12)

realms = _numbers.map(RealmKey)
object_ids = _numbers.map(ObjectId)
pointers = st.one_of(st.none(), object_ids)
versions = _numbers
names = st.one_of(st.sampled_from(_ODD_NAMES), _text)
"""1 to 500 bytes of UTF-8 without NUL; among them what collations, case folding, UTF-16 order and normal forms confuse."""
_CONFUSED_NAMES = [
    ["a", "A"],
    ["a", "a ", " a", "a\x01"],
    ["\uffff", "\U00010000", "\ud7ff"],
    ["\ue000", "\U0010ffff"],
    ["\u00e4", "a\u0308", "a", "z"],
    ["x" * 500, "x" * 499 + "y", "x" * 499],
    ["a/b", "a", "a.b", "a%", "_"],
    ["9", "10", "1"],
    ["\x7f", "\u0080"],
]


def few(keys: st.SearchStrategy[K], most: int) -> st.SearchStrategy[list[K]]:
    """Up to so many different keys; mostly neighbours, of which a careless database takes one for the other."""
    anything = st.lists(keys, min_size=1, max_size=most, unique=True)
    if keys is names:
        return st.one_of(st.sampled_from(_CONFUSED_NAMES), anything)
    near = st.builds(lambda key, count: [min(key, BIGGEST - count) + i for i in range(count)], keys, st.integers(2, most))
    return st.one_of(near, anything)


times = st.one_of(st.sampled_from([0, 1, 1_780_000_000_000_001, BIGGEST]), st.integers(0, 1 << 60)).map(Micros)
tokens = st.sampled_from(["a", "b", "A", "0123456789abcdef", "\u00e4"])
type_names = st.sampled_from(["note", "a-type", "x" * 32])
moves = st.lists(st.builds(ReferenceMove, object_ids, times), max_size=3).map(tuple)
_sizes = st.sampled_from([0] * 8 + [1, 300, 8000, 8000, ROW_BYTES])
values = st.builds(lambda start, size: start + bytes(size), st.binary(max_size=8), _sizes).map(lambda value: value[:ROW_BYTES])


def run_of(examples: int, *, steps: int = 30) -> settings:
    """How long a machine runs: so many examples, in a soak a hundred times. Nothing is kept; a failure prints what repeats it."""
    return settings(
        max_examples=examples * (100 if IS_SOAK else 1),
        stateful_step_count=steps,
        database=None,
        print_blob=True,
        phases=[Phase.explicit, Phase.generate, Phase.shrink],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
    )
