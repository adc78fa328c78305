"""A child has the keys from its bound on, also when those before it were dropped, divided or merged."""

from __future__ import annotations

import random

import pytest
from shelves import Shelf, commit, reopened

from headwater.index import Index, IndexLimits, IndexValue

TINY = IndexLimits(embedded_bytes=1024, stripe_bytes=256)


def value(text: bytes) -> IndexValue:
    return IndexValue(None, text.ljust(24))


class Held:
    """An index, and a dictionary beside it."""

    def __init__(self, limits: IndexLimits = TINY) -> None:
        self.index, self.model = Index(), dict[bytes, IndexValue]()
        self._shelf, self._limits = Shelf(), limits

    def apply(self, changes: dict[bytes, IndexValue | None]) -> None:
        self.index = reopened(self._shelf, commit(self._shelf, self.index, changes, self._limits))
        for key, new in changes.items():
            if new is None:
                self.model.pop(key, None)
            else:
                self.model[key] = new

    def check(self) -> None:
        assert list(self.index.range()) == sorted(self.model.items())
        assert {key: self.index.get(key) for key in self.model} == self.model
        bounds = self.index._container.children.bounds
        assert bounds == sorted(bounds)
        assert not bounds or bounds[0] == b""


def keys(year: int, numbers: range) -> list[bytes]:
    return [b"sales/%d/%06d" % (year, number) for number in numbers]


@pytest.mark.parametrize("limits", [TINY, IndexLimits(embedded_bytes=2048, stripe_bytes=2048)], ids=["lists", "stripes"])
def test_keys_below_all_others_are_found_without_first_stripes(limits: IndexLimits) -> None:
    held = Held(limits)
    held.apply({key: value(b"1") for key in keys(2024, range(900))})
    held.apply(dict.fromkeys(keys(2024, range(300))))
    held.apply({key: value(b"2") for key in keys(2023, range(600))})
    held.check()


@pytest.mark.long
def test_list_without_its_first_stripe_keeps_its_bound() -> None:
    held = Held()
    held.apply({b"%06d" % number: value(b"1") for number in range(3000)})
    first, second, third = held.index._container.children.bounds[1:4]
    held.apply(dict.fromkeys([key for key in held.model if second <= key < b"%06d" % (int(third) - 30)]))
    held.apply({second + b"/%d" % number: value(b"2") for number in range(40)})
    held.apply(dict.fromkeys([key for key in held.model if first <= key < b"%06d" % (int(second) - 20)]))
    for turn in range(12):
        held.apply({key: value(b"%d" % turn) for key in sorted(held.model)[turn::7]})
        held.check()


@pytest.mark.parametrize("seed", range(6))
def test_whole_ranges_come_and_go(seed: int) -> None:
    chance, held = random.Random(seed), Held()
    for _ in range(25):
        start, count = chance.randrange(3000), chance.randrange(1, 500)
        step = chance.choice([1, 1, 3])
        chosen = [b"%06d" % number for number in range(start, start + count * step, step)]
        held.apply(
            {key: None if chance.random() < 0.02 else value(b"x") for key in chosen}
            if chance.random() < 0.5
            else dict.fromkeys(chosen)
        )
    held.check()
