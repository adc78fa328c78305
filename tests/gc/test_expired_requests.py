"""Requests that expired on a branch without further commits are dropped by a collection, where they are many."""

from __future__ import annotations

import pytest

from fake_clock import FakeClock
from headwater.catalogs import REQUESTS, Catalog, ContentKey, IcebergTable, Put, drop_old_requests
from headwater.catalogs.catalog_gc import REQUESTS_LEFT
from headwater.catalogs.registry import RefKind, content_reference
from headwater.catalogs.request_log import note_request
from headwater.commits import Transaction, commit_change
from headwater.gc import collect_realm
from headwater.settings import Settings
from headwater.store import RealmStore, Store
from lakes import put
from request_keys import make_request


def note_many(rows: RealmStore, lake: Catalog, count: int) -> None:
    """As many commits would."""

    def change(tx: Transaction) -> None:
        for number in range(count):
            note_request(tx, make_request(number, at=tx.time))

    commit_change(rows, content_reference(lake.definition.id, RefKind.BRANCH, "main"), change)


def noted(lake: Catalog, branch: str = "main") -> int:
    head = lake.resolve(branch)
    return 0 if head is None else len(head.index(REQUESTS))


@pytest.fixture
def busy(realm_rows: RealmStore, lake: Catalog) -> Catalog:
    put(lake, 1)
    note_many(realm_rows, lake, REQUESTS_LEFT)
    return lake


def test_collection_drops_many_expired_requests(store: Store, busy: Catalog, clock: FakeClock, settings: Settings) -> None:
    clock.advance(settings.requests_kept_seconds + 1)
    collect_realm(store, "acme")

    entry = next(iter(busy.log("main")))
    assert noted(busy) == 0
    assert (entry.message, entry.meta.authors, entry.operations) == ("drop expired requests", ("headwater",), ())


def test_collection_leaves_young_requests(store: Store, busy: Catalog) -> None:
    before = busy.branch("main").head
    collect_realm(store, "acme")

    assert busy.branch("main").head == before


def test_collection_leaves_few_expired_requests_to_commits(
    store: Store, busy: Catalog, clock: FakeClock, settings: Settings
) -> None:
    clock.advance(settings.requests_kept_seconds + 1)
    put(busy, 2)
    before = busy.branch("main").head
    collect_realm(store, "acme")

    assert busy.branch("main").head == before
    assert noted(busy) == REQUESTS_LEFT - 100


def test_branches_on_one_commit_get_one_commit_together(
    realm_rows: RealmStore, busy: Catalog, clock: FakeClock, settings: Settings
) -> None:
    busy.create_branch("dev")
    clock.advance(settings.requests_kept_seconds + 1)

    assert drop_old_requests(realm_rows) == REQUESTS_LEFT
    assert sorted([noted(busy), noted(busy, "dev")]) == [0, REQUESTS_LEFT]
    assert busy.commit("dev", [Put(ContentKey.of("t"), IcebergTable(metadata_location="s3://lake/t/v1.json"))]).changed
