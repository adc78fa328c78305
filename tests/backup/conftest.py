"""A realm with some tables, old enough to be exported, on one database and the target of its import on another."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from archived import SLACK, exported, make_realm, open_lake, put

from fake_clock import FakeClock
from headwater import Settings, Store, open_store


@pytest.fixture
def store(settings: Settings, clock: FakeClock) -> Iterator[Store]:
    """A realm with two tables on main and a branch ``dev`` with a third, all of which can be exported now."""
    with open_store("memory://", settings=settings, clock=clock) as opened:
        make_realm(opened)
        put(opened, "orders", "customers")
        open_lake(opened).create_branch("dev")
        put(opened, "drafts", branch="dev")
        clock.advance(SLACK)
        yield opened


@pytest.fixture
def target(settings: Settings, clock: FakeClock, tmp_path: Path) -> Iterator[Store]:
    """An empty store elsewhere."""
    with open_store(f"sqlite:///{tmp_path}/target.db", settings=settings, clock=clock) as opened:
        yield opened


@pytest.fixture
def archive(store: Store, tmp_path: Path) -> Path:
    return exported(store, tmp_path / "acme.realm").file
