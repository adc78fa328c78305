"""Data files: what is written comes back, in order, and no more of it is read than is asked for."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from row_tables import LONG_ROWS, LONGS, TEXTS, Row, in_order, rows_of, table_of

from headwater.errors import ConflictError, CorruptionError, ExpiredError, RefusedError
from headwater.files import ReadCounts, RowKeyRange, RowKeyType, RowSchema, data_file_name, read_data_file
from headwater.files import data_files as written
from headwater.files.data_files import SortedFileWriter, new_sorted_file, read_file_sketch
from headwater.store import ObjectId

WriteFile = Callable[..., str]


def below(low: Any, high: Any, kind: RowKeyType = RowKeyType.LONG) -> RowKeyRange:
    return RowKeyRange(None if low is None else kind.encode_key(low), None if high is None else kind.encode_key(high))


@given(rows=LONG_ROWS, batch=st.integers(1, 50))
@settings(max_examples=40)
def test_data_file_gives_its_rows_again(tmp_path_factory: pytest.TempPathFactory, rows: list[Row], batch: int) -> None:
    filename = f"file://{tmp_path_factory.mktemp('rows')}/a.parquet"
    table = LONGS.sort_rows(table_of(LONGS, rows))

    with new_sorted_file(LONGS, filename) as writer:
        for part in table.to_batches(max_chunksize=batch):
            writer.write_rows(part)

    assert rows_of(read_data_file(LONGS, filename)) == in_order(rows)


@given(rows=LONG_ROWS, low=st.none() | st.integers(-25, 25), high=st.none() | st.integers(-25, 25))
@settings(max_examples=40)
def test_data_file_read_by_range_gives_exactly_that(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Row], low: int | None, high: int | None
) -> None:
    filename = f"file://{tmp_path_factory.mktemp('rows')}/a.parquet"
    with new_sorted_file(LONGS, filename) as writer:
        writer.write_rows(LONGS.sort_rows(table_of(LONGS, rows)))

    read = rows_of(read_data_file(LONGS, filename, below(low, high)))

    assert read == [row for row in in_order(rows) if (low is None or low <= row[0]) and (high is None or row[0] < high)]


def test_range_of_one_key_reads_one_row_group(write_file: WriteFile, small_groups: int) -> None:
    filename = write_file([(number, None, 0.0) for number in range(10 * small_groups)])
    counts = ReadCounts()

    rows = rows_of(read_data_file(LONGS, filename, below(25, 26), counts=counts))

    assert rows == [(25, None, 0.0)]
    assert counts == ReadCounts(files=1, groups=10, groups_read=1)


def test_shares_of_a_file_make_it_whole(write_file: WriteFile, small_groups: int) -> None:
    filename = write_file([(number, None, 0.0) for number in range(7 * small_groups + 3)])

    shares = [rows_of(read_data_file(LONGS, filename, share=(number, 3))) for number in range(3)]

    assert sorted(row[0] for share in shares for row in share) == list(range(7 * small_groups + 3))


def test_columns_of_a_read_are_those_chosen(write_file: WriteFile) -> None:
    filename = write_file([(1, "a", 0.5), (2, "b", 1.5)])

    assert rows_of(read_data_file(LONGS, filename, below(2, None), columns=["value"])) == [(1.5,)]


def test_unknown_column_is_refused(write_file: WriteFile) -> None:
    filename = write_file([(1, "a", 0.5)])

    with pytest.raises(RefusedError, match="there is no column 'vlaue': the columns are key, place, value"):
        list(read_data_file(LONGS, filename, columns=["vlaue"]))


@pytest.mark.parametrize(
    "rows", [[(2, "a", 0.0), (1, "b", 0.0)], [(1, "b", 0.0), (1, "a", 0.0)], [(1, "a", 0.0), (1, None, 0.0)]]
)
def test_rows_out_of_order_are_refused(folder: str, rows: list[Row]) -> None:
    with pytest.raises(RefusedError, match=r"row 1 of .* sorts before the row above it"), writer_of(folder) as writer:
        writer.write_rows(table_of(LONGS, rows))


def test_batch_that_begins_too_low_is_refused(folder: str) -> None:
    with pytest.raises(RefusedError, match=r"row 2 of .* sorts before"), writer_of(folder) as writer:
        writer.write_rows(table_of(LONGS, [(1, "a", 0.0), (2, "a", 0.0)]))
        writer.write_rows(table_of(LONGS, [(1, "z", 0.0)]))


def test_row_without_a_key_is_named(folder: str) -> None:
    message = r"row 1 has no 'key', and a row key is never null: \{'key': None, 'place': 'a'"

    with pytest.raises(RefusedError, match=message), writer_of(folder) as writer:
        writer.write_rows(table_of(LONGS, [(1, "a", 0.0), (None, "a", 0.0)]))


def test_refused_file_leaves_nothing(folder: str, tmp_path: Path) -> None:
    with pytest.raises(RefusedError), writer_of(folder) as writer:
        writer.write_rows(table_of(LONGS, [(2, "a", 0.0), (1, "a", 0.0)]))

    assert list(tmp_path.rglob("*.parquet")) == []


def test_data_file_is_never_overwritten(write_file: WriteFile, folder: str) -> None:
    write_file([(1, "a", 0.0)], name="a")

    with pytest.raises(ConflictError, match="data files need new names"), writer_of(folder):
        pass
    assert rows_of(read_data_file(LONGS, f"{folder}/data/a.parquet")) == [(1, "a", 0.0)]


def test_data_file_that_is_gone_is_an_error(folder: str) -> None:
    with pytest.raises(ExpiredError, match=r"a.parquet is gone: it was collected since this read began"):
        list(read_data_file(LONGS, f"{folder}/data/a.parquet"))


def test_damaged_data_file_is_named(write_file: WriteFile) -> None:
    filename = write_file([(1, "a", 0.0)])
    Path(filename.removeprefix("file://")).write_bytes(b"PAR1 and no more")

    with pytest.raises(CorruptionError, match=r"a.parquet is damaged"):
        list(read_data_file(LONGS, filename))


def test_file_of_another_table_is_no_data_file(write_file: WriteFile) -> None:
    filename = write_file([(1, "a", 0.0)])

    with pytest.raises(CorruptionError, match="has no column 'key' of type string"):
        list(read_data_file(TEXTS, filename))


def test_data_file_says_how_it_is_sorted(write_file: WriteFile) -> None:
    metadata = pq.read_metadata(write_file([(1, "a", 0.0)]).removeprefix("file://"))

    assert [(column.column_index, column.nulls_first) for column in metadata.row_group(0).sorting_columns] == [
        (0, True),
        (1, True),
    ]


def test_sketch_has_keys_at_equal_distances(write_file: WriteFile) -> None:
    sketch = read_file_sketch(write_file([(number, None, 0.0) for number in range(10_000)]))

    keys = [RowKeyType.LONG.decode_key(sample.key) for sample in sketch.samples]
    assert keys == list(range(0, 10_000, 64))
    assert sum(sample.rows for sample in sketch.samples) == sketch.rows == 10_000


def test_sketch_of_long_keys_stays_small(folder: str) -> None:
    with new_sorted_file(TEXTS, f"{folder}/data/a.parquet") as writer:
        writer.write_rows(table_of(TEXTS, [(f"{number:05}" + "x" * 20_000, None, 0) for number in range(50)]))

    samples = read_file_sketch(f"{folder}/data/a.parquet").samples
    assert 2 <= len(samples) <= 4 and sum(sample.rows for sample in samples) == 50


def test_data_file_is_named_by_id_and_part() -> None:
    assert data_file_name("s3://lake/t/", ObjectId(0x1F), "3") == "s3://lake/t/data/000000000000001f-3.parquet"


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return f"file://{tmp_path}"


@pytest.fixture
def write_file(folder: str) -> WriteFile:
    def write(rows: list[Row], *, name: str = "a", schema: RowSchema = LONGS) -> str:
        filename = f"{folder}/data/{name}.parquet"
        with new_sorted_file(schema, filename) as writer:
            writer.write_rows(table_of(schema, rows))
        return filename

    return write


@pytest.fixture
def small_groups(monkeypatch: pytest.MonkeyPatch) -> int:
    """Row groups of ten rows: how many those are."""
    monkeypatch.setattr(written, "ROW_GROUP_ROWS", 10)
    return 10


def writer_of(folder: str) -> AbstractContextManager[SortedFileWriter]:
    return new_sorted_file(LONGS, f"{folder}/data/a.parquet")
