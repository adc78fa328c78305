"""Benchmarks are no tests; what shows their figures is tested here."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def report(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks import report

    yield report


def test_pages_show_the_latest_results(report: ModuleType) -> None:
    from benchmarks.pages import PAGES, page_with_tables

    pages = [page.read_text(encoding="utf-8") for page in PAGES]
    assert pages == [page_with_tables(page) for page in pages], "run `python -m benchmarks.pages`"


def test_row_says_how_far_it_is_from_floor_and_target(report: ModuleType) -> None:
    row = report.Row("start", "sqlite", 90.0, "s", floor=30.0, target=report.at_most(60)).plain("kubernetes")

    assert (row["ratio"], row["target"], row["met"]) == (3.0, "<= 60", False)


@pytest.mark.parametrize(("rate", "is_met"), [(69.9, False), (70.0, True)])
def test_target_may_be_a_share_of_the_floors_speed(report: ModuleType, rate: float, is_met: bool) -> None:
    row = report.Row("read", "sqlite", rate, "rows/s", floor=100.0, target=report.at_least_of_floor(0.7)).plain("store")

    assert (row["target"], row["met"]) == (">= 0.7 of floor", is_met)


def test_share_of_a_missing_floor_is_a_mistake(report: ModuleType) -> None:
    row = report.Row("read", "sqlite", 1.0, "rows/s", target=report.at_least_of_floor(0.7))

    with pytest.raises(ValueError, match=r"the target is >= 0.7 of floor, but the row has no floor"):
        row.plain("store")


def test_table_of_a_page_tells_what_the_figures_depend_on(
    report: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    rows = [report.Row("read", "postgresql", 50.0, "rows/s", floor=100.0, target=report.at_least_of_floor(0.7))]
    report.write_results("suite", rows, settings={"load_before": 0.25}, is_quick=False, versions={"PostgreSQL": "15.18"})
    about, _, *table = report.markdown(report.read_results("suite")).splitlines()

    assert re.search(r"\(one fsync: [\d.]+ ms\), Python .*, PostgreSQL 15\.18\. Load before the run: 0\.25\.", about)
    assert table[-1] == "| read | postgresql | 50 | rows/s | 100 | 0.5 | >= 0.7 of floor | NO |"


def test_quick_run_leaves_the_results_of_a_full_one_alone(
    report: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report, "RESULTS", tmp_path / "full")
    monkeypatch.setattr(report, "QUICK_RESULTS", tmp_path / "quick")
    row = report.Row("start", "sqlite", 1.0, "s")
    report.write_results("suite", [row], settings={}, is_quick=False)
    kept = report.read_results("suite")
    report.write_results("suite", [row, row], settings={}, is_quick=True)

    assert report.read_results("suite") == kept
    assert len(json.loads((tmp_path / "quick" / "suite.json").read_text())["rows"]) == 2


def test_table_names_what_is_not_met(report: ModuleType) -> None:
    rows = [report.Row("start", "sqlite", 90.0, "s", target=report.at_most(60))]

    assert report.show(rows).splitlines()[1].split() == ["start", "sqlite", "90", "s", "<=", "60", "NO"]


@pytest.fixture
def pictures(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks import pictures

    return pictures


def test_pictures_show_the_latest_results(report: ModuleType) -> None:
    from benchmarks.pages import PICTURES, PREFIX
    from benchmarks.pages import pictures as drawn

    there = {file.name: file.read_text(encoding="utf-8") for file in PICTURES.glob(f"{PREFIX}*.svg")}
    assert there == drawn(), "run `python -m benchmarks.pages`"


@pytest.mark.parametrize("scale", ["linear", "log", "share"])
def test_picture_names_every_line_and_stays_within_its_frame(pictures: ModuleType, scale: str) -> None:
    series = [pictures.Series(name, [(0.5, 3.0), (0.9, 40.0), (0.999, 170.0)]) for name in ("ours & plain", "the <floor>")]
    curve = pictures.Curve("waits", "Waits", "share", "ms", series, x_scale=scale, y_scale="log")
    drawn = ElementTree.fromstring(pictures.picture(curve))
    dots = [(float(dot.get("cx", 0)), float(dot.get("cy", 0))) for dot in drawn.iter("{http://www.w3.org/2000/svg}circle")]

    assert {"ours & plain", "the <floor>"} <= {text.text for text in drawn.iter("{http://www.w3.org/2000/svg}text")}
    assert len(dots) == 6
    assert all(0 < x < pictures.WIDTH and 0 < y < pictures.HEIGHT for x, y in dots)


def test_labels_of_one_place_stand_apart_in_order(pictures: ModuleType) -> None:
    placed = pictures.spread([100, 100, 98, 390], 17, 60, 380)

    assert placed[2] < placed[0] < placed[1] < placed[3] <= 380
    assert min(placed[0] - placed[2], placed[1] - placed[0], placed[3] - placed[1]) >= 17


def test_curve_comes_back_from_the_results_as_it_was(
    report: ModuleType, pictures: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    curve = pictures.Curve("waits", "Waits", "share", "ms", [pictures.Series("ours", [(0.5, 3.0)])], marks=[0.5])
    report.write_results("suite", [], settings={}, is_quick=False, curves=[curve])

    assert [pictures.curve_of(kept) for kept in report.read_results("suite")["curves"]] == [curve]
