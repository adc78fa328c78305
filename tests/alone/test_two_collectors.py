"""Two collectors of one realm at once, whose clocks differ as far as clocks may."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from deaths import SETTINGS, copied, open_on
from grounds_of_work import HOUR, faults_of_realm, make_garbage, make_realm

from fake_clock import FakeClock
from faulty_backend import FaultyBackend
from headwater.catalogs import ContentKey, IcebergTable, Put
from headwater.errors import HeadwaterError, UnavailableError
from headwater.gc import CollectionResult, collect_realm
from headwater.store import Store
from headwater.store.backends.memory import MemoryBackend

pytestmark = pytest.mark.long

BOUND = SETTINGS.clock_bound_seconds - 0.000_01
"""These clocks stand still, so that each commit on a reference lies a microsecond further ahead of its maker's clock."""


def ahead(clock: FakeClock, seconds: float) -> FakeClock:
    return FakeClock(clock.now() + round(seconds * 1_000_000))


@pytest.fixture(scope="module")
def prepared() -> tuple[MemoryBackend, int]:
    """A realm with garbage, and a branch that has left its commit so long ago that the faster clock alone takes it for garbage."""
    backend, clock = MemoryBackend(), FakeClock()
    catalog = make_realm(open_on(backend, clock))
    catalog.commit(None, [Put(ContentKey.of("early"), IcebergTable(metadata_location="s3://lake/early.json"))])
    catalog.create_branch("side", "main")
    early = catalog.branch("side").head
    make_garbage(catalog, clock)
    clock.advance(HOUR)
    target = catalog.branch("main").head
    assert target is not None
    catalog.assign_branch("side", target, expected=early)
    clock.advance(SETTINGS.reader_grace_seconds + SETTINGS.commit_timeout_seconds - 0.5 * BOUND)
    return backend, clock.now()


def run(store: Store) -> CollectionResult | HeadwaterError:
    try:
        return collect_realm(store, "acme")
    except HeadwaterError as fault:
        return fault


def meetings(
    prepared: MemoryBackend, start: int, *, seconds_ahead: float, step: int
) -> Iterator[tuple[int, object, object, Store]]:
    """The first collector's call before which the second one ran, how both ended, and the store that they left."""
    for call in itertools.count(1, step):
        backend, clock, others = copied(prepared), FakeClock(start), list[object]()
        second = open_on(backend, ahead(clock, seconds_ahead))
        faulty = FaultyBackend(backend)
        faulty.intervene("*", lambda: others.append(run(second)), at=call)  # noqa: B023 - called before the next round
        first = run(open_on(faulty, clock))
        if not others:
            return
        yield call, first, others[0], open_on(backend, ahead(clock, 2 * HOUR))


@pytest.mark.parametrize("seconds_ahead", [0, BOUND, -BOUND])
def test_collectors_of_one_realm_end_or_come_again(prepared: tuple[MemoryBackend, int], seconds_ahead: float) -> None:
    for call, first, second, store in meetings(*prepared, seconds_ahead=seconds_ahead, step=5):
        assert isinstance(first, CollectionResult | UnavailableError), (call, first)
        assert isinstance(second, CollectionResult | UnavailableError), (call, second)
        assert isinstance(first, CollectionResult) or isinstance(second, CollectionResult), call
        assert faults_of_realm(store, FakeClock()) == [], call


def test_collector_with_a_late_clock_misses_nothing_let_go(
    prepared: tuple[MemoryBackend, int],
) -> None:
    backend, clock = copied(prepared[0]), FakeClock(prepared[1])
    before = collect_realm(open_on(backend, ahead(clock, BOUND)), "acme").deleted
    behind = open_on(backend, clock)

    assert before > 0
    assert [collect_realm(behind, "acme").deleted for _ in range(3)][1:] == [0, 0]
