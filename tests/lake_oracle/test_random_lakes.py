"""Random lakes, and what reports say of them: no live file is ever a candidate, every dead one is, and blocked places say why.

Every lake has a seed, which is shown with its history when something is wrong. HEADWATER_SEED=number tries that one alone (and as many
as HEADWATER_LAKES says from there on); HEADWATER_SOAK=1 tries hundreds.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lake_oracle.lake_story import LakeStory, MakeEngines, tell_story
from lake_oracle.random_lake import RandomLake
from lake_oracle.reference_engine import ReferenceEngine
from lake_oracle.report_adapter import HeadwaterReport
from tiers import IS_SOAK

pytestmark = pytest.mark.filterwarnings("ignore:Delete operation did not match any records:UserWarning")

GIVEN = int(os.environ.get("HEADWATER_SEED", "0"))
LAKES = int(os.environ.get("HEADWATER_LAKES", "1" if GIVEN else "300" if IS_SOAK else "20"))
FIRST = GIVEN or (int.from_bytes(os.urandom(3), "big") if IS_SOAK else 1)
SHARES = 5
"""The lakes are tried by so many tests, which may run side by side."""


def engines(lake: RandomLake) -> dict[str, ReferenceEngine | HeadwaterReport]:
    """Headwater, and beside it the engine of the books: where that has faults, it is the books that are wrong."""
    return {"books": ReferenceEngine(), "headwater": HeadwaterReport(lake)}


def told(seed: int, folder: Path, make_engines: MakeEngines = engines, **options: int) -> LakeStory:
    story = tell_story(seed, folder / str(seed), make_engines, **options)
    assert not story.faults, story.text()
    return story


@pytest.mark.parametrize("seed", [3])
def test_reports_of_a_small_lake_are_right(seed: int, tmp_path: Path) -> None:
    assert told(seed, tmp_path, steps=4).checked["live"]


@pytest.mark.long
@pytest.mark.parametrize("share", range(SHARES))
def test_reports_of_random_lakes_are_right(share: int, tmp_path: Path) -> None:
    checked: dict[str, int] = {}
    for seed in range(FIRST + share, FIRST + LAKES, SHARES):
        for what, count in told(seed, tmp_path).checked.items():
            checked[what] = checked.get(what, 0) + count

    assert GIVEN or checked["live"] > 100
