"""History that a reference got from another one is kept by its own retention, also when the other is gone."""

from __future__ import annotations

import pytest

from fake_clock import FakeClock
from headwater.catalogs import Catalog, Catalogs, ContentKey, IcebergTable, Put
from headwater.gc import collect_realm
from headwater.settings import Settings
from headwater.store import ObjectId, Store
from headwater.store.backends.memory import MemoryBackend
from lakes import HOUR, lake, make_lake, make_realm, open_on, put, rows_of

_BUSY = 30
"""So many commits of claims: more than are kept of them, so that they are cut at a recent time."""


@pytest.fixture
def store(settings: Settings, clock: FakeClock) -> Store:
    """Two branches, the second ten commits ahead of the first, in a realm that was collected since and keeps 25 commits."""
    store = open_on(MemoryBackend(), settings, clock)
    make_realm(store, commits=25)
    made = make_lake(store)
    grow(made, clock, 5, "main")
    made.create_branch("dev")
    grow(made, clock, 10, "dev")
    make_busy(store, clock)
    collect_late(store, clock)
    return store


def grow(catalog: Catalog, clock: FakeClock, commits: int, branch: str) -> None:
    for version in range(commits):
        put(catalog, version, branch=branch)
        clock.advance(60)


def make_busy(store: Store, clock: FakeClock) -> None:
    Catalogs(rows_of(store)).create_catalog("pond", base_location="s3://pond/")
    pond = Catalogs(rows_of(store)).open_catalog("pond")
    for number in range(_BUSY):
        pond.commit("main", [Put(ContentKey.of(f"t{number}"), IcebergTable(metadata_location=f"s3://pond/t{number}/v.json"))])
        clock.advance(60)


def collect_late(store: Store, clock: FakeClock) -> None:
    clock.advance(10 * HOUR)
    collect_realm(store, "acme")
    store.cache.clear()


def count(store: Store, branch: str) -> int:
    return sum(1 for _ in lake(store).log(branch))


def head_of(store: Store, branch: str) -> ObjectId:
    found = lake(store).resolve(branch)
    assert found is not None
    return found.id


def test_branch_put_on_another_keeps_the_history_it_got(store: Store, clock: FakeClock) -> None:
    lake(store).assign_branch("main", head_of(store, "dev"))
    lake(store).delete_branch("dev")
    collect_late(store, clock)
    collect_late(store, clock)

    assert count(store, "main") == 15


def test_branch_made_of_another_keeps_the_history_that_it_got(store: Store, clock: FakeClock) -> None:
    lake(store).create_branch("next", "dev")
    lake(store).delete_branch("dev")
    grow(lake(store), clock, 2, "next")
    collect_late(store, clock)
    collect_late(store, clock)

    assert count(store, "next") == 17


def test_moved_history_begins_where_the_other_was_cut(store: Store, clock: FakeClock) -> None:
    grow(lake(store), clock, 20, "dev")
    collect_late(store, clock)
    lake(store).assign_branch("main", head_of(store, "dev"))
    collect_late(store, clock)

    assert count(store, "main") == 25
