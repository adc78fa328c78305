"""Ingest: rows become sorted data files, each with one reference for every leaf that it has rows of, and exact numbers of rows.

A file may reach over many leaves. It is written first and tracked afterwards, with all others of the ingest, in one request. A tree
that was split meanwhile is no harm: the references are then of partitions that have children, and are moved down later.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from headwater.errors import HeadwaterError, UnknownOutcomeError
from headwater.files.data_files import SortedFileWriter, data_file_name, key_position, new_sorted_file
from headwater.files.data_storage import delete_data_file
from headwater.files.file_errors import RequestIdReusedError
from headwater.files.file_references import AddFiles, FileReference, PartitionId, RequestState, TrackedFile
from headwater.files.file_table import FileTable
from headwater.files.partition_tree import PartitionTree
from headwater.files.row_keys import RowKeyType
from headwater.files.row_schema import RowSchema
from headwater.store import ObjectId, id_text

if TYPE_CHECKING:
    import pyarrow as pa

FILE_ROWS = 4_000_000
"""From so many rows on, a file ends where a leaf does."""
_RUN_BYTES = 256 << 20
"""What an ingest in one process sorts at a time."""


class LeafLimits(NamedTuple):
    """The leaves of a tree and the limits between them: what a writer needs to know of it."""

    leaves: tuple[PartitionId, ...]
    points: tuple[bytes, ...]

    @classmethod
    def of(cls, tree: PartitionTree) -> LeafLimits:
        return cls(tuple(tree.leaf_ids()), tuple(tree.split_points()))

    def pieces(self, key_type: RowKeyType, keys: Any) -> Iterator[tuple[int, int, int]]:
        """Divide a sorted column of keys: (number of the leaf, first row, first row of the next leaf)."""
        begin = 0
        while begin < len(keys):
            leaf = bisect_right(self.points, key_type.encode_key(keys[begin].as_py()))
            end = len(keys)
            if leaf < len(self.points):
                end = begin + key_position(key_type, keys.slice(begin), self.points[leaf])
            yield leaf, begin, end
            begin = end


class OutputNames(NamedTuple):
    """How the files of one writer are called: by an id of the store, and a part that no other writer with this id has."""

    location: str
    file_id: ObjectId
    part: str

    def location_of(self, number: int) -> str:
        return data_file_name(self.location, self.file_id, f"{self.part}-{number}")


class LeftEarly(Exception):
    """A writer was left before its end, so that what it has written is nothing."""


class LeafFileWriter:
    """Writes sorted rows into as many files as are sensible, and counts the rows of each leaf.

    Use it as a context: after an error, or without ``finish``, what was written is deleted, as far as possible.
    """

    def __init__(self, schema: RowSchema, limits: LeafLimits, names: OutputNames, *, file_rows: int = FILE_ROWS) -> None:
        self._schema, self._limits, self._names, self._file_rows = schema, limits, names, file_rows
        self._files: list[TrackedFile] = []
        self._counts: dict[int, int] = {}
        self._open: SortedFileWriter | None = None
        self._stack = ExitStack()
        self._is_finished = False

    def __enter__(self) -> LeafFileWriter:
        return self

    def __exit__(self, kind: Any, fault: Any, trace: Any) -> None:
        self._stack.__exit__(kind or LeftEarly, fault or LeftEarly(), trace)
        if not self._is_finished:
            discard_files(self._files)

    def write_rows(self, rows: pa.Table | pa.RecordBatch) -> None:
        """Add rows in the table's columns and types, in order; raises as ``SortedFileWriter.write_rows`` does."""
        self._schema.check_nulls(rows, first=self.rows)
        begin = 0
        for leaf, first, end in self._limits.pieces(self._schema.key_type, rows.column(self._schema.key)):
            if self._rows_open(first - begin) >= self._file_rows and leaf not in self._counts:
                self._write(rows.slice(begin, first - begin))
                self._close_file()
                begin = first
            self._counts[leaf] = self._counts.get(leaf, 0) + end - first
        self._write(rows.slice(begin))

    def finish(self) -> list[TrackedFile]:
        """Store what is left. Returns the files with their references; nobody tracks them yet."""
        self._close_file()
        self._is_finished = True
        return self._files

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self._files) + sum(self._counts.values())

    def _rows_open(self, more: int) -> int:
        return more + (0 if self._open is None else self._open.rows)

    def _write(self, rows: pa.Table | pa.RecordBatch) -> None:
        if not rows.num_rows:
            return
        if self._open is None:
            self._open = self._stack.enter_context(new_sorted_file(self._schema, self._names.location_of(len(self._files))))
        self._open.write_rows(rows)

    def _close_file(self) -> None:
        if self._open is None:
            return
        writer, self._open = self._open, None
        self._stack.close()
        counts, self._counts = self._counts, {}
        references = tuple(
            FileReference(
                filename=writer.filename, partition=self._limits.leaves[leaf], rows=rows, is_whole_file=len(counts) == 1
            )
            for leaf, rows in sorted(counts.items())
        )
        self._files.append(TrackedFile(filename=writer.filename, references=references))


