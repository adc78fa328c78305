"""The columns of a file table as Arrow sees them, and the order of its rows: by key, then by the sort columns, nulls first.

Text and binary sort by their bytes, numbers and times by value, as Spark and Parquet sort them. Floating-point columns cannot be sort
columns: Arrow and Spark put NaN into different places.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from headwater.errors import RefusedError
from headwater.files.file_table_definition import FileTableDefinition
from headwater.files.row_keys import LONGEST_KEY_BYTES, RowKeyType

if TYPE_CHECKING:
    import pyarrow as pa

_DECIMAL = re.compile(r"decimal\(\s*(\d{1,2})\s*,\s*(\d{1,2})\s*\)")
_ARRAY = re.compile(r"array<(.+)>")
_SYNONYMS = {"bigint": "long", "smallint": "short", "tinyint": "byte", "integer": "int", "real": "float"}
_TYPES = (
    "boolean, byte, short, int, long, float, double, string, binary, date, timestamp, timestamp_ntz, decimal(precision,scale),"
    " array<type>"
)
_UNSORTED = ("float", "double", "array")
OrderTuple = tuple[tuple[bool, Any], ...]
"""A row's key and sort values such that tuples compare as the rows sort."""


@dataclass(frozen=True)
class RowSchema:
    """Columns and order of the rows of one file table.

    table         its id
    columns       name and type of each, by Spark's names of types
    key           the column with the row key; it is never null
    sort          by which rows of equal key are sorted
    required      other columns that are never null
    """

    table: str
    columns: tuple[tuple[str, str], ...]
    key: str
    key_type: RowKeyType
    sort: tuple[str, ...] = ()
    required: tuple[str, ...] = ()

    @classmethod
    def of(cls, definition: FileTableDefinition) -> RowSchema:
        """The schema of a file table.

        raises        RefusedError as ``check_types`` does
        """
        schema = cls(
            table=definition.id,
            columns=tuple((column.name, column.type) for column in definition.columns),
            key=definition.key_column,
            key_type=definition.key_type,
            sort=definition.sort_columns,
            required=tuple(column.name for column in definition.columns if not column.nullable),
        )
        schema.check_types()
        return schema

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.columns]

    @property
    def order(self) -> tuple[str, ...]:
        """The columns by which rows are sorted."""
        return (self.key, *self.sort)

    @cached_property
    def arrow(self) -> pa.Schema:
        """The Arrow schema of its data files.

        raises        RefusedError for a type that has no place in a file table
        """
        import pyarrow as pa

        return pa.schema([pa.field(name, arrow_type(kind)) for name, kind in self.columns])

    def ddl(self, columns: Sequence[str] = ()) -> str:
        """The columns in Spark's words; all, or those named."""
        return ", ".join(f"`{name.replace('`', '``')}` {kind}" for name, kind in self.columns if not columns or name in columns)

    def check_types(self) -> None:
        """raises RefusedError when a column has a type that cannot be stored, or that cannot be sorted by"""
        kinds = dict(self.columns)
        for name, kind in self.columns:
            arrow_type(kind, column=name)
        if _SYNONYMS.get(kinds[self.key], kinds[self.key]) != self.key_type.value:
            raise RefusedError(f"key column {self.key!r} has the type {kinds[self.key]}, and the row key {self.key_type.value}")
        for name in self.sort:
            if kinds[name].startswith(_UNSORTED):
                raise RefusedError(
                    f"rows cannot be sorted by column {name!r} of type {kinds[name]}: choose another sort column"
                )

    def check_choice(self, columns: Sequence[str]) -> tuple[str, ...]:
        """The columns that a reader chose, in the order of the table; all if none is named.

        raises        RefusedError for a column that the table does not have
        """
        if unknown := [name for name in columns if name not in self.names]:
            raise RefusedError(f"there is no column {unknown[0]!r}: the columns are {', '.join(self.names)}")
        return tuple(name for name in self.names if not columns or name in columns)

    def conform(self, rows: pa.Table | pa.RecordBatch) -> pa.Table:
        """The rows in the columns and types of the table. A column that is missing is null; values must fit exactly.

        raises        RefusedError that names the column
        """
        import pyarrow as pa

        table = pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else rows
        given = table.column_names
        if unknown := [name for name in given if name not in self.names]:
            raise RefusedError(f"the table has no column {unknown[0]!r}: its columns are {', '.join(self.names)}")
        if len(set(given)) < len(given):
            raise RefusedError("two columns of the rows have the same name")
        columns = []
        for field in self.arrow:
            try:
                columns.append(
                    table.column(field.name).cast(field.type)
                    if field.name in given
                    else pa.chunked_array([pa.nulls(table.num_rows, field.type)], field.type)
                )
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as fault:
                raise RefusedError(f"column {field.name!r} cannot be stored as {field.type}: {fault}") from fault
        return pa.Table.from_arrays(columns, schema=self.arrow)

    def check_nulls(self, rows: pa.Table | pa.RecordBatch, *, first: int = 0) -> None:
        """Check that no row lacks its key or another required value, and that keys are not too long.

        first         number of the first row, for the message
        raises        RefusedError that names the row
        """
        import pyarrow.compute as pc

        for name in (self.key, *self.required):
            column = rows.column(name)
            if column.null_count:
                number = pc.index(pc.is_null(column), value=True).as_py()
                what = "a row key is" if name == self.key else f"column {name!r} is"
                raise RefusedError(f"row {first + number} has no {name!r}, and {what} never null: {_shown(rows, number)}")
        if self.key_type in (RowKeyType.STRING, RowKeyType.BINARY) and rows.num_rows:
            longest = pc.max(pc.binary_length(rows.column(self.key))).as_py()
            if longest > LONGEST_KEY_BYTES:
                raise RefusedError(f"a row has a key of {longest} bytes: keys may have up to {LONGEST_KEY_BYTES}")

    def sort_rows(self, rows: pa.Table) -> pa.Table:
        """The rows in order; those that are equal in all sorted columns stay as they were."""
        import pyarrow as pa
        import pyarrow.compute as pc

        keys: list[tuple[str, str]] = []
        sorted_by = rows.select(self.order)
        for name in self.order:
            if sorted_by.column(name).null_count:  # null_placement differs between releases of Arrow
                sorted_by = sorted_by.append_column(f"\0{name}", pc.is_valid(sorted_by.column(name)))
                keys.append((f"\0{name}", "ascending"))
            keys.append((name, "ascending"))
        indices = pc.sort_indices(sorted_by, sort_keys=keys)
        return pa.Table.from_batches(rows.combine_chunks().to_batches(), schema=rows.schema).take(indices)


