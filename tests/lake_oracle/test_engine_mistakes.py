"""The proof can fail: each mistake that an engine may make is found in one of a few short stories, and nothing in an engine without."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headwater.lake_files.place_markers import MarkerState
from headwater.lake_files.report_rules import ReportRules
from lake_oracle.engine_scripts import SCRIPTS
from lake_oracle.lake_story import MakeEngines, tell_script
from lake_oracle.random_lake import LakeEngine, RandomLake
from lake_oracle.reference_engine import EngineMistake, ReferenceEngine
from lake_oracle.report_adapter import HeadwaterReport

pytestmark = pytest.mark.filterwarnings("ignore:Delete operation did not match any records:UserWarning")

SEED = 1
FILES = "headwater.lake_files"
OWN_MISTAKES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "logs are forgotten": ("odd names", "is live, and is", {f"{FILES}.document_files.logged_files": lambda document: ()}),
    "statistics are forgotten": (
        "metadata",
        "is live, and is",
        {f"{FILES}.document_files.statistics_files": lambda document: ()},
    ),
    "undocumented content is forgotten": (
        "undocumented",
        "is live, and is",
        {f"{FILES}.stored_versions._RealmVersions._undocumented": lambda self, values: iter(())},
    ),
    "existing entries are ignored": (
        "writers",
        "is live, and is",
        {
            "headwater.iceberg.manifest_entries._DELETED": 0,
            "headwater.iceberg.manifest_entries._EXISTING": 2,
            f"{FILES}.live_walk.LiveWalk._contradiction": lambda self, said, read: (
                None
            ),  # which finds that by the list's numbers
        },
    ),
    "paths are compared strictly alone": ("odd names", "a careless reader", {f"{FILES}.file_comparison.loose_key": str}),
    "missing files are no matter": (
        "harm: lose_live_file",
        "is not blocked, and should be for ['LiveNotListed']",
        {f"{FILES}.file_comparison._missing": lambda *given: ({}, 0)},
    ),
    "markers are no matter": (
        "copies",
        "is not blocked, and should be for ['MarkerDiffers']",
        {f"{FILES}.place_markers.PlaceMarkers.judge": lambda self, location, found: (MarkerState.SOUND, "")},
    ),
    "takes are no matter": (
        "takes",
        "is due after",
        {f"{FILES}.report_run._Takes.took_up": lambda self, content_id, path: False},
    ),
    "faults are no matter": (
        "harm: register_broken",
        "is not blocked, and should be for ['ReferrerUnreadable']",
        {f"{FILES}.live_walk.LiveWalk._finish": lambda self: None},
    ),
}
"""Mistakes of our own engine: the story that shows it, a piece of the fault that tells of it, and what makes it."""


def faults_of(title: str, folder: Path, make_engines: MakeEngines) -> dict[str, list[str]]:
    story = tell_script(SEED, folder, make_engines, SCRIPTS[title])
    assert "books" not in story.faults, story.text()
    return story.faults


def found_by(title: str, folder: Path, mistakes: set[EngineMistake]) -> set[EngineMistake]:
    """The mistakes that a story shows. Headwater, and the engine without a mistake, have to tell it right."""

    def engines(lake: RandomLake) -> dict[str, LakeEngine]:
        wrong = {str(mistake): ReferenceEngine(mistake) for mistake in mistakes}
        return {"headwater": HeadwaterReport(lake), "books": ReferenceEngine(), **wrong}

    faults = faults_of(title, folder, engines)
    assert faults.get("headwater", []) == []
    return {mistake for mistake in mistakes if str(mistake) in faults}


def ours(lake: RandomLake) -> dict[str, LakeEngine]:
    return {"headwater": HeadwaterReport(lake), "books": ReferenceEngine()}


def test_engine_that_forgets_views_is_found(tmp_path: Path) -> None:
    assert found_by("views", tmp_path, {EngineMistake.NO_VIEWS}) == {EngineMistake.NO_VIEWS}


@pytest.mark.rare(3)
@pytest.mark.long
def test_each_mistake_of_an_engine_is_found(tmp_path: Path) -> None:
    left = set(EngineMistake)
    for at, title in enumerate(SCRIPTS):
        left -= found_by(title, tmp_path / str(at), left)

    assert left == set()


@pytest.mark.long
@pytest.mark.parametrize("mistake", OWN_MISTAKES)
def test_mistake_of_our_own_engine_is_found(mistake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    title, piece, wrong = OWN_MISTAKES[mistake]
    for name, replacement in wrong.items():
        monkeypatch.setattr(name, replacement)

    faults = faults_of(title, tmp_path, ours)["headwater"]
    assert any(piece in fault for fault in faults), faults


@pytest.mark.long
def test_engine_that_takes_guests_for_its_own_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right: Callable[..., ReportRules] = ReportRules.of_catalog
    monkeypatch.setattr(ReportRules, "of_catalog", lambda *given: _with_any_home(right(*given)))

    assert faults_of("guests", tmp_path, ours)["headwater"]


def _with_any_home(rules: ReportRules) -> ReportRules:
    return ReportRules(
        check_going=rules.check_going,
        is_home=lambda content_id: True,
        waits=rules.waits,
        prefixes=rules.prefixes,
        blocks=rules.blocks,
    )
