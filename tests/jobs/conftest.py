"""Each backend, also one that can only do the minimum."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from backend_fixtures import BACKENDS
from fake_clock import FakeClock
from headwater import Settings
from headwater.store import Store
from lakes import open_on
from tiers import long_but_for


@pytest.fixture(params=long_but_for({"memory"}, ["memory", "sqlite", "unordered"]))
def store(request: pytest.FixtureRequest, settings: Settings, clock: FakeClock) -> Iterator[Store]:
    with open_on(BACKENDS[request.param](request), settings, clock) as opened:
        yield opened
