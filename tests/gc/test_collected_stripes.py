"""Indexes that have spilled, through collections: what kept commits need stays, and stripes that only older ones had go."""

from __future__ import annotations

import dataclasses
import random

import pytest

from fake_clock import FakeClock
from headwater.catalogs import Catalog, ContentKey, Delete, IcebergTable, Put, reference_names
from headwater.commits import COLLECTION_ID, CollectionRecord, mark_reachable
from headwater.errors import ExpiredError
from headwater.fsck import check_store
from headwater.gc import collect_realm
from headwater.settings import Settings
from headwater.store import ObjectId, RealmStore, Store, id_text
from headwater.store.backends.memory import MemoryBackend
from lakes import HOUR, lake, make_lake, make_realm, open_on, put, rows_of

TABLES = [f"t{number:03}" for number in range(200)]
SPILLED = ("stripe", "stripe-list")


@pytest.fixture
def store(settings: Settings, clock: FakeClock) -> Store:
    """A realm that keeps three commits, with indexes in stripes of 1 KiB."""
    small = dataclasses.replace(settings, index_embedded_bytes=512, index_stripe_bytes=1024)
    opened = open_on(MemoryBackend(), small, clock)
    make_realm(opened, commits=3)
    return opened


@pytest.fixture
def wide(store: Store, clock: FakeClock) -> Catalog:
    """A lake with 200 tables and thirty commits of which most changed a few of them, all long ago."""
    catalog, chance = make_lake(store), random.Random(5)
    catalog.commit(None, [Put(ContentKey.of(name), IcebergTable(metadata_location=f"s3://lake/{name}")) for name in TABLES])
    for version in range(30):
        for table in chance.sample(TABLES, 3):
            put(catalog, version, table=table)
    clock.advance(HOUR)
    return catalog


def stripes(rows: RealmStore) -> set[ObjectId]:
    """Of the branches' indexes: a catalog notes in one of its own which metadata files it has known."""
    names = [entry.name for entry in reference_names(rows) if not entry.is_content]
    noted = reached(rows, [row.pointer for row in rows.find_rows(names) if row is not None and row.pointer is not None])
    return {key.id for batch in rows.scan_objects() for key in batch if key.type in SPILLED} - noted


def reached(rows: RealmStore, roots: list[ObjectId]) -> set[ObjectId]:
    found: set[ObjectId] = set()
    mark_reachable(rows.without_cache(), roots, lambda new, _: new not in found and not found.add(new))  # type: ignore[func-returns-value]
    return found


def test_stripes_stay_as_long_as_a_kept_commit_holds_them(store: Store, wide: Catalog) -> None:
    rows = rows_of(store)
    before = stripes(rows)
    kept = [entry.id for entry in wide.log(limit=3)]
    collect_realm(store, "acme")

    assert stripes(rows) == reached(rows, kept) & before
    assert 0 < len(stripes(rows)) < len(before)
    assert check_store(store) == []


def test_kept_commits_read_the_same_after_a_collection(store: Store, wide: Catalog) -> None:
    kept = [entry.hash for entry in wide.log(limit=3)]
    before = [wide.entries(one).entries for one in kept]
    collect_realm(store, "acme")
    store.cache.clear()

    assert [lake(store).entries(one).entries for one in kept] == before
    assert {len(entries) for entries in before} == {200}


def test_page_past_a_collection_says_that_it_has_expired(store: Store, wide: Catalog) -> None:
    old = next(entry for entry in wide.log() if entry.seq == 20)
    token = wide.entries(old.hash, limit=50).next_token
    collect_realm(store, "acme")
    with pytest.raises(ExpiredError, match="without a page token"):
        wide.entries(page_token=token)


def test_page_in_the_middle_of_a_sweep_has_expired(store: Store, wide: Catalog) -> None:
    """The stripe goes before its commit, and the sweep is broken off in between."""
    rows, head = rows_of(store), wide.resolve()
    assert head is not None
    token = wide.entries(limit=50).next_token
    wide.commit(None, [Delete(ContentKey.of(name)) for name in TABLES])
    gone = reached(rows, [head.id]) & stripes(rows)
    rows.delete_unchanged([key for batch in rows.scan_objects() for key in batch if key.id in gone])
    rows.insert_object(COLLECTION_ID, CollectionRecord(sweeping=True))
    with pytest.raises(ExpiredError, match="without a page token"):
        wide.entries(page_token=token)


def test_lost_stripe_is_found_by_fsck(store: Store, wide: Catalog) -> None:
    rows, head = rows_of(store), wide.resolve()
    assert head is not None
    lost = min(reached(rows, [head.id]) & stripes(rows))
    rows.delete_unchanged([key for batch in rows.scan_objects() for key in batch if key.id == lost])

    assert [(one.code, id_text(lost) in one.message) for one in check_store(store)] == [("OBJECT_UNREADABLE", True)]
