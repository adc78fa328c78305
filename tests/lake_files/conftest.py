"""A lake whose tables pyiceberg writes into a folder, in a store whose graces are short and whose clock stands still until it is moved."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from reported_lake import ReportedLake, open_reported_lake

from fake_clock import FakeClock


@pytest.fixture
def lake(clock: FakeClock, tmp_path: Path) -> Iterator[ReportedLake]:
    with open_reported_lake(f"sqlite:///{tmp_path}/headwater.db", clock, tmp_path / "warehouse") as opened:
        yield opened
