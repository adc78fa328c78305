"""File tables stay as they are whatever is restored around them."""

from __future__ import annotations

import pytest
from pasts import passed, planned, request, restored

from fake_clock import FakeClock
from file_tables import make_tree
from headwater import Store
from headwater.catalogs import Catalog
from headwater.errors import RefusedError
from headwater.files import FILE_TABLES, ROOT, FileTableDefinition
from headwater.files.stored_tree import commit_splits, read_tree
from headwater.restore import RestoreAction
from headwater.store import RealmStore


@pytest.fixture
def orders(rows: RealmStore, lake: Catalog) -> FileTableDefinition:
    return make_tree(rows)


def test_restored_realm_keeps_its_file_tables(
    store: Store, rows: RealmStore, orders: FileTableDefinition, clock: FakeClock
) -> None:
    before = passed(clock)
    commit_splits(rows, orders, {ROOT: b"m"})
    passed(clock)

    outcome = restored(store, request("", before))

    assert "a file table is not restored" in str(outcome["notes"])
    assert read_tree(rows, orders).number == 2


def test_plan_says_that_file_tables_stay(store: Store, rows: RealmStore, orders: FileTableDefinition, clock: FakeClock) -> None:
    steps = planned(store, request("", passed(clock))).steps

    assert [step.text for step in steps if step.act is RestoreAction.KEEP] == ["orders"]


@pytest.mark.parametrize("part", ["list", "tree"])
def test_references_of_file_tables_are_not_restored(
    store: Store, orders: FileTableDefinition, clock: FakeClock, part: str
) -> None:
    reference = FILE_TABLES if part == "list" else orders.tree_reference

    with pytest.raises(RefusedError, match="its partition tree only grows"):
        planned(store, request(f"reference:{reference}", passed(clock)))
