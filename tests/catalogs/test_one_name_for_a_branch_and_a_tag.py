"""A branch and a tag of one name, wanted at the same moment: one is made, whichever way the calls of the two interleave."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product

import pytest

from backend_fixtures import STORES
from fake_clock import FakeClock
from faulty_backend import FaultyBackend
from headwater import Settings, Store, open_store
from headwater.catalogs import CATALOGS, Catalog, Catalogs, Namespace, Put
from headwater.catalogs.content import ContentKey
from headwater.errors import ConflictError
from headwater.store import Backend, RealmId, RealmKey
from headwater.store.backends.memory import MemoryBackend
from stopped_actors import WAIT_SECONDS, Actor
from tiers import Sample

KEY = RealmKey(4711)
LAST = 21
"""Beyond the last call of a creation that nobody contests."""
Act = Callable[[Catalog], object]


def lake_on(backend: Backend | FaultyBackend, settings: Settings, clock: FakeClock) -> Catalog:
    """The lake as a process of its own has it."""
    store = Store(backend, url="memory://", settings=settings, clock=clock)  # type: ignore[arg-type]  # faulty is any backend
    store.new_id()
    return Catalogs(store.rows(RealmId("acme"), KEY)).open_catalog("lake")


def make_lake(store: Store) -> None:
    rows = store.rows(RealmId("acme"), KEY)
    rows.ensure_reference(CATALOGS)
    Catalogs(rows).create_catalog("lake", base_location="s3://lake/")
    Catalogs(rows).open_catalog("lake").commit("main", [Put(ContentKey.of("sales"), Namespace())])


def actor_of(backend: MemoryBackend, settings: Settings, clock: FakeClock, act: Act) -> Actor:
    faults = FaultyBackend(backend)
    return Actor(faults, partial(act, lake_on(faults, settings, clock)), losing=ConflictError)


def calls_of(act: Act, settings: Settings) -> int:
    backend, clock = MemoryBackend(), FakeClock()
    make_lake(Store(backend, url="memory://", settings=settings, clock=clock))
    faults = FaultyBackend(backend)
    lake = lake_on(faults, settings, clock)
    before = len(faults.calls)
    act(lake)
    return len(faults.calls) - before


def branch(lake: Catalog) -> object:
    return lake.create_branch("x")


def tag(lake: Catalog) -> object:
    return lake.create_tag("x")


def old_branch(lake: Catalog) -> object:
    return lake.undelete_branch("old")


def old_tag(lake: Catalog) -> object:
    return lake.create_tag("old")


def living(lake: Catalog, name: str) -> list[str]:
    return [kind for kind, found in (("branch", lake.branches()), ("tag", lake.tags())) if name in {one.name for one in found}]


@pytest.mark.long
@pytest.mark.parametrize(
    ("first", "second", "name"),
    [(branch, tag, "x"), (tag, branch, "x"), (old_branch, old_tag, "old"), (old_tag, old_branch, "old")],
    ids=["branch and tag", "tag and branch", "undeleted and tag", "tag and undeleted"],
)
def test_interleaved_creations_make_one(settings: Settings, first: Act, second: Act, name: str, sample: Sample) -> None:
    """The first runs up to a call, the second up to one of its own, then each to its end."""
    for one, other in sample.one_in(7, product(range(1, LAST), range(1, LAST))):
        backend, clock = MemoryBackend(), FakeClock()
        make_lake(Store(backend, url="memory://", settings=settings, clock=clock))
        lake = lake_on(backend, settings, clock)
        lake.create_branch("old")
        lake.delete_branch("old")
        actors = [actor_of(backend, settings, clock, act) for act in (first, second)]
        actors[0].run_until(one)
        actors[1].run_until(other)
        for actor in actors:
            actor.finish()

        made = living(lake, name)
        assert (len(made), [actor.error is None for actor in actors].count(True)) == (1, 1), (one, other, made)


def test_interleavings_reach_beyond_the_last_call(settings: Settings) -> None:
    assert max(calls_of(act, settings) for act in (branch, tag)) < LAST


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    yield STORES[request.param](request)


def test_branch_and_tag_that_race_for_a_name_make_one(url: str, settings: Settings) -> None:
    with open_store(url, settings=settings) as store, open_store(url, settings=settings) as other:
        make_lake(store)
        lakes = [Catalogs(one.rows(RealmId("acme"), KEY)).open_catalog("lake") for one in (store, other)]
        for number in range(40):
            name, errors = f"x{number}", list[Exception]()
            together = threading.Barrier(2)

            def race(act: Callable[[str], object], name: str = name, errors: list[Exception] = errors) -> None:
                together.wait(WAIT_SECONDS)  # noqa: B023  joined below
                try:
                    act(name)
                except ConflictError as lost:
                    errors.append(lost)

            racers = [threading.Thread(target=race, args=(act,)) for act in (lakes[0].create_branch, lakes[1].create_tag)]
            for racer in racers:
                racer.start()
            for racer in racers:
                racer.join(WAIT_SECONDS)

            assert (len(living(lakes[0], name)), len(errors)) == (1, 1)
