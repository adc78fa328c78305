"""The suite of the server: its parts give rows, with the floors that they name. How fast anything is, no test asks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent

PARTS = ("load", "commits", "decisions", "identity", "listings")
"""The others start more processes; ``--quick`` runs them."""

pytestmark = pytest.mark.long


@pytest.fixture
def suite(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    import benchmarks.server

    return benchmarks


@pytest.mark.rare(3)
def test_parts_of_the_suite_of_the_server_give_rows(suite: Any, tmp_path: Path) -> None:
    place = suite.places.SqlitePlace(tmp_path)
    scale = suite.server_bench.Scale(
        seconds=0.1,
        turns=1,
        clients=2,
        writers=2,
        tables=600,
        few_tables=500,
        pages=2,
        busy=30,
        idle=5,
        starts=1,
        grants=100,
        listed=100,
    )
    rows = []
    with suite.server_bench.load_process() as load:
        bench = suite.server_bench.ServerBench(tmp_path, load, scale)
        for part in PARTS:
            measure, _ = suite.server.MEASURES[part]
            rows += [row.plain("server") for row in measure(bench, place)]

    assert {row["case"].partition(":")[0] for row in rows} == set(PARTS)
    assert all(row["floor"] > 0 for row in rows if row["case"].startswith(("load", "identity", "listings")))
    assert [row["value"] for row in rows if row["case"].endswith(("failed", "failures"))] == [0]
