"""Files divided into buckets by their loose keys, in memory while they are few and in a temporary folder beyond.

Everything that is said of a file depends on files of the same loose key alone. So a bucket is compared without the others, in constant
memory, in this process or on another machine.

``FileRuns`` sorts some hundred thousand files at a time by bucket, into runs: Arrow files with a batch for each bucket. ``DeadRuns``
sorts what was found by place and path, in runs that are merged when they are read.
"""

from __future__ import annotations

import heapq
import tempfile
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from headwater.lake_files.file_columns import (
    AT_ONCE,
    ListedFiles,
    LiveFiles,
    listed_rows,
    listed_schema,
    live_rows,
    live_schema,
)
from headwater.lake_files.file_reasons import FileReason
from headwater.lake_files.lake_file_values import DeadFile
from headwater.lake_files.path_keys import StrictKeys
from headwater.typed_values import json_decoder

if TYPE_CHECKING:
    import pyarrow as pa

BUCKETS = 64
_IN_MEMORY = 100_000
_MOST_BYTES = 64 << 20
_DEAD_IN_MEMORY = 50_000
_ODD_KEPT = 5


class BucketFiles(NamedTuple):
    """The files of one bucket, by strict keys; a path may stand in it more than once.

    live          those that stored versions name, in the columns of ``live_schema``
    listed        those that are there, in the columns of ``listed_schema``
    """

    live: pa.Table
    listed: pa.Table


class FileRuns:
    """Collects live and listed files by bucket. Use it in a ``with`` block: it removes its temporary folder.

    odd           some live paths that are no locations, such as relative ones: nobody can say which files they are
    """

    def __init__(self, *, buckets: int = BUCKETS, in_memory: int = _IN_MEMORY) -> None:
        self.buckets = buckets
        self.live = self.listed = self.listed_bytes = 0
        self.odd: list[str] = []
        self._folder = tempfile.TemporaryDirectory(prefix="headwater-files-")
        self._live = _BucketRuns(live_schema(), buckets, in_memory, Path(self._folder.name) / "live")
        self._listed = _BucketRuns(listed_schema(), buckets, in_memory, Path(self._folder.name) / "listed")
        self._strict = StrictKeys()

    def __enter__(self) -> FileRuns:
        return self

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._live.close()
        self._listed.close()
        self._folder.cleanup()

    def add_live(self, batches: Iterable[LiveFiles]) -> None:
        waiting: list[LiveFiles] = []
        size = 0
        for files in batches:
            self.live += files.size
            self.odd += files.odd[: _ODD_KEPT - len(self.odd)]
            waiting.append(files)
            size += files.size
            if size >= AT_ONCE:
                self._live.add(live_rows(waiting))
                waiting, size = [], 0
        if waiting:
            self._live.add(live_rows(waiting))

    def add_listed(self, batches: Iterable[ListedFiles]) -> None:
        import pyarrow.compute as pc

        for files in batches:
            self.listed += len(files.paths)
            self.listed_bytes += int(pc.sum(files.sizes).as_py() or 0)
            self._listed.add(listed_rows(files, self._strict))

    def bucket(self, number: int) -> BucketFiles:
        """The files of a bucket. Afterwards nothing can be added. Several threads may ask."""
        return BucketFiles(self._live.bucket(number), self._listed.bucket(number))


