"""Whatever a seed makes of writers, branchers, workers and landlords, with faults, deaths and stops: nothing is lost, nothing is left.

HEADWATER_SEED=n replays one seed and prints its story; HEADWATER_SOAK=1 goes through thousands.
"""

from __future__ import annotations

import os

import pytest
from plays import Play
from simulated_mutants import SIMULATED

from engines.model import MUTANTS
from headwater.store.backends.memory import MemoryBackend
from tiers import long_but_for

SEED = os.environ.get("HEADWATER_SEED")
SEEDS = 80
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


def test_seed_always_has_the_same_story() -> None:
    assert Play(8).story() == Play(8).story()


@pytest.mark.parametrize("make_backend", SIMULATED)
def test_wrong_database_is_found_out(make_backend: type[MemoryBackend]) -> None:
    promise = MUTANTS[make_backend.__name__].killed_by

    assert any(getattr(fault, "promise", "") == promise for seed in range(40) for fault in Play(seed, make_backend).faults())
