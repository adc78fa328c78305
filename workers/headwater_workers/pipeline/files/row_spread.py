"""How an ingest spreads rows over Spark's partitions: contiguous ranges of keys, so that each partition becomes one sorted file.

A Python data source cannot ask Spark for that, so it is done before the rows are written.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from headwater.files import FileTable, LeafRead, RowSchema, even_limits
from headwater.files.row_keys import RowKeyType

_UNEVEN = 2.0


class SpreadKind(StrEnum):
    """LEAVES: by the table's leaves, of about equal known rows. RANGE: Spark samples the rows that come, for which it computes them
    twice. AUTO: LEAVES where that makes as many even groups as there are partitions, otherwise RANGE.
    """

    AUTO = "auto"
    LEAVES = "leaves"
    RANGE = "range"


def spread_rows(rows: DataFrame, table: FileTable, *, partitions: int, kind: SpreadKind = SpreadKind.AUTO) -> DataFrame:
    """The rows in sorted partitions of contiguous ranges of keys, at most so many."""
    schema = RowSchema.of(table.definition)
    limits, is_even = group_limits(table, partitions)
    if partitions == 1:
        spread = rows.repartition(1)
    elif kind is SpreadKind.LEAVES or (kind is SpreadKind.AUTO and is_even):
        spread = rows.repartitionById(len(limits) + 1, group_column(schema, limits))
    else:
        spread = rows.repartitionByRange(partitions, sf.col(_quoted(schema.key)))
    return spread.sortWithinPartitions(*[sf.col(_quoted(name)).asc_nulls_first() for name in schema.order])


def group_limits(table: FileTable, groups: int) -> tuple[list[bytes], bool]:
    """Limits between groups of leaves with about equally many known rows; and whether the groups are as many and as even as wanted."""
    plan = table.plan_read()
    leaves, points = plan.tree.leaf_ids(), plan.tree.split_points()
    rows = {leaf.leaf: _rows_of(leaf) for leaf in plan.leaves}
    weights = [rows.get(leaf, 0) for leaf in leaves]
    if not any(weights):
        weights = [1] * len(leaves)
    begins = even_limits(weights, groups)
    ends = zip([0, *begins], [*begins, len(leaves)], strict=True)
    greatest = max(sum(weights[begin:end]) for begin, end in ends)
    return [points[begin - 1] for begin in begins], greatest <= _UNEVEN * sum(weights) / groups


def group_column(schema: RowSchema, limits: Sequence[bytes]) -> Column:
    """The number of a row's group, by as few comparisons as halving needs. Rows without a key are of the first: the writer names them."""
    key = sf.col(_quoted(schema.key))

    def between(low: int, high: int) -> Column:
        if low == high:
            return sf.lit(low)
        middle = (low + high) // 2
        return sf.when(key < _literal(schema.key_type, limits[middle]), between(low, middle)).otherwise(
            between(middle + 1, high)
        )

    return between(0, len(limits))


def _rows_of(leaf: LeafRead) -> int:
    """About how many rows a leaf has: references of an ancestor have rows of all leaves below it."""
    return sum(reference.rows >> (len(leaf.leaf) - len(reference.partition)) for reference in leaf.references)


def _literal(key_type: RowKeyType, point: bytes) -> Column:
    key = key_type.decode_key(point)
    return sf.lit(bytearray(key) if isinstance(key, bytes) else key)


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
