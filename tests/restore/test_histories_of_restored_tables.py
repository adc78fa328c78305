"""The history of a table that was dropped and came back tells who dropped it, when, and what was before."""

from __future__ import annotations

import pytest
from pasts import drop, put, request, restored

from headwater import Store
from headwater.catalogs import Catalog, ContentKey, Delete, MergeMode, MergeOptions, Put
from headwater.commits import LogEnd
from headwater.store import ObjectId


@pytest.fixture
def store_url() -> str:
    return "memory://"


def told(lake: Catalog, table: str = "orders", **options: int) -> list[tuple[str, str]]:
    return [(str(change.action), str(change.key)) for change in lake.history(ContentKey.of(table), **options)]


def restore(store: Store, to: ObjectId) -> None:
    restored(store, request("lake/main", to, is_commit=True))


def test_drop_and_restore_are_part_of_a_tables_history(store: Store, lake: Catalog) -> None:
    old = put(lake, "orders")
    put(lake, "customers")
    drop(lake, "orders")
    put(lake, "customers", 2)
    restore(store, old)
    put(lake, "orders", 2)
    history = lake.history(ContentKey.of("orders"))
    found = list(history)

    assert [str(each.action) for each in found] == ["CHANGED", "RESTORED", "DELETED", "CREATED"]
    assert found[2].entry.message == "drop orders"
    assert history.end is LogEnd.BEGINNING


def test_table_is_followed_through_two_drops(store: Store, lake: Catalog) -> None:
    old = put(lake, "orders")
    for _ in range(2):
        drop(lake, "orders")
        restore(store, old)
    drop(lake, "orders")

    assert [action for action, _ in told(lake)] == ["DELETED", "RESTORED", "DELETED", "RESTORED", "DELETED", "CREATED"]


def test_table_is_followed_that_was_renamed_before_its_drop(store: Store, lake: Catalog) -> None:
    old = put(lake, "orders")
    orders, sales = ContentKey.of("orders"), ContentKey.of("sales")
    held = lake.get_content(None, orders)
    assert held is not None
    lake.commit(None, [Delete(orders), Put(sales, held)])
    drop(lake, "sales")
    restore(store, old)

    assert told(lake) == [("RESTORED", "orders"), ("DELETED", "sales"), ("RENAMED", "sales"), ("CREATED", "orders")]


def test_another_table_of_that_name_is_none_of_its_history(store: Store, lake: Catalog) -> None:
    old = put(lake, "orders")
    drop(lake, "orders")
    put(lake, "orders", 7)  # another content
    restore(store, old)

    assert [action for action, _ in told(lake)] == ["RESTORED", "DELETED", "CREATED"]


def test_merge_that_brings_again_what_a_restore_undid_is_no_end(store: Store, lake: Catalog) -> None:
    old = put(lake, "orders")
    lake.create_branch("dev")
    put(lake, "customers", branch="dev")
    lake.merge("dev", "main")
    restore(store, old)
    lake.merge("dev", "main", options=MergeOptions(mode=MergeMode.FORCE))

    assert [action for action, _ in told(lake, "customers")] == ["CREATED", "DELETED", "CREATED"]


def test_history_goes_on_from_a_commit_at_which_the_table_was_away(store: Store, lake: Catalog) -> None:
    old = put(lake, "orders")
    held = lake.get_content(None, ContentKey.of("orders"))
    drop(lake, "orders")
    away = put(lake, "customers")
    restore(store, old)
    assert held is not None
    assert held.id is not None
    found = lake.content_history(held.id, f"{away:016x}")

    assert [str(change.action) for change in found] == ["DELETED", "CREATED"]
    assert found.end is LogEnd.BEGINNING
