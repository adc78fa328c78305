"""A restoration, or a catalog that comes back, between any two calls of a collection: nothing that a head leads to is missing."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from functools import partial

import pytest

from fake_clock import FakeClock
from headwater import Settings
from headwater.catalogs import Catalogs, ContentKey
from headwater.errors import HeadwaterError
from headwater.restore import RestoreRequest, RestoreTarget, restore_state
from headwater.store import ObjectId, Store
from headwater.store.backends.memory import MemoryBackend
from lakes import HOUR, Act, Meeting, awakenings, lake, make_lake, make_realm, meetings, open_on, put, rows_of
from tiers import Sample

SOAK = bool(os.environ.get("HEADWATER_SOAK"))


def restore_main(commit: ObjectId, store: Store) -> object:
    return restore_state(
        rows_of(store), ObjectId(4711), RestoreRequest(reference="lake/main", aim=RestoreTarget(commit=commit))
    )


def undelete_pond(store: Store) -> object:
    return Catalogs(rows_of(store)).undelete_catalog("pond")


def undelete_branch(store: Store) -> object:
    return lake(store).undelete_branch("gone")


ACTS: dict[str, Callable[[dict[str, ObjectId]], Act]] = {
    "restores a commit that is kept": lambda commits: partial(restore_main, commits["kept"]),
    "restores a commit that is garbage by now": lambda commits: partial(restore_main, commits["old"]),
    "brings a branch back": lambda commits: undelete_branch,
    "brings a catalog back whose hold is over": lambda commits: undelete_pond,
}


@pytest.fixture
def prepared(settings: Settings, clock: FakeClock) -> tuple[MemoryBackend, dict[str, ObjectId]]:
    """A realm that keeps two commits of content, with an old one, a branch deleted just now, and a catalog past its hold."""
    backend = MemoryBackend()
    store = open_on(backend, settings, clock)
    make_realm(store, commits=2)
    made = make_lake(store)
    Catalogs(rows_of(store)).create_catalog("pond", base_location="s3://pond/", hold_seconds=1)
    put(Catalogs(rows_of(store)).open_catalog("pond"), 1)
    Catalogs(rows_of(store)).delete_catalog("pond")
    commits = {}
    for name in ("old", "kept", "new"):
        commits[name] = put(made, len(commits))
        clock.advance(HOUR)
    made.create_branch("gone")
    made.delete_branch("gone")
    return backend, commits


def check(met: Meeting) -> None:
    """Every head is whole, also after one more collection; and who was told that it is done finds it so."""
    assert met.faults == []
    [acted] = met.acted
    opened = met.open()
    if not isinstance(acted, HeadwaterError):
        done = lake(opened).get_content("main", ContentKey.of("orders"))
        assert done is not None
    met.collect_again()
    assert met.faults == []


@pytest.mark.parametrize("act", ACTS if SOAK else ["restores a commit that is kept"])
def test_restoration_during_a_collection_is_whole(
    act: str, prepared: tuple[MemoryBackend, dict[str, ObjectId]], settings: Settings, clock: FakeClock, sample: Sample
) -> None:
    backend, commits = prepared
    for met in meetings(backend, settings, clock.now(), ACTS[act](commits), sample.one_in(5, itertools.count(1))):
        check(met)


@pytest.mark.parametrize("act", ACTS if SOAK else ["brings a branch back", "brings a catalog back whose hold is over"])
@pytest.mark.long
def test_restoration_after_a_long_sleep_is_whole(
    act: str, prepared: tuple[MemoryBackend, dict[str, ObjectId]], settings: Settings, clock: FakeClock
) -> None:
    backend, commits = prepared
    for met in awakenings(backend, settings, clock.now(), ACTS[act](commits), step=7 if SOAK else 61):
        check(met)
