"""A large restoration copies contents in batches that are written before its swap."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from pasts import make_realm, rows_of

from fake_clock import FakeClock
from headwater.catalogs import Catalog, Catalogs, ContentKey, Delete, IcebergTable, Put
from headwater.errors import UnavailableError
from headwater.iceberg.metadata_json import split_metadata
from headwater.restore import RestoreRequest, RestoreTarget, restore_state
from headwater.settings import Settings
from headwater.store import ObjectId, Store
from watched_writes import WatchedWrites

BATCH, TABLES = 4, 20
KEYS = [ContentKey.of(f"t{number:02}") for number in range(TABLES)]


@pytest.fixture
def writes() -> WatchedWrites:
    return WatchedWrites()


@pytest.fixture
def store(writes: WatchedWrites, clock: FakeClock) -> Iterator[Store]:
    with Store(writes, url="memory://", settings=Settings(copy_batch=BATCH), clock=clock) as opened:
        make_realm(opened)
        yield opened
        writes.heal()


@pytest.fixture
def lake(store: Store) -> Catalog:
    Catalogs(rows_of(store)).create_catalog("lake", base_location="s3://lake/")
    return Catalogs(rows_of(store)).open_catalog("lake")


@pytest.fixture
def full(lake: Catalog, writes: WatchedWrites) -> ObjectId:
    """A commit with a document behind every table; the head has dropped them all."""
    puts = []
    for number, key in enumerate(KEYS):
        location = f"s3://lake/{key}"
        parts = split_metadata(json.dumps({"location": location, "number": number}).encode())
        puts.append(Put(key, IcebergTable(metadata_location=f"{location}/metadata/1.json"), metadata=parts))
    done = lake.commit("main", puts)
    assert done.commit_id is not None
    lake.commit("main", [Delete(key) for key in KEYS])
    writes.staged, writes.swapped = [], []
    return done.commit_id


def restore(store: Store, commit: ObjectId) -> None:
    restore_state(rows_of(store), ObjectId(4711), RestoreRequest(reference="lake/main", aim=RestoreTarget(commit=commit)))


def test_large_restoration_writes_in_batches(store: Store, lake: Catalog, full: ObjectId, writes: WatchedWrites) -> None:
    restore(store, full)
    documents = [json.loads(lake.metadata("main", key) or b"{}") for key in KEYS]

    assert [one["number"] for one in documents] == list(range(TABLES))
    assert max(map(len, writes.staged)) == 2 * BATCH
    copied = {"iceberg-table", "iceberg-metadata"}
    assert not any(row.type in copied for rows in writes.swapped for row in rows)


def test_restoration_is_not_seen_before_its_swap(store: Store, lake: Catalog, full: ObjectId, writes: WatchedWrites) -> None:
    writes.fail("write_objects", at=3, times=100_000)
    with pytest.raises(UnavailableError, match="nothing was changed"):
        restore(store, full)
    writes.heal()

    assert lake.count("main") == 0


def test_restoration_is_done_after_a_failed_one(store: Store, lake: Catalog, full: ObjectId, writes: WatchedWrites) -> None:
    writes.fail("write_objects", at=3, times=100_000)
    with pytest.raises(UnavailableError):
        restore(store, full)
    writes.heal()
    restore(store, full)

    assert lake.count("main") == TABLES
