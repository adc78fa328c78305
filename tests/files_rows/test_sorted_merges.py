"""Merges of sorted streams: the rows of all, in order, never more than one batch of each at a time."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from row_tables import LONG_ROWS, LONGS, Row, in_order, rows_of, table_of

from headwater.files.sorted_merge import batch_rows_for, merge_sorted


def stream(rows: list[Row], batch: int) -> Iterator[pa.RecordBatch]:
    return iter(LONGS.sort_rows(table_of(LONGS, rows)).to_batches(max_chunksize=batch))


@pytest.mark.long
@given(inputs=st.lists(LONG_ROWS, max_size=5), batch=st.integers(1, 20))
@settings(max_examples=80)
def test_merge_is_a_stable_sort_of_all_rows(inputs: list[list[Row]], batch: int) -> None:
    merged = rows_of(merge_sorted(LONGS, [stream(rows, batch) for rows in inputs]))

    assert merged == in_order(row for rows in inputs for row in rows)


@given(inputs=st.lists(st.lists(st.sampled_from([(1, "a", 0.0), (1, "b", 0.0), (2, None, 0.0)]), max_size=30), max_size=4))
def test_merge_keeps_equal_rows_in_the_order_of_streams(inputs: list[list[Row]]) -> None:
    marked = [[(key, place, float(number)) for key, place, _ in rows] for number, rows in enumerate(inputs)]

    merged = rows_of(merge_sorted(LONGS, [stream(rows, 3) for rows in marked]))

    assert merged == in_order(row for rows in marked for row in rows)


def test_merge_holds_one_batch_of_each_stream() -> None:
    pulled = [0, 0]

    def counted(number: int) -> Iterator[pa.RecordBatch]:
        for batch in stream([(1, "a", float(row)) for row in range(100)], 10):
            pulled[number] += 1
            yield batch

    merge = merge_sorted(LONGS, [counted(0), counted(1)])
    next(merge)

    assert max(pulled) <= 2


def test_batches_of_wide_rows_are_shorter() -> None:
    assert batch_rows_for(12, 10.0) == 65_536
    assert batch_rows_for(12, 100_000.0, memory_bytes=1 << 30) == 298
    assert batch_rows_for(1000, 1e9) == 256
