"""Merging many sorted streams of rows into one, in bounded memory: by whole slices, not row by row.

Each stream has one batch at hand. The limit is the least of their last rows. Every stream gives all its rows up to the limit; these
are sorted together and handed on. So at least one batch is used up each time, and no more than one batch of each stream is held,
whatever the keys are.

Rows that are equal in all sorted columns keep the order of their streams. For that, the limit belongs to a stream: the first whose
batch ends with it. Streams before it give their rows that equal the limit, as it does; those after it keep them until it has no more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headwater.files.row_schema import OrderTuple, RowOrder, RowSchema

if TYPE_CHECKING:
    import pyarrow as pa

MEMORY_BYTES = 256 << 20
"""What the batches of all streams of a merge may take together."""
_MOST_ROWS, _LEAST_ROWS = 65_536, 256


@dataclass
class _StreamHead:
    """The batch at hand of one stream, from its first unused row on."""

    rows: pa.Table
    order: RowOrder
    begin: int = 0

    @property
    def last(self) -> OrderTuple:
        return self.order.tuple_at(self.rows.num_rows - 1)


def merge_sorted(schema: RowSchema, streams: Sequence[Iterator[pa.RecordBatch]]) -> Iterator[pa.Table]:
    """Merge streams of sorted batches. Yields tables of sorted rows; each begins where the one before ended."""
    import pyarrow as pa

    heads: dict[int, _StreamHead] = {}
    for number in range(len(streams)):
        _advance(schema, heads, streams, number)
    while heads:
        last = min((head.last, number) for number, head in heads.items())
        slices = []
        for number, head in sorted(heads.items()):
            end = head.order.rows_up_to(last[0], after_equals=number <= last[1])
            if end > head.begin:
                slices.append(head.rows.slice(head.begin, end - head.begin))
                head.begin = end
            if head.begin == head.rows.num_rows:
                _advance(schema, heads, streams, number)
        yield slices[0] if len(slices) == 1 else schema.sort_rows(pa.concat_tables(slices))


def batch_rows_for(streams: int, row_bytes: float, *, memory_bytes: int = MEMORY_BYTES) -> int:
    """How many rows the batches of a merge may have, so that all of them, and a sorted copy, stay within the memory."""
    return max(_LEAST_ROWS, min(_MOST_ROWS, int(memory_bytes / (3 * max(1, streams) * max(1.0, row_bytes)))))


def _advance(
    schema: RowSchema, heads: dict[int, _StreamHead], streams: Sequence[Iterator[pa.RecordBatch]], number: int
) -> None:
    import pyarrow as pa

    heads.pop(number, None)
    for batch in streams[number]:
        if batch.num_rows:
            table = pa.Table.from_batches([batch])
            heads[number] = _StreamHead(table, RowOrder(schema, table))
            return
