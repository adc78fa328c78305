"""Whatever a seed makes of writers, branchers, workers and landlords, with faults, deaths and stops: nothing is lost, nothing is left.

HEADWATER_SEED=n replays one seed and prints its story; HEADWATER_SOAK=1 goes through thousands.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import pytest
from plays import Play

from headwater.store import ObjectKey, ReferenceRow
from headwater.store.backends.memory import MemoryBackend
from tiers import long_but_for

SEED = os.environ.get("HEADWATER_SEED")
SEEDS = 240
SOAKED = 6000
GROUPS = 20
QUICK_GROUPS = range(2)


def seeds_of(group: int) -> range:
    if SEED is not None:
        return range(int(SEED), int(SEED) + 1) if group == 0 else range(0)
    return range(group, SOAKED if os.environ.get("HEADWATER_SOAK") == "1" else SEEDS, GROUPS)


@pytest.mark.parametrize("group", long_but_for(QUICK_GROUPS, range(GROUPS)))
def test_no_seed_loses_doubles_or_leaves_anything(group: int) -> None:
    for seed in seeds_of(group):
        play = Play(seed)
        faults = play.faults()
        if faults or SEED is not None:
            print(play.story())  # noqa: T201 - the seed's history
        assert faults == [], f"HEADWATER_SEED={seed} replays it"


def test_a_seed_always_has_the_same_story() -> None:
    assert Play(8).story() == Play(8).story()


class Careless(MemoryBackend):
    """Moves a reference wherever it is by now."""

    def swap_reference(self, seen: ReferenceRow, new: ReferenceRow) -> None:
        found = self.read_references(seen.realm, [seen.name])[0]
        super().swap_reference(found or seen, new)


class Greedy(MemoryBackend):
    """Deletes the head of a realm's list of catalogs with the garbage."""

    def delete_objects(self, keys: Sequence[ObjectKey]) -> int:
        found = self.read_references(keys[0].realm, ["catalogs"])[0]
        pointer = None if found is None else found.pointer
        taken = [] if pointer is None else [key for key in self.scan_objects_of(keys[0]) if key.id == pointer]
        return super().delete_objects([*keys, *taken])

    def scan_objects_of(self, near: ObjectKey) -> list[ObjectKey]:
        split = self.split_objects(near.realm, 1)[0]
        return self.scan_objects(split, None, 100_000)


@pytest.mark.parametrize("make_backend", [Careless, Greedy])
def test_a_wrong_database_is_found_out(make_backend: type[MemoryBackend]) -> None:
    assert any(Play(seed, make_backend).faults() for seed in range(5))
