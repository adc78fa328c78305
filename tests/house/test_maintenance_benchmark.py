"""The suite of maintenance: each part gives rows, of a realm that has in it what it says."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from headwater.clock import SystemClock
from headwater.gc import collect_realm
from headwater.store import open_store

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture
def suite(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT))
    import benchmarks.maintenance

    return benchmarks


def test_littered_realm_has_as_much_garbage_as_it_says(suite: Any, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/littered.db"
    with open_store(url, clock=suite.litter.ShiftedClock(-2 * 24 * 3600)) as behind:
        litter = suite.litter.littered(behind, 200, 0.25)
    with open_store(url) as store:
        found = collect_realm(store, "bench", dry_run=True)

    assert found.garbage == sum(map(len, litter.garbage)) == 50
    assert found.types["iceberg-table"] == {"head": litter.live, "garbage": 50}


def test_shifted_clock_stays_as_far_from_the_machines(suite: Any) -> None:
    ahead = suite.litter.ShiftedClock(3600).now() - SystemClock().now()

    assert ahead == pytest.approx(3_600_000_000, abs=60_000_000)


@pytest.mark.long
def test_every_part_of_the_suite_of_maintenance_gives_rows(suite: Any, tmp_path: Path) -> None:
    scale = suite.maintenance.Scale(sizes=(40, 80), littered=40, rounds=1, branches=(2, 4))
    options = suite.options.read_options(["--only=sweep,purge,mark"], suite.maintenance.PARTS)
    place, curves = suite.places.SqlitePlace(tmp_path), list[Any]()
    found = [row.plain("maintenance") for row in suite.maintenance.measure(place, scale, options, curves)]

    assert all(row["value"] > 0 for row in found)
    assert {row["case"].split(",")[0].split(" of ")[0] for row in found} >= {
        "decisions",
        "deletions",
        "whole collection",
        "purge",
        "mark",
    }
    assert [len(curve.series[0].points) for curve in curves] == [2]
