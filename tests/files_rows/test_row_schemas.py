"""Schemas of rows: which types there are, and what fits into them."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest
from row_tables import LONGS, rows_of

from headwater.errors import RefusedError
from headwater.files import RowKeyType, RowSchema, arrow_type


@pytest.mark.parametrize(
    ("kind", "arrow"),
    [
        ("bigint", pa.int64()),
        ("timestamp", pa.timestamp("us", "UTC")),
        ("decimal(10,2)", pa.decimal128(10, 2)),
        ("array<array<int>>", pa.list_(pa.field("element", pa.list_(pa.field("element", pa.int32()))))),
    ],
)
def test_type_is_known_by_the_name_that_spark_gives_it(kind: str, arrow: pa.DataType) -> None:
    assert arrow_type(kind) == arrow


@pytest.mark.parametrize("kind", ["map<string,int>", "decimal(39,2)", "decimal(2,3)", "varchar(3)", ""])
def test_type_that_cannot_be_stored_is_refused(kind: str) -> None:
    with pytest.raises(RefusedError, match="of column 'c' has no place in a file table: use boolean, byte"):
        arrow_type(kind, column="c")


def test_floating_point_column_sorts_nothing() -> None:
    schema = RowSchema("0", (("key", "long"), ("at", "double")), "key", RowKeyType.LONG, ("at",))

    with pytest.raises(RefusedError, match="rows cannot be sorted by column 'at' of type double"):
        schema.check_types()


def test_key_type_is_that_of_the_key_column() -> None:
    with pytest.raises(RefusedError, match="key column 'key' has the type int, and the row key long"):
        RowSchema("0", (("key", "int"),), "key", RowKeyType.LONG).check_types()


def test_rows_are_brought_into_the_columns_of_the_table() -> None:
    given = pa.table({"value": pa.array([1.5], pa.float32()), "key": pa.array([7], pa.int32())})

    assert rows_of([LONGS.conform(given)]) == [(7, None, 1.5)]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (pa.table({"key": [1], "colour": ["red"]}), "the table has no column 'colour'"),
        (pa.table({"key": ["one"]}), "column 'key' cannot be stored as int64"),
        (pa.table({"key": [1.5]}), "column 'key' cannot be stored as int64"),
    ],
)
def test_rows_that_do_not_fit_are_refused(given: pa.Table, message: str) -> None:
    with pytest.raises(RefusedError, match=message):
        LONGS.conform(given)


def test_required_column_is_never_null() -> None:
    schema = RowSchema("0", (("key", "long"), ("day", "date")), "key", RowKeyType.LONG, required=("day",))

    with pytest.raises(RefusedError, match="row 5 has no 'day', and column 'day' is never null"):
        schema.check_nulls(pa.table({"key": [1], "day": pa.nulls(1, pa.date32())}), first=5)


def test_key_longer_than_the_longest_is_refused() -> None:
    schema = RowSchema("0", (("key", "binary"),), "key", RowKeyType.BINARY)

    with pytest.raises(RefusedError, match="a key of 65537 bytes: keys may have up to 65536"):
        schema.check_nulls(pa.table({"key": [b"x" * 65_537]}))


def test_times_of_all_zones_are_stored_as_utc() -> None:
    schema = RowSchema("0", (("key", "long"), ("at", "timestamp")), "key", RowKeyType.LONG, ("at",))
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)

    table = schema.conform(pa.table({"key": [1], "at": pa.array([noon], pa.timestamp("us", "Europe/Berlin"))}))

    assert table["at"][0].as_py() == noon and table.schema == schema.arrow
