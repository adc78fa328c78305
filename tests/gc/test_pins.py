"""Pins: commits that a task works with stay whole, whatever happens to the references that led there."""

from __future__ import annotations

import pytest

from fake_clock import FakeClock
from headwater.catalogs import Catalog
from headwater.clock import Micros
from headwater.commits import (
    COLLECTION_ID,
    CollectionRecord,
    Commit,
    hold_pins,
    pin_commits,
    read_collection,
    read_pins,
    unpin_commits,
)
from headwater.errors import ExpiredError, RefusedError, UnavailableError
from headwater.gc import collect_realm, sweep
from headwater.store import ObjectId, RealmStore, Store
from headwater.tasks import TaskQueue
from lakes import HOUR, put

OWNER = ObjectId(4711)


def branch_of(lake: Catalog) -> str:
    return f"cat/{lake.definition.id}/heads/main"


def test_pinned_commit_outlives_its_retention(store: Store, lake: Catalog, realm_rows: RealmStore, clock: FakeClock) -> None:
    pinned = put(lake, 1)
    pin_commits(realm_rows, OWNER, {pinned: [branch_of(lake)]})
    for version in range(2, 5):
        put(lake, version)
    clock.advance(HOUR)
    collect_realm(store, "acme")

    assert realm_rows.without_cache().find_object(pinned, Commit) is not None


def test_commit_that_was_unpinned_goes_after_the_grace(
    store: Store, lake: Catalog, realm_rows: RealmStore, clock: FakeClock
) -> None:
    pinned = put(lake, 1)
    pin_commits(realm_rows, OWNER, {pinned: [branch_of(lake)]})
    put(lake, 2)
    assert unpin_commits(realm_rows, OWNER) == 1
    clock.advance(HOUR)
    collect_realm(store, "acme")

    assert realm_rows.without_cache().find_object(pinned, Commit) is None
    assert read_pins(realm_rows) == []


def test_pin_that_is_held_while_a_collection_looks_stays(
    store: Store, lake: Catalog, realm_rows: RealmStore, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    pinned = put(lake, 1)
    pin_commits(realm_rows, OWNER, {pinned: [branch_of(lake)]})
    put(lake, 2)
    clock.advance(HOUR)
    is_active = sweep._is_active

    def is_active_until_it_holds(tasks: TaskQueue, owner: ObjectId) -> bool:
        hold_pins(realm_rows, owner, Micros(clock.now() + 2_000_000 * 3600))  # its last step, behind which it ends
        return is_active(tasks, owner)

    monkeypatch.setattr(sweep, "_is_active", is_active_until_it_holds)
    collect_realm(store, "acme")

    assert [pin.commit for pin in read_pins(realm_rows)] == [pinned]
    assert realm_rows.without_cache().find_object(pinned, Commit) is not None


def test_garbage_cannot_be_pinned(store: Store, lake: Catalog, realm_rows: RealmStore, old_commits: list[ObjectId]) -> None:
    collect_realm(store, "acme")

    with pytest.raises((ExpiredError, RefusedError)):
        pin_commits(realm_rows, OWNER, {old_commits[0]: [branch_of(lake)]})
    assert read_pins(realm_rows) == []


def test_head_alone_can_be_pinned_during_a_sweep(lake: Catalog, realm_rows: RealmStore, clock: FakeClock) -> None:
    old, new = put(lake, 1), put(lake, 2)
    assert read_collection(realm_rows) is None
    realm_rows.insert_object(COLLECTION_ID, CollectionRecord(sweeping=True))
    pin_commits(realm_rows, OWNER, {new: [branch_of(lake)]})

    with pytest.raises(UnavailableError, match="a collection is sweeping"):
        pin_commits(realm_rows, OWNER, {old: [branch_of(lake)]})
    assert [found.commit for found in read_pins(realm_rows)] == [new]
