"""Which leaves of a file table are too large, and where to split them, by the keys that their files really have.

Every data file has a sketch: keys at equal distances. The sketches of a leaf's files, cut to its range and put together, give the
distribution of its keys. Split points are keys of it, so the right child is never empty; and they lie above the least key, so neither
is the left one. Where the sketches show one key only, the keys themselves are read. A leaf that has one key cannot be split.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from headwater.files.data_files import KeySample, read_data_file, read_file_sketch
from headwater.files.file_references import PartitionId
from headwater.files.file_table import FileTable, LeafRead
from headwater.files.partition_tree import PartitionTree, balanced_splits
from headwater.files.row_schema import RowSchema
from headwater.files.stored_tree import LONGEST_POINT

_MOST_CHILDREN = 1024
_FULLNESS = 2 / 3
"""Of a new leaf: so it has room to grow, and is not split again at once because the sketches are not exact."""


@dataclass(frozen=True, slots=True)
class SplitPlan:
    """Where leaves are to be split.

    points        of every partition that gets children, over several levels where a leaf is many times too large
    unsplit       leaves that are too large and cannot be split, with the reason
    rows          about how many rows each of these leaves has
    """

    points: Mapping[PartitionId, bytes] = field(default_factory=dict)
    unsplit: Mapping[PartitionId, str] = field(default_factory=dict)
    rows: Mapping[PartitionId, int] = field(default_factory=dict)


def plan_splits(table: FileTable, *, leaf_rows: int) -> SplitPlan:
    """Find the leaves with more than so many rows, and split points of them by the keys in their files. Writes nothing.

    raises        ExpiredError when a file was collected meanwhile; TreeBehindError; UnavailableError
    """
    schema = RowSchema.of(table.definition)
    points: dict[PartitionId, bytes] = {}
    unsplit: dict[PartitionId, str] = {}
    rows: dict[PartitionId, int] = {}
    for leaf in table.plan_read().leaves:
        if _most_rows(leaf) <= leaf_rows:
            continue
        samples = _samples_of(leaf)
        count = sum(sample.rows for sample in samples)
        if count <= leaf_rows:
            continue
        rows[leaf.leaf] = count
        children = math.ceil(count / (leaf_rows * _FULLNESS))
        limits = choose_points(samples, children=min(_MOST_CHILDREN, max(2, children)))
        limits = limits or _point_among_keys(schema, leaf)
        if limits:
            points |= balanced_splits(limits, root=leaf.leaf)
        else:
            unsplit[leaf.leaf] = "all its rows have one key, or keys too long for a split point"
    return SplitPlan(points, unsplit, rows)


def split_large_leaves(table: FileTable, *, leaf_rows: int) -> tuple[SplitPlan, PartitionTree]:
    """Split the leaves that ``plan_splits`` finds. Returns the plan, and the tree afterwards; raises what both parts raise."""
    plan = plan_splits(table, leaf_rows=leaf_rows)
    return plan, table.split_leaves(plan.points) if plan.points else table.read_tree()


def choose_points(samples: Iterable[KeySample], *, children: int) -> list[bytes]:
    """Up to ``children - 1`` keys that divide the rows of the samples as evenly as their keys allow; none if there is one key only.

    Every part has at least one of the sampled keys. A key with many rows is never divided.
    """
    weights: dict[bytes, int] = {}
    for sample in samples:
        weights[sample.key] = weights.get(sample.key, 0) + sample.rows
    keys = sorted(weights)
    total = sum(weights.values())
    before: list[int] = []
    passed = 0
    for key in keys:
        before.append(passed)
        passed += weights[key]
    candidates = [(key, rows) for key, rows in zip(keys[1:], before[1:], strict=True) if len(key) <= LONGEST_POINT]
    chosen: list[bytes] = []
    for child in range(1, children):
        wanted = child * total / children
        best = min(candidates, key=lambda candidate: abs(candidate[1] - wanted), default=None)
        if best is not None and (not chosen or best[0] > chosen[-1]):
            chosen.append(best[0])
    return chosen


def _most_rows(leaf: LeafRead) -> int:
    """At most how many rows a leaf may have, by its references: those of ancestors have rows of other leaves, too."""
    return sum(reference.rows for reference in leaf.references)


def _samples_of(leaf: LeafRead) -> list[KeySample]:
    samples = (sample for reference in leaf.references for sample in read_file_sketch(reference.filename).samples)
    return [sample for sample in samples if leaf.keys.has(sample.key)]


def _point_among_keys(schema: RowSchema, leaf: LeafRead) -> list[bytes]:
    """A key of the leaf that is not its least one, by reading its keys until there are two."""
    seen: set[bytes] = set()
    for reference in leaf.references:
        for batch in read_data_file(schema, reference.filename, leaf.keys, columns=[schema.key]):
            keys = batch.column(0)
            seen |= {schema.key_type.encode_key(keys[row].as_py()) for row in (0, len(keys) - 1)}
            if len(seen) > 1 and len(max(seen)) <= LONGEST_POINT:
                return [max(seen)]
    return []


def even_limits(weights: Sequence[int], groups: int) -> list[int]:
    """Divide items, in their order, into up to so many groups of about equal weight. Returns where groups begin, but the first.

    Source of the rule: an item belongs to the group in which its middle lies.
    """
    total = sum(weights) or 1
    numbers = []
    passed = 0
    for weight in weights:
        numbers.append(min(groups - 1, int((passed + weight / 2) * groups / total)))
        passed += weight
    return [at + 1 for at, (left, right) in enumerate(pairwise(numbers)) if right > left]
