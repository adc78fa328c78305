"""Partition trees as values."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.errors import RefusedError
from headwater.files import ROOT, PartitionId, PartitionTree, RowKeyRange, ancestors_of, balanced_splits, children_of

POINTS = st.lists(st.binary(min_size=1, max_size=3), unique=True, max_size=12)
KEYS = st.binary(max_size=4)


def grown(points: list[bytes]) -> PartitionTree:
    """The tree after one split at each point, of whatever leaf has it."""
    tree = PartitionTree()
    for point in points:
        tree = tree.split_leaf(tree.leaf_of(point), point)
    return tree


@given(POINTS, KEYS)
def test_every_key_is_in_exactly_one_leaf(points: list[bytes], key: bytes) -> None:
    tree = grown(points)

    assert [leaf for leaf in tree.leaf_ids() if tree.range_of(leaf).has(key)] == [tree.leaf_of(key)]


@given(POINTS)
def test_leaves_sort_by_id_as_their_ranges_do(points: list[bytes]) -> None:
    tree = grown(points)
    leaves = tree.leaf_ids()

    assert list(leaves) == sorted(leaves)
    assert [tree.range_of(leaf).low for leaf in leaves] == [None, *sorted(points)]
    assert [tree.range_of(leaf).high for leaf in leaves] == [*sorted(points), None]


@given(POINTS)
def test_children_share_the_range_of_their_parent(points: list[bytes]) -> None:
    tree = grown(points)

    for partition, point in tree.splits.items():
        keys = tree.range_of(partition)
        assert [tree.range_of(child) for child in children_of(partition)] == [
            RowKeyRange(keys.low, point),
            RowKeyRange(point, keys.high),
        ]


@given(POINTS)
def test_grown_tree_is_sound(points: list[bytes]) -> None:
    tree = grown(points)

    tree.check_sound()
    assert tree.number == len(points) + 1
    assert list(tree.split_points()) == sorted(points)


@given(POINTS)
def test_balanced_leaves_are_one_level_apart(points: list[bytes]) -> None:
    tree = PartitionTree().split_leaves(balanced_splits(sorted(points)))
    depths = {len(leaf) for leaf in tree.leaf_ids()}

    assert list(tree.split_points()) == sorted(points)
    assert max(depths) - min(depths) <= 1


@given(POINTS, KEYS, KEYS)
def test_leaves_in_a_range_are_those_that_overlap(points: list[bytes], low: bytes, high: bytes) -> None:
    tree, keys = grown(points), RowKeyRange(min(low, high), max(low, high))

    assert tree.leaves_in(keys) == [leaf for leaf in tree.leaf_ids() if tree.range_of(leaf).overlaps(keys)]


def test_ancestors_come_parent_first() -> None:
    assert list(ancestors_of(PartitionId("r010"))) == ["r01", "r0", "r"]
    assert list(ancestors_of(ROOT)) == []


@pytest.mark.parametrize("point", [b"a", b"z", b"c", b"k"])
def test_point_that_leaves_a_child_empty_is_refused(point: bytes) -> None:
    tree = PartitionTree(1, {ROOT: b"k", PartitionId("r0"): b"c"})

    with pytest.raises(RefusedError, match="both children need keys"):
        tree.split_leaf(PartitionId("r01"), point)


def test_unsorted_points_are_refused() -> None:
    with pytest.raises(RefusedError, match="ascending"):
        balanced_splits([b"b", b"a"])
