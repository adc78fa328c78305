"""Partition trees on the commit log."""

from __future__ import annotations

import pytest

from fake_clock import FakeClock
from headwater.commits import read_head
from headwater.errors import ConflictError, CorruptionError, NotFoundError, RefusedError
from headwater.files import (
    ROOT,
    FileTableDefinition,
    FileTableFields,
    FileTables,
    PartitionId,
    PartitionTree,
    balanced_splits,
)
from headwater.files.stored_tree import LONGEST_POINT, commit_splits, read_tree, read_tree_as_of, read_tree_at
from headwater.store import ObjectId, RealmStore

LEFT, RIGHT = PartitionId("r0"), PartitionId("r1")


def head_of(rows: RealmStore, table: FileTableDefinition) -> ObjectId:
    head = read_head(rows, table.tree_reference, fresh=True)
    assert head is not None
    return head.id


def test_new_table_has_one_partition(rows: RealmStore, orders: FileTableDefinition) -> None:
    assert read_tree(rows, orders) == PartitionTree(1, {})


def test_table_may_begin_with_many_leaves(rows: RealmStore, tables: FileTables, fields: FileTableFields) -> None:
    splits = balanced_splits([b"%04d" % point for point in range(1023)])
    table = tables.create_table("wide", location="s3://lake", splits=splits, **fields)

    tree = read_tree(rows, table)

    assert (tree.number, len(tree.leaf_ids())) == (1, 1024)
    assert tree.splits == splits
    tree.check_sound()


def test_table_that_began_with_another_tree_is_refused(
    tables: FileTables, fields: FileTableFields, orders: FileTableDefinition
) -> None:
    with pytest.raises(ConflictError, match="began with another partition tree"):
        tables.create_table("orders", location="s3://lake/tables", splits={ROOT: b"m"}, **fields)


def test_first_tree_is_known_again_after_splits(rows: RealmStore, tables: FileTables, fields: FileTableFields) -> None:
    table = tables.create_table("wide", location="s3://lake", splits={ROOT: b"m"}, **fields)
    commit_splits(rows, table, {LEFT: b"f"})

    assert tables.create_table("wide", location="s3://lake", splits={ROOT: b"m"}, **fields) == table


def test_split_has_the_next_number(rows: RealmStore, orders: FileTableDefinition) -> None:
    commit_splits(rows, orders, {ROOT: b"m"})
    tree = commit_splits(rows, orders, {LEFT: b"f", RIGHT: b"t"})

    assert read_tree(rows, orders) == tree == PartitionTree(3, {ROOT: b"m", LEFT: b"f", RIGHT: b"t"})


def test_many_levels_are_split_in_one_commit(rows: RealmStore, orders: FileTableDefinition) -> None:
    tree = commit_splits(rows, orders, {LEFT: b"f", ROOT: b"m"})

    assert tree.number == 2
    assert tree.leaf_ids() == ["r00", "r01", "r1"]


def test_split_that_is_there_commits_nothing(rows: RealmStore, orders: FileTableDefinition) -> None:
    tree = commit_splits(rows, orders, {ROOT: b"m"})
    before = head_of(rows, orders)

    assert commit_splits(rows, orders, {ROOT: b"m"}) == tree
    assert head_of(rows, orders) == before


def test_split_at_another_point_is_refused(rows: RealmStore, orders: FileTableDefinition) -> None:
    commit_splits(rows, orders, {ROOT: b"m"})

    with pytest.raises(RefusedError, match="was split already"):
        commit_splits(rows, orders, {ROOT: b"n"})


def test_refused_split_leaves_the_tree_alone(rows: RealmStore, orders: FileTableDefinition) -> None:
    commit_splits(rows, orders, {ROOT: b"m"})

    with pytest.raises(RefusedError, match="not inside"):
        commit_splits(rows, orders, {LEFT: b"f", RIGHT: b"a"})
    assert read_tree(rows, orders).number == 2


def test_split_point_beyond_the_limit_is_refused(rows: RealmStore, orders: FileTableDefinition) -> None:
    with pytest.raises(RefusedError, match="a prefix of the key splits as well"):
        commit_splits(rows, orders, {ROOT: b"k" * (LONGEST_POINT + 1)})


def test_tree_is_read_at_a_commit(rows: RealmStore, orders: FileTableDefinition) -> None:
    before = head_of(rows, orders)
    commit_splits(rows, orders, {ROOT: b"m"})

    assert read_tree_at(rows, orders, before) == PartitionTree(1, {})


def test_commit_of_another_tree_is_not_read(
    rows: RealmStore, tables: FileTables, fields: FileTableFields, orders: FileTableDefinition
) -> None:
    other = tables.create_table("sales", location="s3://lake/tables", **fields)

    with pytest.raises(NotFoundError, match="does not belong to the partition tree of file table 'orders'"):
        read_tree_at(rows, orders, head_of(rows, other))


def test_tree_is_read_as_of_a_time(rows: RealmStore, orders: FileTableDefinition, clock: FakeClock) -> None:
    clock.advance(60)
    noon = clock.now()
    clock.advance(60)
    commit_splits(rows, orders, {ROOT: b"m"})

    assert read_tree_as_of(rows, orders, noon).number == 1
    assert read_tree_as_of(rows, orders, clock.now()).number == 2


def test_time_before_the_table_has_no_tree(
    rows: RealmStore, clock: FakeClock, tables: FileTables, fields: FileTableFields
) -> None:
    before = clock.now()
    clock.advance(60)
    table = tables.create_table("sales", location="s3://lake/tables", **fields)

    with pytest.raises(NotFoundError, match="had no partition tree at that time"):
        read_tree_as_of(rows, table, before)


def test_lost_tree_is_told(rows: RealmStore, orders: FileTableDefinition) -> None:
    rows.delete_reference(rows.read_reference(orders.tree_reference))

    with pytest.raises(CorruptionError, match="restore the reference"):
        read_tree(rows, orders)
