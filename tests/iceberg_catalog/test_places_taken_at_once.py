"""A table that comes back and a new one that wants its place: at most one of them is live, whichever way their calls interleave."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path

import pytest
from commits_of_engines import LINES, ORDERS, SALES, SCHEMA

from fake_clock import FakeClock
from faulty_backend import FaultyBackend
from headwater import Settings, Store
from headwater.catalogs import Catalog, Catalogs, TableClaims, release_location
from headwater.errors import HeadwaterError
from headwater.iceberg_catalog import IcebergCatalog, TableCreation
from headwater.realms import RealmRegistry
from headwater.restore import RestoreRequest, RestoreTarget, restore_state
from headwater.store import Backend, ObjectId, RealmStore, id_text
from headwater.store.backends.memory import MemoryBackend
from stopped_actors import Actor
from tiers import IS_SOAK, Sample

LAST = 60
"""Beyond the last call of each act that nobody contests."""
_ENDS = 4
PAUSES = (0, 20)
"""Seconds; the longer one is more than a commit may last, and makes a claim of a commit under way count as left behind."""
MakeRealm = Callable[[Store], Catalog]
MakeWorld = Callable[[MemoryBackend, FakeClock], "World"]


@dataclass
class World:
    """The catalog ``lake`` whose table ``sales.orders`` was dropped on main, as one process has it.

    held          the commit that has it
    document      its metadata file
    """

    store: Store
    place: str
    held: ObjectId
    document: str

    @property
    def lake(self) -> IcebergCatalog:
        return IcebergCatalog.open(self.store, "acme", "lake")

    @property
    def rows(self) -> RealmStore:
        return RealmRegistry(self.store).open_realm("acme")

    @property
    def catalog(self) -> Catalog:
        return Catalogs(self.rows).open_catalog("lake")


Act = Callable[[World], object]


def branch(world: World) -> object:
    return world.catalog.create_branch("old", f"main@{id_text(world.held)}")


def move(world: World) -> object:
    return world.catalog.assign_branch("main", world.held)


def merge(world: World) -> object:
    return world.catalog.merge(f"main@{id_text(world.held)}", "empty")


def transplant(world: World) -> object:
    return world.catalog.transplant(f"main@{id_text(world.held)}", [world.held], "empty")


def restore(world: World) -> object:
    return restore_state(world.rows, ObjectId(7), RestoreRequest(reference="lake/main", aim=RestoreTarget(commit=world.held)))


def register(world: World) -> object:
    return world.lake.tables.register(ORDERS, world.document)


def create(world: World) -> object:
    return world.lake.tables.create(TableCreation(key=LINES, schema=SCHEMA, location=world.place))


def release(world: World) -> object:
    release_location(world.rows, world.place)
    return create(world)


COMING_BACK: tuple[Act, ...] = (branch, move, merge, transplant, restore, register)
TAKING: tuple[Act, ...] = (create, release)


@pytest.fixture
def make_world(make_realm: MakeRealm, warehouse: Path, settings: Settings) -> MakeWorld:
    def make(backend: MemoryBackend, clock: FakeClock) -> World:
        store = Store(backend, url="memory://", settings=settings, clock=clock)
        catalog = make_realm(store)
        lake, place = IcebergCatalog.open(store, "acme", "lake"), (warehouse / "fixed").as_uri()
        lake.namespaces.create(SALES, {})
        catalog.create_branch("empty")
        made = lake.tables.create(TableCreation(key=ORDERS, schema=SCHEMA, location=place))
        head = catalog.resolve("main")
        assert head is not None
        lake.tables.drop(ORDERS)
        return World(store, place, head.id, made.metadata_location)

    return make


def actor_of(backend: Backend, world: World, clock: FakeClock, act: Act) -> Actor:
    faults = FaultyBackend(backend)
    store = Store(faults, url="memory://", settings=world.store.settings, clock=clock)  # type: ignore[arg-type]  # faulty is any backend
    return Actor(faults, partial(act, World(store, world.place, world.held, world.document)), losing=HeadwaterError)


def live_tables(world: World) -> dict[str, set[str]]:
    """The tables with files in the place, by the branches that hold them."""
    found: dict[str, set[str]] = {}
    for each in world.catalog.branches():
        for entry in world.catalog.entries(each.name).entries:
            content = world.catalog.get_content(each.name, entry.key)
            if getattr(content, "metadata_location", "").startswith(world.place):
                found.setdefault(str(entry.content_id), set()).add(each.name)
    return found


def check(world: World, moment: object) -> None:
    live = live_tables(world)
    owner = TableClaims(world.rows).find_location(world.place)
    assert len(live) <= 1, (moment, live)
    if live:
        assert owner is not None and {str(owner.content_id)} == live.keys(), (moment, owner, live)


def moments() -> Iterator[tuple[int, int, int]]:
    """The call before which the first is stopped, the second's, and the seconds in between."""
    ends = range(1, LAST + 1) if IS_SOAK else [*random.sample(range(1, LAST), _ENDS), LAST]
    return product(range(1, LAST), ends, PAUSES)


@pytest.mark.parametrize("taking", TAKING)
@pytest.mark.parametrize("coming", COMING_BACK)
@pytest.mark.parametrize("is_coming_first", [True, False], ids=["coming first", "taking first"])
def test_one_of_two_has_the_place(
    make_world: MakeWorld, coming: Act, taking: Act, is_coming_first: bool, sample: Sample
) -> None:
    """The first runs up to a call, the second up to one of its own or to its end, then each to its end."""
    acts = (coming, taking) if is_coming_first else (taking, coming)
    for one, other, pause_seconds in sample.one_in(97, moments()):
        backend, clock = MemoryBackend(), FakeClock()
        world = make_world(backend, clock)
        actors = [actor_of(backend, world, clock, act) for act in acts]
        actors[0].run_until(one)
        clock.advance(pause_seconds)
        actors[1].run_until(other)
        for actor in actors:
            actor.finish()

        check(world, (one, other, pause_seconds, [actor.error for actor in actors]))


@pytest.mark.parametrize("act", (*COMING_BACK, *TAKING))
def test_interleavings_reach_beyond_the_last_call(make_world: MakeWorld, act: Act) -> None:
    backend, clock = MemoryBackend(), FakeClock()
    world = make_world(backend, clock)
    actor = actor_of(backend, world, clock, act)
    actor.run_until(10_000)
    actor.finish()

    assert actor.error is None
    assert len(actor.faults.calls) < LAST
    check(world, act)
