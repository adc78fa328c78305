"""Data files of a file table: Parquet, sorted by key and sort columns, with statistics by row group and a sketch of the keys.

Names: ``<location>/data/<16 hex digits of an id of the store>-<part>.parquet``. The id tells when it was made, by the store's clock, so a
file that nobody tracks has an age. Footer metadata: ``headwater.table``, the id of the table; ``headwater.keys``, the sketch.

Needs pyarrow, which is imported when the first file is opened.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from headwater.errors import CorruptionError, RefusedError
from headwater.files.data_storage import new_data_file, open_data_file, storage_errors
from headwater.files.file_table import ALL_KEYS
from headwater.files.partition_tree import RowKeyRange
from headwater.files.row_keys import RowKeyType
from headwater.files.row_schema import OrderTuple, RowOrder, RowSchema
from headwater.store import ObjectId, id_text

if TYPE_CHECKING:
    import pyarrow as pa

ROW_GROUP_ROWS = 65_536
_ROW_GROUP_BYTES = 32 << 20
"""In memory. A merge holds one row group of each input, and a lookup of one key reads one."""
_TABLE, _KEYS = b"headwater.table", b"headwater.keys"
_MOST_SAMPLES, _MOST_SAMPLE_BYTES = 256, 64 << 10
_BATCH_ROWS = 32_768


def data_file_name(location: str, file_id: ObjectId, part: str) -> str:
    """The location of a new data file of the table at ``location``."""
    return f"{location.rstrip('/')}/data/{id_text(file_id)}-{part}.parquet"


class KeySample(NamedTuple):
    """A key of a file that stands for ``rows`` rows: itself and those after it."""

    key: bytes
    rows: int


class KeySketch:
    """Every n-th key of a file, n growing so that a bounded number of keys and bytes is kept."""

    def __init__(self, key_type: RowKeyType) -> None:
        self._key_type = key_type
        self._keys: list[bytes] = []
        self._stride = 1
        self._rows = self._next = 0

    def add_keys(self, column: Any) -> None:
        """Add the keys of the next rows."""
        end = self._rows + len(column)
        while self._next < end:
            self._keys.append(self._key_type.encode_key(column[self._next - self._rows].as_py()))
            if len(self._keys) > _MOST_SAMPLES or (len(self._keys) > 2 and sum(map(len, self._keys)) > _MOST_SAMPLE_BYTES):
                self._keys = self._keys[::2]
                self._stride *= 2
            self._next = len(self._keys) * self._stride
        self._rows = end

    def to_json(self, *, memory_bytes: int) -> bytes:
        """The sketch as it stands in the footer. ``bytes``: what all rows take in memory; encoded they may take far less."""
        keys = [key.hex() for key in self._keys]
        values = {"rows": self._rows, "bytes": memory_bytes, "stride": self._stride, "keys": keys}
        return json.dumps(values, separators=(",", ":")).encode()


@contextmanager
def new_sorted_file(schema: RowSchema, filename: str) -> Iterator[SortedFileWriter]:
    """Write one data file of rows that come in order. Leaving the context stores it; after an error nothing is stored.

    raises        ConflictError when the file exists; RefusedError; UnavailableError
    """
    with new_data_file(filename) as path:
        writer = SortedFileWriter(schema, filename, path)
        try:
            yield writer
            writer.finish_file()
        finally:
            writer.close_file()


class SortedFileWriter:
    """The open file of ``new_sorted_file``."""

    def __init__(self, schema: RowSchema, filename: str, path: str) -> None:
        from pyarrow.parquet import ParquetWriter, SortingColumn

        self.filename = filename
        self.rows = 0
        self._schema = schema
        self._sketch = KeySketch(schema.key_type)
        self._waiting: list[pa.Table] = []
        self._waiting_rows = self._waiting_bytes = self._memory_bytes = 0
        self._last: OrderTuple = ()
        self._parquet = ParquetWriter(
            path,
            schema.arrow,
            compression="zstd",
            sorting_columns=[SortingColumn(schema.names.index(name), nulls_first=True) for name in schema.order],
        )

    def write_rows(self, rows: pa.Table | pa.RecordBatch) -> None:
        """Add rows in the table's columns and types (see ``RowSchema.conform``).

        raises        RefusedError when a row has no key, or sorts before the one above it
        """
        if not rows.num_rows:
            return
        import pyarrow as pa

        table = pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else rows
        self._schema.check_nulls(table, first=self.rows)
        order = RowOrder(self._schema, table)
        first, last = order.tuple_at(0), order.tuple_at(table.num_rows - 1)
        wrong = 0 if self.rows and first < self._last else order.first_out_of_order()
        if wrong is not None:
            raise RefusedError(
                f"row {self.rows + wrong} of {self.filename} sorts before the row above it: rows must be sorted by"
                f" {', '.join(self._schema.order)}, nulls first"
            )
        self._last = last
        self._sketch.add_keys(table.column(self._schema.key))
        self.rows += table.num_rows
        self._waiting.append(table)
        self._waiting_rows += table.num_rows
        self._waiting_bytes += table.nbytes
        self._memory_bytes += table.nbytes
        while self._waiting_rows >= (rows_of_a_group := self._group_rows()):
            self._write_group(rows_of_a_group)

    def finish_file(self) -> None:
        """Write what waits, and the footer's own part."""
        self._write_group(self._waiting_rows)
        sketch = self._sketch.to_json(memory_bytes=self._memory_bytes)
        self._parquet.add_key_value_metadata({_TABLE: self._schema.table, _KEYS: sketch})

    def close_file(self) -> None:
        with storage_errors("write", self.filename):
            self._parquet.close()

    def _group_rows(self) -> int:
        each = max(1, self._waiting_bytes // max(1, self._waiting_rows))
        return max(1, min(ROW_GROUP_ROWS, _ROW_GROUP_BYTES // each))

    def _write_group(self, rows: int) -> None:
        if not self._waiting_rows:
            return
        import pyarrow as pa

        table = pa.concat_tables(self._waiting)
        group, rest = table.slice(0, rows), table.slice(rows)
        with storage_errors("write", self.filename):
            self._parquet.write_table(group, row_group_size=rows)
        self._waiting = [rest] if rest.num_rows else []
        self._waiting_rows = rest.num_rows
        self._waiting_bytes = rest.nbytes


@dataclass
class ReadCounts:
    """What a read touched, for those who ask: files, row groups in them, and those of the groups that were read."""

    files: int = 0
    groups: int = 0
    groups_read: int = 0


def read_data_file(
    schema: RowSchema,
    filename: str,
    keys: RowKeyRange = ALL_KEYS,
    *,
    columns: Sequence[str] = (),
    batch_rows: int = _BATCH_ROWS,
    share: tuple[int, int] = (0, 1),
    counts: ReadCounts | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file within a key range, in order. Only row groups that overlap it are read.

    columns       those wanted; all without any
    share         (i, n): of the row groups that overlap, only every n-th, from the i-th on
    counts        is added to
    raises        ExpiredError when the file is gone; CorruptionError; UnavailableError
    """
    chosen = schema.check_choice(columns)
    with open_data_file(filename) as source, _open_parquet(source, filename) as file:
        _check_columns(schema, file.schema_arrow, filename)
        groups = groups_within(file.metadata, schema, keys)
        mine = groups[share[0] :: share[1]]
        if counts is not None:
            counts.files += 1
            counts.groups += file.metadata.num_row_groups
            counts.groups_read += len(mine)
        needed = list(dict.fromkeys((*chosen, schema.key)))
        for group in mine:  # one by one: what is fetched ahead is then one row group
            for batch in file.iter_batches(batch_size=batch_rows, row_groups=[group], columns=needed):
                begin, end = key_slice(schema.key_type, batch.column(schema.key), keys)
                if begin < end:
                    yield batch.slice(begin, end - begin).select(list(chosen))


@contextmanager
def _open_parquet(source: Any, filename: str) -> Iterator[Any]:
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile

    try:
        with ParquetFile(source, pre_buffer=not isinstance(source, str)) as file:
            yield file
    except pa.ArrowInvalid as fault:
        raise CorruptionError(f"data file {filename} is damaged: {fault}") from fault


def _check_columns(schema: RowSchema, stored: Any, filename: str) -> None:
    for field in schema.arrow:
        position = stored.get_field_index(field.name)
        if position < 0 or stored.field(position).type != field.type:
            raise CorruptionError(
                f"data file {filename} has no column {field.name!r} of type {field.type}: it is of another table"
            )


class FileSketch(NamedTuple):
    """What the footer of a data file tells: rows, what one takes in memory on average, and samples of the keys."""

    rows: int
    row_bytes: float
    samples: tuple[KeySample, ...]


def read_file_sketch(filename: str) -> FileSketch:
    """Read the footer of a file; raises as ``read_data_file`` does."""
    with open_data_file(filename) as source, _open_parquet(source, filename) as file:
        metadata = file.metadata.metadata or {}
    try:
        sketch = json.loads(metadata[_KEYS])
        rows, stride = int(sketch["rows"]), int(sketch["stride"])
        samples = (KeySample(bytes.fromhex(key), min(stride, rows - i * stride)) for i, key in enumerate(sketch["keys"]))
        return FileSketch(rows, int(sketch["bytes"]) / max(1, rows), tuple(samples))
    except (KeyError, ValueError) as fault:
        raise CorruptionError(f"data file {filename} has no sketch of its keys: it was not written as a data file") from fault


def groups_within(metadata: Any, schema: RowSchema, keys: RowKeyRange) -> list[int]:
    """The row groups that may have keys of a range, by their statistics."""
    column = next(i for i in range(metadata.num_columns) if metadata.schema.column(i).path == schema.key)
    encode = schema.key_type.encode_key
    groups = []
    for number in range(metadata.num_row_groups):
        statistics = metadata.row_group(number).column(column).statistics
        if statistics is not None and statistics.has_min_max:  # Parquet leaves out those of very long keys
            low, high = encode(statistics.min), encode(statistics.max)
            if (keys.high is not None and low >= keys.high) or (keys.low is not None and high < keys.low):
                continue
        groups.append(number)
    return groups


def key_slice(key_type: RowKeyType, column: Any, keys: RowKeyRange) -> tuple[int, int]:
    """The first row within a range, and the first after it, of a sorted column of keys."""
    begin = 0 if keys.low is None else key_position(key_type, column, keys.low)
    end = len(column) if keys.high is None else key_position(key_type, column, keys.high)
    return begin, end


def key_position(key_type: RowKeyType, column: Any, key: bytes) -> int:
    """How many keys of a sorted column lie below a key."""
    return bisect_left(range(len(column)), key, key=lambda row: key_type.encode_key(column[row].as_py()))
