"""A reference that holds the metadata of tables, and documents of a growing one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from metadata_shelves import TABLES, Shelf, snapshot_of

from fake_clock import FakeClock
from headwater import Settings, open_store
from headwater.store import RealmId, RealmKey, RealmStore


@pytest.fixture
def shelf(rows: RealmStore) -> Shelf:
    rows.ensure_reference(TABLES)
    return Shelf(rows)


@pytest.fixture(scope="module")
def make_shelf() -> Iterator[Callable[[], Shelf]]:
    """Each on rows of its own, in one store in memory."""
    with open_store("memory://", settings=Settings(), clock=FakeClock()) as store:

        def make() -> Shelf:
            rows = store.rows(RealmId("acme"), RealmKey(store.new_id()))
            rows.ensure_reference(TABLES)
            return Shelf(rows)

        yield make


@pytest.fixture
def make_document() -> Callable[[int, int], dict[str, Any]]:
    """A table whose snapshots from one number to another are there, with summaries as engines write them."""

    def make(first: int, end: int) -> dict[str, Any]:
        snapshots = [snapshot_of(number) for number in range(first, end)]
        return {
            "format-version": 2,
            "location": "s3://lake/sales/orders",
            "last-sequence-number": end,
            "last-updated-ms": 1_750_000_000_000 + end,
            "schemas": [{"schema-id": 0, "fields": [{"id": at, "name": f"column_{at}", "type": "string"} for at in range(60)]}],
            "properties": {"owner": "ada"},
            "refs": {"main": {"snapshot-id": snapshots[-1]["snapshot-id"], "type": "branch"}} if snapshots else {},
            "snapshots": snapshots,
            "snapshot-log": [{"snapshot-id": one["snapshot-id"], "timestamp-ms": one["timestamp-ms"]} for one in snapshots],
            "metadata-log": [{"metadata-file": f"s3://lake/v{number}.json"} for number in range(max(end - 100, 0), end)],
        }

    return make