class RowOrder:
    """The sorted columns of some rows, for comparing single rows and finding positions among them."""

    def __init__(self, schema: RowSchema, rows: pa.Table | pa.RecordBatch) -> None:
        self._columns = [_comparable(rows.column(name)) for name in schema.order]
        self._rows = rows.num_rows

    def tuple_at(self, row: int) -> OrderTuple:
        return tuple((value is not None, value) for value in (column[row].as_py() for column in self._columns))

    def rows_up_to(self, limit: OrderTuple, *, after_equals: bool) -> int:
        """How many rows come before a limit, given that they are sorted; with those that equal it, or without."""
        search = bisect_right if after_equals else bisect_left
        return search(range(self._rows), limit, key=self.tuple_at)

    def first_out_of_order(self) -> int | None:
        """The first row that sorts before the one above it; None if all are in order."""
        import pyarrow.compute as pc

        ties = None
        wrong: list[int] = []
        for column in self._columns:
            upper, lower = column.slice(0, max(len(column) - 1, 0)), column.slice(1)
            if ties is not None:
                upper, lower = upper.take(ties), lower.take(ties)
            is_wrong = pc.fill_null(pc.greater(upper, lower), False)
            is_tie = pc.fill_null(pc.equal(upper, lower), False)
            if column.null_count:
                is_wrong = pc.or_(is_wrong, pc.and_(pc.is_valid(upper), pc.is_null(lower)))
                is_tie = pc.or_(is_tie, pc.and_(pc.is_null(upper), pc.is_null(lower)))
            if (position := pc.index(is_wrong, value=True).as_py()) >= 0:
                wrong.append(1 + (position if ties is None else ties[position].as_py()))
            positions = pc.indices_nonzero(is_tie)
            ties = positions if ties is None else ties.take(positions)
            if not len(ties):
                break
        return min(wrong, default=None)


def arrow_type(kind: str, *, column: str = "") -> pa.DataType:
    """The Arrow type of a type by Spark's name; raises RefusedError for one that has no place in a file table."""
    import pyarrow as pa

    kind = _SYNONYMS.get(kind, kind)
    plain = {
        "boolean": pa.bool_(),
        "byte": pa.int8(),
        "short": pa.int16(),
        "int": pa.int32(),
        "long": pa.int64(),
        "float": pa.float32(),
        "double": pa.float64(),
        "string": pa.string(),
        "binary": pa.binary(),
        "date": pa.date32(),
        "timestamp": pa.timestamp("us", "UTC"),
        "timestamp_ntz": pa.timestamp("us"),
    }
    if kind in plain:
        return plain[kind]
    if (match := _DECIMAL.fullmatch(kind)) and 1 <= int(match[1]) <= 38 and int(match[2]) <= int(match[1]):
        return pa.decimal128(int(match[1]), int(match[2]))
    if match := _ARRAY.fullmatch(kind):
        return pa.list_(pa.field("element", arrow_type(match[1], column=column)))
    where = f" of column {column!r}" if column else ""
    raise RefusedError(f"the type {kind!r}{where} has no place in a file table: use {_TYPES}")


def _comparable(column: Any) -> Any:
    """A column whose values compare in Python as they sort: Python has no times after the year 9999."""
    import pyarrow as pa

    kind = column.type
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_timestamp(kind):
        return column.cast(pa.int64())
    if pa.types.is_date(kind):
        return column.cast(pa.int32())
    return column


def _shown(rows: Any, number: int) -> str:
    return str({name: rows.column(name)[number].as_py() for name in rows.schema.names})[:200]
