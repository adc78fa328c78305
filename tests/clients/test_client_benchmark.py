"""The suite that measures the client: each part gives rows, for both contenders. How fast anything is, no test asks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def suite(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT))
    import benchmarks.client

    return benchmarks


def test_every_part_of_the_suite_of_the_client_gives_rows(suite: Any, tmp_path: Path) -> None:
    scale = suite.client.Scale(listed=20, calls=1, rounds=1, writers=2, turns=1, seconds=0.05)
    options = suite.options.read_options([], suite.client.PARTS)
    found = [row.plain("client") for row in suite.client.measure(suite.places.SqlitePlace(tmp_path), tmp_path, scale, options)]

    assert all(row["value"] > 0 and row["floor"] > 0 for row in found if row["case"].startswith("one writer"))
    assert {row["case"].split(":")[0].split(",")[0] for row in found} == {"one writer", "2 writers"}
