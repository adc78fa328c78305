"""Marked files as Parquet: what a report found dead, since when, and what is said of it; sorted by place and path.

A report reads what the one before it wrote, side by side with what it finds itself, and writes the next: both in order, a batch at a time.
"""

from __future__ import annotations

import io
from collections.abc import Collection, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from headwater.clock import Micros
from headwater.errors import CorruptionError
from headwater.lake_files.file_reasons import FileReason
from headwater.lake_files.work_folder import WorkFile, WorkFolder

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile

PART_ROWS = 500_000
_BATCH_ROWS = 20_000


class MarkedFile(NamedTuple):
    """A file that nobody refers to.

    modified      its own time; 0 where the storage does not say
    first_listed  when one of our listings had it first, as a file that nobody refers to
    runs          how many reports in a row found it so, this one included
    due           the earliest time at which it may go, if every report until then confirms it; 0 for what is only reported
    code          what is to be said of it
    """

    place: str
    path: str
    size_bytes: int
    modified: Micros
    first_listed: Micros
    runs: int
    due: Micros
    code: FileReason


def choose_marks(marks: Iterable[MarkedFile], *, codes: Collection[str] = (), place: str | None = None) -> Iterator[MarkedFile]:
    """Those with one of some codes, and in one place; none and None: all. A place may be written with a slash at its end."""
    wanted = None if place is None else place.rstrip("/")
    return (mark for mark in marks if (not codes or mark.code in codes) and wanted in (None, mark.place))


def write_marked_files(folder: WorkFolder, stem: str, files: Iterable[MarkedFile]) -> list[WorkFile]:
    """Write files in their order, in parts; returns these.

    stem          what the names of the parts begin with
    """
    rest, parts = iter(files), list[WorkFile]()
    while first := list(islice(rest, 1)):
        buffer = io.BytesIO()
        rows = _write_part(buffer, first, islice(rest, PART_ROWS - 1))
        parts.append(folder.store_file(f"{stem}/part-{len(parts):05d}.parquet", buffer.getvalue(), rows=rows))
    return parts


def read_marked_files(folder: WorkFolder, parts: Iterable[WorkFile], *, start: int = 0) -> Iterator[MarkedFile]:
    """Read files in their order.

    start         how many of the first are left out: of these no part is loaded that has none behind them
    raises        CorruptionError for a part that is missing, damaged, or of another form
    """
    from pyarrow import ArrowException
    from pyarrow.parquet import ParquetFile

    for part in parts:
        if start and start >= part.rows:
            start -= part.rows
            continue
        data = folder.load_file(part)
        try:
            with ParquetFile(io.BytesIO(data)) as table:
                groups, start = _groups_from(table, start)
                for batch in table.iter_batches(_BATCH_ROWS, row_groups=groups):
                    columns = [batch.column(name).to_pylist()[start:] for name in MarkedFile._fields]
                    start = max(start - batch.num_rows, 0)
                    columns[-1] = [FileReason(code) for code in columns[-1]]
                    yield from map(MarkedFile, *columns)
        except (ArrowException, KeyError, ValueError) as fault:
            raise CorruptionError(f"{folder.location}/{part.name} is no part of a report of this release: {fault}") from fault


def _groups_from(table: ParquetFile, start: int) -> tuple[list[int], int]:
    """The row groups of a part that have rows behind so many, and how many of their first rows are not among these."""
    groups = range(table.metadata.num_row_groups)
    for group in groups:
        rows = table.metadata.row_group(group).num_rows
        if start < rows:
            return list(groups[group:]), start
        start -= rows
    return [], 0


def _write_part(buffer: io.BytesIO, first: list[MarkedFile], rest: Iterator[MarkedFile]) -> int:
    from pyarrow.parquet import ParquetWriter

    rows = 0
    with ParquetWriter(buffer, _schema(), compression="zstd") as writer:
        batch = first + list(islice(rest, _BATCH_ROWS - 1))
        while batch:
            writer.write_batch(_record_batch(batch))
            rows += len(batch)
            batch = list(islice(rest, _BATCH_ROWS))
    return rows


def _record_batch(files: list[MarkedFile]) -> pa.RecordBatch:
    import pyarrow as pa

    schema = _schema()
    arrays = [pa.array(column, field.type) for column, field in zip(zip(*files, strict=True), schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _schema() -> pa.Schema:
    import pyarrow as pa

    kinds = {
        "size_bytes": pa.int64(),
        "modified": pa.int64(),
        "first_listed": pa.int64(),
        "runs": pa.int32(),
        "due": pa.int64(),
    }
    return pa.schema([pa.field(name, kinds.get(name, pa.string()), nullable=False) for name in MarkedFile._fields])
