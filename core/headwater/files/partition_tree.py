"""The partition tree of a file table: a binary tree of key ranges, as a pure value.

The root covers every key. A partition that was split has two children: the left one has the keys below the split point, the right one
the others. Leaves alone take new files. The id of a partition is its path: ``r`` for the root, then ``0`` for each step to the left and
``1`` for each step to the right. So ids of ancestors are prefixes, and leaves sort by id as their ranges do.

The tree only grows. Every change of it has a number, 1 for the tree of one root.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from headwater.errors import CorruptionError, NotFoundError, RefusedError
from headwater.files.file_references import PartitionId

ROOT = PartitionId("r")
LONGEST_PATH = 400
"""The deepest partition: its id is a key of an index, which takes up to 500 bytes."""


class RowKeyRange(NamedTuple):
    """Keys from ``low`` on, below ``high``, as sortable bytes (see ``row_keys``). None: no limit."""

    low: bytes | None = None
    high: bytes | None = None

    def has(self, key: bytes) -> bool:
        return (self.low is None or self.low <= key) and (self.high is None or key < self.high)

    def overlaps(self, other: RowKeyRange) -> bool:
        return (self.low is None or other.high is None or self.low < other.high) and (
            other.low is None or self.high is None or other.low < self.high
        )


@dataclass(frozen=True)
class PartitionTree:
    """A tree, by the split points of its inner partitions.

    number        of its newest change
    splits        split point of every partition that has children
    """

    number: int = 1
    splits: Mapping[PartitionId, bytes] = field(default_factory=dict)

    def leaf_ids(self) -> Sequence[PartitionId]:
        """The leaves, in the order of their ranges."""
        return self._leaves[0]

    def leaf_of(self, key: bytes) -> PartitionId:
        """The leaf whose range has a key."""
        leaves, points = self._leaves
        return leaves[bisect_right(points, key)]

    def split_points(self) -> Sequence[bytes]:
        """The limits between the leaves, in order: one fewer than there are leaves."""
        return self._leaves[1]

    def has_partition(self, partition: PartitionId) -> bool:
        return partition == ROOT or (len(partition) > 1 and PartitionId(partition[:-1]) in self.splits)

    def is_leaf(self, partition: PartitionId) -> bool:
        """Whether a partition has no children.

        raises        NotFoundError when it is not in the tree
        """
        self.check_partition(partition)
        return partition not in self.splits

    def range_of(self, partition: PartitionId) -> RowKeyRange:
        """The keys of a partition; raises NotFoundError when it is not in the tree."""
        self.check_partition(partition)
        low: bytes | None = None
        high: bytes | None = None
        for depth in range(1, len(partition)):
            point = self.splits[PartitionId(partition[:depth])]
            low, high = (point, high) if partition[depth] == "1" else (low, point)
        return RowKeyRange(low, high)

    def leaves_below(self, partition: PartitionId) -> list[PartitionId]:
        """The leaves that a partition was split into, in order; itself if it is a leaf."""
        self.check_partition(partition)
        return [leaf for leaf in self.leaf_ids() if leaf.startswith(partition)]

    def leaves_in(self, keys: RowKeyRange) -> list[PartitionId]:
        """The leaves that overlap a range, in order."""
        leaves, points = self._leaves
        first = 0 if keys.low is None else bisect_right(points, keys.low)
        last = len(leaves) if keys.high is None else bisect_left(points, keys.high) + 1
        return [leaf for leaf in leaves[first:last] if self.range_of(leaf).overlaps(keys)]

    def split_leaf(self, leaf: PartitionId, point: bytes) -> PartitionTree:
        """The tree after one split.

        raises        RefusedError when the partition is no leaf, when the point is not inside its range, or when it is too deep;
                      NotFoundError
        """
        return self.split_leaves({leaf: point})

    def split_leaves(self, points: Mapping[PartitionId, bytes]) -> PartitionTree:
        """The tree after many splits in one change, of several levels if a partition and its new child are both named."""
        splits = dict(self.splits)
        grown = PartitionTree(self.number + 1, splits)
        for partition, point in sorted(points.items(), key=lambda item: len(item[0])):
            if partition in splits:
                raise RefusedError(f"partition {partition!r} was split already")
            keys = grown.range_of(partition)
            if not keys.has(point) or point == keys.low:
                raise RefusedError(f"split point {point!r} is not inside partition {partition!r}: both children need keys")
            if len(partition) >= LONGEST_PATH:
                raise RefusedError(
                    f"partition {partition[:20]!r}... is {len(partition)} levels deep and cannot be split further"
                )
            splits[partition] = point
        return PartitionTree(self.number + 1, dict(splits))

    def check_partition(self, partition: PartitionId) -> None:
        if not self.has_partition(partition):
            raise NotFoundError(f"partition {partition!r} is not in the tree of number {self.number}")

    def check_sound(self) -> None:
        """raises CorruptionError when the splits do not form one tree"""
        for partition, point in self.splits.items():
            if not self.has_partition(partition):
                raise CorruptionError(f"partition {partition!r} has children but is not in the tree of number {self.number}")
            keys = self.range_of(partition)
            if not keys.has(point) or point == keys.low:
                raise CorruptionError(f"partition {partition!r} is split at {point!r}, outside its range")

    @cached_property
    def _leaves(self) -> tuple[list[PartitionId], list[bytes]]:
        leaves: list[PartitionId] = []
        points: list[bytes] = []
        pending: list[PartitionId | bytes] = [ROOT]
        while pending:
            item = pending.pop()
            if isinstance(item, bytes):
                points.append(item)
            elif (point := self.splits.get(item)) is None:
                leaves.append(item)
            else:
                left, right = children_of(item)
                pending += [right, point, left]
        return leaves, points


def children_of(partition: PartitionId) -> tuple[PartitionId, PartitionId]:
    """The ids that the two children of a partition have, or would have."""
    return PartitionId(partition + "0"), PartitionId(partition + "1")


def ancestors_of(partition: PartitionId) -> Iterator[PartitionId]:
    """The ancestors of a partition, its parent first."""
    for length in range(len(partition) - 1, 0, -1):
        yield PartitionId(partition[:length])


def balanced_splits(points: Sequence[bytes], *, root: PartitionId = ROOT) -> dict[PartitionId, bytes]:
    """The splits of a partition at sorted, unequal points such that the leaves are equally deep or one level apart.

    raises        RefusedError when the points are not sorted or two are equal
    """
    if any(low >= high for low, high in pairwise(points)):
        raise RefusedError("split points must be given in ascending order, each only once")
    splits: dict[PartitionId, bytes] = {}
    pending = [(root, 0, len(points))]
    while pending:
        partition, low, high = pending.pop()
        if low < high:
            middle = (low + high) // 2
            splits[partition] = points[middle]
            left, right = children_of(partition)
            pending += [(left, low, middle), (right, middle + 1, high)]
    return splits
