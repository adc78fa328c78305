"""The proof can fail: each mistake that an engine may make is found in one of a few short stories, and nothing in an engine without."""

from __future__ import annotations

from pathlib import Path

import pytest

from lake_oracle.engine_scripts import SCRIPTS
from lake_oracle.lake_story import tell_script
from lake_oracle.random_lake import LakeEngine, RandomLake
from lake_oracle.reference_engine import EngineMistake, ReferenceEngine
from lake_oracle.report_adapter import HeadwaterReport

pytestmark = pytest.mark.filterwarnings("ignore:Delete operation did not match any records:UserWarning")

SEED = 1


def found_by(title: str, folder: Path, mistakes: set[EngineMistake]) -> set[EngineMistake]:
    """The mistakes that a story shows. Headwater, and the engine without a mistake, have to tell it right."""

    def engines(lake: RandomLake) -> dict[str, LakeEngine]:
        wrong = {str(mistake): ReferenceEngine(mistake) for mistake in mistakes}
        return {"headwater": HeadwaterReport(lake), "books": ReferenceEngine(), **wrong}

    story = tell_script(SEED, folder, engines, SCRIPTS[title])
    assert not {"headwater", "books"} & story.faults.keys(), story.text()
    return {mistake for mistake in mistakes if str(mistake) in story.faults}


def test_engine_that_forgets_views_is_found(tmp_path: Path) -> None:
    assert found_by("views", tmp_path, {EngineMistake.NO_VIEWS}) == {EngineMistake.NO_VIEWS}


@pytest.mark.long
def test_each_mistake_of_an_engine_is_found(tmp_path: Path) -> None:
    left = set(EngineMistake)
    for at, title in enumerate(SCRIPTS):
        left -= found_by(title, tmp_path / str(at), left)

    assert left == set()
