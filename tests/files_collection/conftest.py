"""File tables of a store on SQLite, under a clock that stands still until it is moved."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from collected_tables import HOUR, CollectedTable, make_collected_table

from fake_clock import FakeClock
from headwater import Settings, Store, open_store


@pytest.fixture
def settings() -> Settings:
    """Files stay for three hours, and writers take up to a day: the defaults."""
    return Settings(files_delete_delay_seconds=3 * HOUR, files_writer_grace_seconds=24 * HOUR)


@pytest.fixture
def store(tmp_path: Path, settings: Settings, clock: FakeClock) -> Iterator[Store]:
    with open_store(f"sqlite:///{tmp_path}/store.db", settings=settings, clock=clock) as opened:
        yield opened


@pytest.fixture
def table(store: Store, tmp_path: Path) -> CollectedTable:
    return make_collected_table(store, tmp_path / "orders" / "data")
