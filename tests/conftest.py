"""Stores, clocks and settings that every test may use. Each is fresh, in memory or in a temporary folder."""

from __future__ import annotations

import gc
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
import structlog
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings

from backend_fixtures import (
    STORES,
    backend,
    make_backend,
    mongodb_server,
    mongodb_url,
    postgresql_server,
    postgresql_url,
)
from fake_clock import FakeClock
from headwater import Settings, Store, open_store
from headwater.store import RealmId, RealmKey, RealmStore
from tiers import IS_SOAK, Sample, cases_for_soaks, long_but_for, mark_long_cases, tries_less_than_another

FOLDER = Path(__file__).parent
__all__ = ["backend", "make_backend", "mongodb_server", "mongodb_url", "postgresql_server", "postgresql_url"]


# Hypothesis measures by the clock on the wall, and on a machine that is busy with other tests each of its limits is met once in a while.
hypothesis_settings.register_profile("all", deadline=None, suppress_health_check=[HealthCheck.too_slow])
hypothesis_settings.register_profile("quick", hypothesis_settings.get_profile("all"), max_examples=30)
hypothesis_settings.register_profile("soak", hypothesis_settings.get_profile("all"), max_examples=5000)

# Where rich is, structlog colors each traceback that a test logs, and shows all variables: half a second. No program of ours does.
structlog.get_config()["processors"][-1].exception_formatter = structlog.dev.plain_traceback


def pytest_configure(config: pytest.Config) -> None:
    is_quick = config.option.markexpr == "not long"
    hypothesis_settings.load_profile("soak" if IS_SOAK else "quick" if is_quick else "all")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect without the collector of garbage, which goes through all tests found so far again and again: half of the time. What was
    collected stays until the end, and tests that free memory, or fork, need not go through it either."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Part the tiers, and leave out what another test tries, too: of a test that is long as a whole, some moments beside many.

    The tests of a folder stay together, in whatever order: they share servers and JVMs.
    """
    folders: dict[str, list[pytest.Item]] = {}
    for item in items:
        folders.setdefault(item.path.relative_to(FOLDER).parts[0], []).append(item)
    for name, found in folders.items():
        mark_long_cases(found, name)
    is_sample = config.option.markexpr == "long" and not IS_SOAK
    for_soaks = cases_for_soaks(items, config.option.randomly_seed) if is_sample else []
    for item in for_soaks:
        item.add_marker(pytest.mark.soak)
    left_out = {*for_soaks, *(item for item in items if tries_less_than_another(item))}
    config.hook.pytest_deselected(items=list(left_out))
    items[:] = [item for found in folders.values() for item in found if item not in left_out]


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    """Commands that run in the tests' own process set logging up; the next test finds it as it was."""
    yield
    structlog.reset_defaults()


@pytest.fixture(params=["some", pytest.param("many", marks=pytest.mark.long)])
def sample(request: pytest.FixtureRequest) -> Sample:
    """For tests that try the same at every moment of something: the quick ones try a few of them, the long ones many."""
    return Sample(is_quick=request.param == "some")


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def settings() -> Settings:
    """Shipped defaults, but for graces short enough to wait for."""
    return Settings(unsafe_short_graces=True, writer_grace_seconds=60, reader_grace_seconds=60, purge_hold_seconds=60)


@pytest.fixture(params=long_but_for({"memory"}, ["memory", "sqlite"]))
def store_url(request: pytest.FixtureRequest) -> str:
    """An empty store on two of the databases. Folders whose tests ask more of a database take the fixture of all four instead."""
    return STORES[request.param](request)


@pytest.fixture
def store(store_url: str, settings: Settings, clock: FakeClock) -> Iterator[Store]:
    """An empty store on each backend, under a clock that stands still until it is moved."""
    with open_store(store_url, settings=settings, clock=clock) as opened:
        yield opened


@pytest.fixture
def rows(store: Store) -> RealmStore:
    """The rows of a realm ``acme`` without any lifecycle around it."""
    return store.rows(RealmId("acme"), RealmKey(store.new_id()))
