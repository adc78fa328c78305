"""Whatever another process does before any call of a collection: every head stays readable, or the other one was refused."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable
from functools import partial

import pytest

from fake_clock import FakeClock
from faulty_backend import FaultyBackend
from headwater.catalogs import Catalogs, ContentKey, IcebergTable, Put
from headwater.errors import (
    CommitTimeoutError,
    ConflictError,
    ExpiredError,
    HeadwaterError,
    NotFoundError,
    RefusedError,
    SwapConflictError,
    UnavailableError,
    UnknownOutcomeError,
)
from headwater.fsck import check_store
from headwater.gc import CollectionResult, collect_realm
from headwater.settings import Settings
from headwater.store import ObjectId, Store
from headwater.store.backends.memory import MemoryBackend
from lakes import HOUR, Act, Meeting, awakenings, lake, make_lake, make_realm, meetings, open_on, put, rows_of
from tiers import Sample, long_but_for

pytestmark = pytest.mark.long

STEP = 149
"""Of the calls of a collection every so many is met, shifted with each call of the sleeper."""
REFUSALS = (
    SwapConflictError,
    CommitTimeoutError,
    ConflictError,
    ExpiredError,
    NotFoundError,
    RefusedError,
    UnavailableError,
    UnknownOutcomeError,  # a catalog that was listed, and not completed
)


@pytest.fixture
def backend() -> MemoryBackend:
    return MemoryBackend()


@pytest.fixture
def prepared(backend: MemoryBackend, settings: Settings, clock: FakeClock) -> dict[str, ObjectId]:
    """A lake that was collected once; since then ``main`` moved on, so that commits wait to be collected.

    Branches ``main``, ``dev`` (at an older commit) and ``gone`` (deleted long ago); returns commits by name.
    """
    store = open_on(backend, settings, clock)
    make_realm(store)
    catalog = make_lake(store)
    commits = {"first": put(catalog, 1)}
    catalog.create_branch("dev")
    clock.advance(HOUR)
    commits["dev"] = put(catalog, 100, branch="dev", table="drafts")
    collect_realm(store, "acme")
    catalog.create_branch("gone")
    commits["gone"] = put(catalog, 200, branch="gone", table="lost")
    commits["kept"] = put(catalog, 2)
    clock.advance(HOUR)
    commits["old"] = put(catalog, 3)
    commits["main"] = put(catalog, 4)
    catalog.delete_branch("gone")
    clock.advance(HOUR)
    return commits


def branch_at(name: str, target: ObjectId, store: Store) -> object:
    return lake(store).create_branch(name, at=target)


def move_to(name: str, target: ObjectId, store: Store) -> object:
    return lake(store).assign_branch(name, target)


def commit_to(name: str, store: Store) -> object:
    return put(lake(store), 9, branch=name)


def branch_and_commit(name: str, target: ObjectId, store: Store) -> object:
    branch_at(name, target, store)
    return commit_to(name, store)


def delete(name: str, store: Store) -> object:
    return lake(store).delete_branch(name)


def delete_and_make_again(name: str, store: Store) -> object:
    lake(store).delete_branch(name)
    return lake(store).create_branch(name, "main")


def make_catalog(store: Store) -> object:
    Catalogs(rows_of(store)).create_catalog("pond", base_location="s3://pond/")
    return put(Catalogs(rows_of(store)).open_catalog("pond"), 1)


def delete_catalog(store: Store) -> object:
    return Catalogs(rows_of(store)).delete_catalog("lake")


ACTS: dict[str, Callable[[dict[str, ObjectId]], Act]] = {
    "puts a branch on an old commit": lambda c: partial(branch_at, "new", c["old"]),
    "puts a branch on a commit kept so far": lambda c: partial(branch_at, "new", c["kept"]),
    "puts a branch on a head": lambda c: partial(branch_at, "new", c["dev"]),
    "puts a branch on the first commit": lambda c: partial(branch_at, "new", c["first"]),
    "makes a deleted branch again where it was": lambda c: partial(branch_at, "gone", c["gone"]),
    "makes a deleted branch again on an old commit": lambda c: partial(branch_at, "gone", c["old"]),
    "puts a branch on an old commit and commits": lambda c: partial(branch_and_commit, "new", c["old"]),
    "assigns a branch to an old commit": lambda c: partial(move_to, "dev", c["old"]),
    "rolls a branch back": lambda c: partial(move_to, "main", c["old"]),
    "rolls a branch back to a commit kept so far": lambda c: partial(move_to, "main", c["kept"]),
    "commits": lambda c: partial(commit_to, "main"),
    "deletes a branch": lambda c: partial(delete, "dev"),
    "makes a branch again that it deletes": lambda c: partial(delete_and_make_again, "dev"),
    "makes a catalog": lambda c: make_catalog,
    "deletes the catalog": lambda c: delete_catalog,
}

ASLEEP = {"puts a branch on an old commit", "rolls a branch back", "makes a branch again that it deletes"}
"""Who sleeps in the quick tests; all do in the long ones."""


@pytest.mark.parametrize("what", ACTS)
def test_no_head_loses_anything_during_a_collection_when_another_process(
    what: str, prepared: dict[str, ObjectId], backend: MemoryBackend, settings: Settings, clock: FakeClock, sample: Sample
) -> None:
    act = ACTS[what](prepared)
    for met in meetings(backend, settings, clock.now(), act, sample.one_in(10, itertools.count(1))):
        assert_sound(met, act)


@pytest.mark.parametrize("what", long_but_for(ASLEEP, ACTS))
def test_head_loses_nothing_when_a_sleeper_wakes_during_a_collection(
    what: str, prepared: dict[str, ObjectId], backend: MemoryBackend, settings: Settings, clock: FakeClock
) -> None:
    act = ACTS[what](prepared)
    for met in awakenings(backend, settings, clock.now(), act, step=STEP):
        assert_sound(met, act)


def assert_sound(met: Meeting, act: Act) -> None:
    """Nothing that lives was lost; who was refused can try again; and later collections find a clean store."""
    where = f"before call {met.call}: {met.acted[0]!r}"
    assert not isinstance(met.acted[0], HeadwaterError) or isinstance(met.acted[0], REFUSALS), where
    assert isinstance(met.collected, CollectionResult | SwapConflictError), f"{where}: {met.collected!r}"
    assert met.faults == [], where
    if isinstance(met.acted[0], HeadwaterError):
        with contextlib.suppress(*REFUSALS):
            act(met.open())
    met.collect_again()
    assert met.faults == [], where
    assert check_store(met.open()) == [], where


def test_branch_is_put_on_no_old_commit_during_a_sweep(
    prepared: dict[str, ObjectId], backend: MemoryBackend, settings: Settings, clock: FakeClock
) -> None:
    store, faulty = open_on(backend, settings, clock), FaultyBackend(backend)
    faulty.intervene("delete_objects", lambda: assert_sweeping(store, prepared["old"]))

    collect_realm(open_on(faulty, settings, clock), "acme")
    assert lake(store).create_branch("new", at=prepared["main"]).head == prepared["main"]


def assert_sweeping(store: Store, old: ObjectId) -> None:
    with pytest.raises(UnavailableError, match="sweeping"):
        branch_at("new", old, store)


def test_branch_is_put_on_a_head_during_a_sweep(
    prepared: dict[str, ObjectId], backend: MemoryBackend, settings: Settings, clock: FakeClock
) -> None:
    store, faulty = open_on(backend, settings, clock), FaultyBackend(backend)
    faulty.intervene("delete_objects", lambda: branch_at("new", prepared["dev"], store) and None)

    collect_realm(open_on(faulty, settings, clock), "acme")
    assert lake(store).branch("new").head == prepared["dev"]


def test_commit_prepared_before_a_collection_is_prepared_again(
    prepared: dict[str, ObjectId], backend: MemoryBackend, settings: Settings, clock: FakeClock
) -> None:
    faulty = FaultyBackend(backend)
    store = open_on(backend, settings, clock)

    def sleep_through_a_collection() -> None:
        clock.advance(settings.commit_timeout_seconds - 1)
        collect_realm(store, "acme")

    faulty.intervene("swap_reference", sleep_through_a_collection)
    content = IcebergTable(metadata_location="s3://lake/late.json")
    done = lake(open_on(faulty, settings, clock)).commit("main", [Put(ContentKey.of("late"), content)])

    assert done.attempts == 2
    assert lake(store).get_content("main", ContentKey.of("late")) is not None
