"""A lake of a realm, on a store with ordered keys and on one without."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from searched_lake import SearchedLake

from backend_fixtures import BACKENDS
from fake_clock import FakeClock
from headwater import Settings
from headwater.store import Store
from lakes import make_realm, open_on
from tiers import long_but_for


@pytest.fixture(params=long_but_for({"memory"}, ["memory", "unordered"]))
def store(request: pytest.FixtureRequest, settings: Settings, clock: FakeClock) -> Iterator[Store]:
    with open_on(BACKENDS[request.param](request), settings, clock) as opened:
        make_realm(opened)
        yield opened


@pytest.fixture
def lake(store: Store, tmp_path: Path) -> SearchedLake:
    return SearchedLake(store, tmp_path / "lake")