def ingest_rows(
    table: FileTable, rows: Iterable[pa.Table | pa.RecordBatch], *, request: str = "", run_bytes: int = _RUN_BYTES
) -> list[TrackedFile]:
    """Ingest rows in any order, in this process. Returns the files that were written and tracked.

    rows          tables or batches with columns of the table by name; a missing one is null
    request       a name for this ingest, such as the day of its data: an ingest whose request was applied already does nothing
    run_bytes     what is sorted at a time, in memory; each run becomes a file of its own
    raises        RefusedError when a row has no key or does not fit; FileTableClosedError; then nothing is tracked
    """
    table.check_writable()
    if request and is_applied(table, request):
        return []
    schema = RowSchema.of(table.definition)
    limits = LeafLimits.of(table.read_tree())
    file_id = table.rows.new_id()
    files: list[TrackedFile] = []
    with ExitStack() as undo:
        undo.callback(lambda: discard_files(files))
        for number, run in enumerate(_runs(schema, rows, run_bytes)):
            names = OutputNames(table.definition.location, file_id, str(number))
            with LeafFileWriter(schema, limits, names) as writer:
                writer.write_rows(schema.sort_rows(run))
                files += writer.finish()
        undo.pop_all()  # from here on, track_files sees to the files
    return track_files(table, files, request=request or id_text(file_id))


def track_files(table: FileTable, files: Sequence[TrackedFile], *, request: str) -> list[TrackedFile]:
    """Track written files in one request. When that is refused, they are deleted, as far as possible.

    returns       the files; none when the request was applied before, with other files
    raises        FileTableClosedError; FileExistsInTableError when writing took longer than the writers' grace;
                  UnknownOutcomeError: they may be tracked, and stay where they are
    """
    if not files:
        return []
    try:
        table.references.add_files(AddFiles(files=tuple(files), request=request))
    except UnknownOutcomeError:
        raise
    except RequestIdReusedError:
        discard_files(files)
        if is_applied(table, request):
            return []
        raise
    except HeadwaterError:
        discard_files(files)
        raise
    return list(files)


def is_applied(table: FileTable, request: str) -> bool:
    """Whether a request of this name was applied to the table."""
    outcome = table.references.find_outcomes([request]).get(request)
    return outcome is not None and outcome.state is RequestState.APPLIED


def discard_files(files: Iterable[TrackedFile]) -> None:
    """Delete files that nobody tracks, as far as possible: the collection finds the others by their age."""
    for file in files:
        with suppress(HeadwaterError):
            delete_data_file(file.filename)


def _runs(schema: RowSchema, rows: Iterable[pa.Table | pa.RecordBatch], run_bytes: int) -> Iterator[pa.Table]:
    import pyarrow as pa

    waiting: list[pa.Table] = []
    number = size = 0
    for part in rows:
        table = schema.conform(part)
        schema.check_nulls(table, first=number)
        number += table.num_rows
        waiting.append(table)
        size += table.nbytes
        if size >= run_bytes:
            yield pa.concat_tables(waiting)
            waiting, size = [], 0
    if any(table.num_rows for table in waiting):
        yield pa.concat_tables(waiting)
