"""A commit that took effect late notes what it left: that stays for the grace, unless a collection had let it go before."""

from __future__ import annotations

import pytest

from fake_clock import FakeClock
from headwater.catalogs import Catalog
from headwater.commits import COLLECTION_ID, CollectionRecord, Commit, assign_reference, load_head
from headwater.errors import ExpiredError, RefusedError
from headwater.gc import collect_realm
from headwater.store import ObjectId, RealmStore, Store
from lakes import HOUR, put, rows_of


def note(rows: RealmStore, lake: Catalog, left: ObjectId) -> None:
    """As the committer does after a swap that ended late."""
    rows.record_move(rows.read_reference(branch_of(lake), fresh=True), left)


def branch_of(lake: Catalog) -> str:
    return f"cat/{lake.definition.id}/heads/main"


def is_there(rows: RealmStore, commit: ObjectId) -> bool:
    return rows.without_cache().find_object(commit, Commit) is not None


def test_commit_that_a_late_one_left_stays_for_the_grace(
    store: Store, lake: Catalog, realm_rows: RealmStore, clock: FakeClock
) -> None:
    left = put(lake, 1)
    put(lake, 2)
    clock.advance(HOUR)  # the second took effect only now
    note(realm_rows, lake, left)
    collect_realm(store, "acme")

    assert is_there(realm_rows, left)


def test_commit_let_go_before_its_note_stops_no_collection(
    store: Store, lake: Catalog, realm_rows: RealmStore, old_commits: list[ObjectId]
) -> None:
    collect_realm(store, "acme")
    note(realm_rows, lake, old_commits[0])

    assert collect_realm(store, "acme").garbage >= 0
    assert not is_there(realm_rows, old_commits[0])


def test_note_brings_nothing_back_that_a_collection_has_let_go(
    store: Store, lake: Catalog, realm_rows: RealmStore, old_commits: list[ObjectId]
) -> None:
    collect_realm(store, "acme", dry_run=True)
    copies = realm_rows.without_cache().find_object(old_commits[0], Commit)
    assert copies is not None
    collect_realm(store, "acme")
    realm_rows.write_objects([(old_commits[0], copies)])  # as if its row were the last that a late delete reaches
    note(realm_rows, lake, old_commits[0])

    with pytest.raises(RefusedError, match="may be collected at any time"):
        assign_reference(rows_of(store), branch_of(lake), old_commits[0], expected=old_commits[-1], among=())


def test_late_commit_notes_what_it_left_while_a_collection_sweeps(
    lake: Catalog, realm_rows: RealmStore, clock: FakeClock
) -> None:
    left = put(lake, 1)
    realm_rows.insert_object(COLLECTION_ID, CollectionRecord(sweeping=True))
    put(lake, 2)
    note(realm_rows, lake, left)

    assert [move.pointer for move in realm_rows.read_reference(branch_of(lake), fresh=True).moves] == [left]


def test_noted_commit_is_kept_by_every_collection_within_the_grace(
    store: Store, lake: Catalog, realm_rows: RealmStore, clock: FakeClock
) -> None:
    left = put(lake, 1)
    put(lake, 2)
    clock.advance(HOUR)
    note(realm_rows, lake, left)
    for _ in range(3):
        collect_realm(store, "acme")

    assert is_there(realm_rows, left)
    assert assign_reference(rows_of(store), branch_of(lake), left, expected=head_of(realm_rows, lake), among=()).pointer == left


def head_of(rows: RealmStore, lake: Catalog) -> ObjectId | None:
    return rows.read_reference(branch_of(lake), fresh=True).pointer


def test_head_of_a_tombstone_that_was_collected_is_no_damage(
    store: Store, lake: Catalog, realm_rows: RealmStore, clock: FakeClock
) -> None:
    put(lake, 1)
    lake.create_branch("old")
    put(lake, 2, branch="old")
    lake.delete_branch("old")
    seen = realm_rows.find_row(f"cat/{lake.definition.id}/heads/old")
    assert seen is not None and seen.pointer is not None
    realm_rows.delete_unchanged([key for batch in realm_rows.scan_objects() for key in batch if key.id == seen.pointer])

    with pytest.raises(ExpiredError, match="collected"):
        load_head(realm_rows.without_cache(), seen)