class _BucketRuns:
    """Rows by bucket: in runs on disk, and the last run in memory. A run is sorted and written while others go on."""

    def __init__(self, schema: pa.Schema, buckets: int, in_memory: int, stem: Path) -> None:
        self._schema = schema
        self._buckets = buckets
        self._in_memory = in_memory
        self._stem = stem
        self._waiting: list[pa.RecordBatch] = []
        self._rows = self._bytes = 0
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="runs")
        self._written: list[Future[pa.NativeFile]] = []
        self._runs: list[pa.ipc.RecordBatchFileReader] = []
        self._lock = Lock()

    def add(self, rows: pa.RecordBatch) -> None:
        self._waiting.append(rows)
        self._rows += rows.num_rows
        self._bytes += rows.nbytes
        if self._rows >= self._in_memory or self._bytes >= _MOST_BYTES:
            if self._written:
                self._written[-1].result()
            path = self._stem.with_suffix(f".{len(self._written)}")
            self._written.append(self._writer.submit(self._spill, self._taken(), str(path)))

    def bucket(self, number: int) -> pa.Table:
        import pyarrow as pa

        with self._lock:
            if self._waiting or not self._runs:
                self._runs = [pa.ipc.open_file(run.result()) for run in self._written]
                buffer = pa.BufferOutputStream()
                self._write_run(self._taken(), buffer)
                self._runs.append(pa.ipc.open_file(pa.BufferReader(buffer.getvalue())))
            batches = [run.get_batch(number) for run in self._runs]
        return pa.Table.from_batches(batches, self._schema).combine_chunks()

    def close(self) -> None:
        self._writer.shutdown()
        for run in self._written:
            if run.exception() is None:
                run.result().close()

    def _taken(self) -> list[pa.RecordBatch]:
        taken, self._waiting = self._waiting, []
        self._rows = self._bytes = 0
        return taken

    def _spill(self, rows: list[pa.RecordBatch], path: str) -> pa.NativeFile:
        import pyarrow as pa

        with pa.OSFile(path, "wb") as file:
            self._write_run(rows, file)
        return pa.OSFile(path, "rb")

    def _write_run(self, batches: list[pa.RecordBatch], sink: pa.NativeFile) -> None:
        """Write rows by bucket, a batch for each."""
        import pyarrow as pa
        import pyarrow.compute as pc

        rows = pa.Table.from_batches(batches, self._schema).combine_chunks()
        buckets = _remainders(rows["number"], self._buckets)
        ordered = rows.take(pc.sort_indices(buckets)).combine_chunks()
        counts = {each["values"]: each["counts"] for each in pc.value_counts(buckets).to_pylist()}
        (whole,) = ordered.to_batches() or [pa.RecordBatch.from_pylist([], self._schema)]
        at = 0
        with pa.ipc.new_file(sink, self._schema) as writer:
            for bucket in range(self._buckets):
                writer.write_batch(whole.slice(at, counts.get(bucket, 0)))
                at += counts.get(bucket, 0)


def _remainders(numbers: pa.ChunkedArray, divisor: int) -> pa.ChunkedArray:
    import pyarrow.compute as pc

    whole = pc.multiply(pc.divide(numbers, _number(divisor)), _number(divisor))
    return pc.subtract(numbers, whole)


def _number(value: int) -> pa.Scalar:
    import pyarrow as pa

    return pa.scalar(value, pa.uint32())


class _DeadLine(NamedTuple):
    place: str
    path: str
    size_bytes: int
    modified: int
    code: str


_ENCODER = msgspec.json.Encoder()
_DECODER = json_decoder(_DeadLine)


class DeadRuns:
    """Collects dead files, and gives them sorted by place and path, as often as asked. Use it in a ``with`` block."""

    def __init__(self, *, in_memory: int = _DEAD_IN_MEMORY) -> None:
        self._in_memory = in_memory
        self._waiting: list[_DeadLine] = []
        self._runs: list[Path] = []
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def __enter__(self) -> DeadRuns:
        return self

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def add_dead(self, files: Iterable[DeadFile]) -> None:
        for file in files:
            self._waiting.append(_DeadLine(file.place, file.path, file.size_bytes, file.modified, file.code))
            if len(self._waiting) >= self._in_memory:
                self._spill()

    def __iter__(self) -> Iterator[DeadFile]:
        self._waiting.sort()
        for line in heapq.merge(self._waiting, *map(_lines, self._runs)):
            yield DeadFile(line.path, line.size_bytes, line.modified, line.place, FileReason(line.code))  # type: ignore[arg-type]

    def _spill(self) -> None:
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="headwater-dead-")
        self._waiting.sort()
        run = Path(self._folder.name) / str(len(self._runs))
        with run.open("wb") as file:
            file.writelines(_ENCODER.encode(line) + b"\n" for line in self._waiting)
        self._runs.append(run)
        self._waiting = []


def _lines(run: Path) -> Iterator[_DeadLine]:
    with run.open("rb") as file:
        yield from map(_DECODER.decode, file)
