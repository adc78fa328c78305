"""A merge of what was merged before, and undone by a restoration since: it asks, and never reports that nothing is left."""

from __future__ import annotations

import pytest
from pasts import contents, drop, put, request, restored

from headwater import Store
from headwater.catalogs import Catalog, ContentKey, KeyMerge, MergeConflictError, MergeMode, MergeOptions
from headwater.store import ObjectId

V1, V2 = "s3://lake/orders/metadata/1.json", "s3://lake/orders/metadata/2.json"
AGAIN = MergeOptions(mode=MergeMode.FORCE)


@pytest.fixture
def store_url() -> str:
    return "memory://"


@pytest.fixture
def before(lake: Catalog) -> ObjectId:
    """``main`` with a table, and ``dev`` with its second version: merged."""
    commit = put(lake, "orders")
    lake.create_branch("dev")
    put(lake, "orders", 2, branch="dev")
    lake.merge("dev", "main")
    return commit


def undo(store: Store, before: ObjectId) -> ObjectId:
    restored(store, request("lake/main", before, is_commit=True))
    return before


def conflicts(lake: Catalog, source: str = "dev", into: str = "main") -> dict[str, str]:
    with pytest.raises(MergeConflictError) as caught:
        lake.merge(source, into)
    return {str(each.key): f"{each.kind} {each.message}" for each in caught.value.result.conflicts}


def test_merge_of_what_a_restore_undid_is_a_conflict_that_names_the_restore(
    store: Store, lake: Catalog, before: ObjectId
) -> None:
    undo(store, before)
    newest = next(iter(lake.log("main")))
    told = conflicts(lake)

    assert told["orders"].startswith("VALUE_DIFFERS was merged before, and commit ")
    assert newest.hash in told["orders"]
    assert contents(lake) == {"orders": V1}


def test_what_a_restore_undid_is_merged_again_by_force(store: Store, lake: Catalog, before: ObjectId) -> None:
    undo(store, before)
    one = lake.merge("dev", "main", options=MergeOptions(keys={ContentKey.of("orders"): KeyMerge(mode=MergeMode.FORCE)}))

    assert one.is_applied
    assert contents(lake) == {"orders": V2}
    assert not lake.merge("dev", "main").merged_keys


def test_base_of_before_the_undone_merge_is_named_and_works(store: Store, lake: Catalog, before: ObjectId) -> None:
    undo(store, before)
    with pytest.raises(MergeConflictError) as caught:
        lake.merge("dev", "main")
    assert caught.value.result.undone_base == before
    lake.merge("dev", "main", options=MergeOptions(base=before))

    assert contents(lake) == {"orders": V2}


def test_undone_table_is_left_by_drop_while_the_rest_is_merged(store: Store, lake: Catalog, before: ObjectId) -> None:
    undo(store, before)
    put(lake, "customers", branch="dev")
    assert set(conflicts(lake)) == {"orders"}
    lake.merge("dev", "main", options=MergeOptions(keys={ContentKey.of("orders"): KeyMerge(mode=MergeMode.DROP)}))

    assert contents(lake) == {"orders": V1, "customers": "s3://lake/customers/metadata/1.json"}
    assert not lake.merge("dev", "main").merged_keys  # decided once: the merge says that all was merged


def test_undone_creation_and_removal_are_conflicts_and_come_again(store: Store, lake: Catalog) -> None:
    before = put(lake, "orders")
    lake.create_branch("dev")
    put(lake, "customers", branch="dev")
    drop(lake, "orders", branch="dev")
    lake.merge("dev", "main")
    undo(store, before)

    assert {key: text.split()[0] for key, text in conflicts(lake).items()} == {
        "customers": "KEY_DOES_NOT_EXIST",
        "orders": "KEY_EXISTS",
    }
    lake.merge("dev", "main", options=AGAIN)
    assert contents(lake) == {"customers": "s3://lake/customers/metadata/1.json"}


def test_merge_onto_an_undone_merge_in_the_same_group_is_seen(store: Store, lake: Catalog, before: ObjectId) -> None:
    undo(store, before)
    for version in range(3, 6):
        put(lake, "others", version)

    assert set(conflicts(lake)) == {"orders"}


def test_restore_of_what_was_undone_leaves_nothing_to_merge(store: Store, lake: Catalog, before: ObjectId) -> None:
    merged = next(iter(lake.log("main"))).id
    undo(store, before)
    undo(store, merged)

    assert contents(lake) == {"orders": V2}
    assert not lake.merge("dev", "main").merged_keys


def test_table_that_was_changed_otherwise_since_is_no_undone_one(store: Store, lake: Catalog, before: ObjectId) -> None:
    put(lake, "orders", 3)  # on top of the merge, by a commit of its own
    put(lake, "customers")
    restored(store, request("lake/main", next(iter(lake.log("main", limit=1))).parent or before, is_commit=True))

    assert contents(lake)["orders"].endswith("3.json")
    assert not lake.merge("dev", "main").merged_keys


def test_own_mistake_that_a_branch_took_back_is_not_asked_about(store: Store, lake: Catalog) -> None:
    """The source parted between the mistake and its undoing, and never asked for it."""
    before = put(lake, "orders")
    drop(lake, "orders")
    lake.create_branch("feature")
    put(lake, "customers", branch="feature")
    undo(store, before)
    lake.merge("feature", "main")

    assert set(contents(lake)) == {"orders", "customers"}


def test_dry_run_reports_what_was_undone(store: Store, lake: Catalog, before: ObjectId) -> None:
    undo(store, before)
    with pytest.raises(MergeConflictError) as caught:
        lake.merge("dev", "main", options=MergeOptions(dry_run=True))

    assert [str(key) for key in caught.value.result.undone] == ["orders"]
