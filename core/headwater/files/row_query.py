"""Reading the rows of a file table in this process, by a range of keys, at one point in time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from headwater.files.data_files import ReadCounts, read_data_file
from headwater.files.file_table import ALL_KEYS, FileTable
from headwater.files.partition_tree import RowKeyRange
from headwater.files.row_schema import RowSchema

if TYPE_CHECKING:
    import pyarrow as pa


def scan_rows(
    table: FileTable,
    keys: RowKeyRange = ALL_KEYS,
    *,
    columns: Sequence[str] = (),
    counts: ReadCounts | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a range: leaf by leaf in the order of their ranges, and within a leaf file by file.

    columns       those wanted; all without any
    counts        is added to
    raises        ExpiredError when a file was collected meanwhile; TreeBehindError; UnavailableError
    """
    schema = RowSchema.of(table.definition)
    for leaf in table.plan_read(keys).leaves:
        for reference in leaf.references:
            yield from read_data_file(schema, reference.filename, leaf.keys, columns=columns, counts=counts)


def query_rows(
    table: FileTable,
    keys: RowKeyRange = ALL_KEYS,
    *,
    columns: Sequence[str] = (),
    counts: ReadCounts | None = None,
) -> pa.Table:
    """The rows of a range, sorted by key and sort columns; raises as ``scan_rows`` does."""
    import pyarrow as pa

    schema = RowSchema.of(table.definition)
    chosen = schema.check_choice(columns)
    needed = [name for name in schema.names if name in chosen or name in schema.order]
    arrow = pa.schema([schema.arrow.field(name) for name in needed])
    rows = pa.Table.from_batches(list(scan_rows(table, keys, columns=needed, counts=counts)), schema=arrow)
    return schema.sort_rows(rows).select(list(chosen))
