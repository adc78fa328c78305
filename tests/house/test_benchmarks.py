"""Benchmarks are no tests; what shows their figures is tested here."""

from __future__ import annotations

import json
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


def test_the_page_of_performance_shows_the_latest_results(report: ModuleType) -> None:
    from benchmarks.pages import page_with_tables

    page = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    assert page == page_with_tables(page), "run `python -m benchmarks.pages`"


def test_a_row_says_how_far_it_is_from_its_floor_and_its_target(report: ModuleType) -> None:
    row = report.Row("start", "sqlite", 90.0, "s", floor=30.0, target=report.at_most(60)).plain("kubernetes")

    assert (row["ratio"], row["target"], row["met"]) == (3.0, "<= 60", False)


def test_a_quick_run_leaves_the_results_of_a_full_one_alone(
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


def test_a_table_names_what_is_not_met(report: ModuleType) -> None:
    rows = [report.Row("start", "sqlite", 90.0, "s", target=report.at_most(60))]

    assert report.show(rows).splitlines()[1].split() == ["start", "sqlite", "90", "s", "<=", "60", "NO"]
