"""Rows for tests, as Python values and as Arrow tables, and the order that they must have."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
from hypothesis import strategies

from headwater.files import RowKeyType, RowSchema

Row = tuple[Any, Any, Any]
"""A key, a value to sort by, and another one."""

LONGS = RowSchema(
    "0123456789abcdef", (("key", "long"), ("place", "string"), ("value", "double")), "key", RowKeyType.LONG, ("place",)
)
TEXTS = RowSchema(
    "0123456789abcdef", (("key", "string"), ("place", "date"), ("value", "long")), "key", RowKeyType.STRING, ("place",)
)

LONG_ROWS = strategies.lists(
    strategies.tuples(
        strategies.integers(-20, 20) | strategies.integers(-(2**63), 2**63 - 1),
        strategies.none() | strategies.text(max_size=2),
        strategies.floats(allow_nan=False),
    ),
    max_size=40,
)


def table_of(schema: RowSchema, rows: Iterable[Sequence[Any]]) -> pa.Table:
    rows = list(rows)
    columns = {name: [row[number] for row in rows] for number, name in enumerate(schema.names)}
    return pa.table(columns, schema=schema.arrow)


def rows_of(tables: Iterable[Any]) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for table in tables for row in table.to_pylist()]


def in_order(rows: Iterable[Row]) -> list[Row]:
    """Sorted by key and place, nulls first; others as they come."""
    return sorted(rows, key=lambda row: (row[0], row[1] is not None, row[1]))
