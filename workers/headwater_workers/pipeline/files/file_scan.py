"""Reading a file table: which parts of which files each task reads. Planned once, when a data frame is made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql.datasource import Filter, InputPartition

from headwater.files import FileTable, ReadCounts, RowKeyRange, RowSchema, even_limits, read_data_file
from headwater_workers.pipeline.files.file_options import FileRequestOptions
from headwater_workers.pipeline.files.key_conditions import KeySelection, select_keys
from headwater_workers.pipeline.source.data_source import PieceReader

_LEAST_ROWS = 100_000
"""The rows for which a separate task pays."""
_SHARE_ROWS = 262_144
"""Rows of a file that stay together: some row groups."""


class FilePiece(NamedTuple):
    """A part of a file: its rows in a range of keys, and of these every n-th row group where ``share`` is (i, n).

    rows          about how many
    """

    filename: str
    keys: RowKeyRange
    rows: int
    share: tuple[int, int] = (0, 1)


class PinnedFiles(NamedTuple):
    """The files of a table at one point in time, as pieces in the order of the leaves."""

    schema: RowSchema
    pieces: tuple[FilePiece, ...]


def pin_files(table: FileTable, options: FileRequestOptions) -> PinnedFiles:
    """The state of a table now, as far as it lies in the range of the options.

    raises        TreeBehindError; RefusedError for columns and keys that there are not
    """
    schema = RowSchema.of(table.definition)
    schema.check_choice(options.columns)
    plan = table.plan_read(options.key_range(schema.key_type))
    pieces = (FilePiece(each.filename, leaf.keys, each.rows) for leaf in plan.leaves for each in leaf.references)
    return PinnedFiles(schema, tuple(pieces))


def divide_pieces(pieces: Iterable[FilePiece], selection: KeySelection, *, tasks: int) -> list[list[FilePiece]]:
    """The pieces that have selected keys, for up to so many tasks of about equal weight. Neighbors in key stay together."""
    wanted = [piece._replace(keys=keys) for piece in pieces if (keys := selection.within(piece.keys)) is not None]
    total = sum(piece.rows for piece in wanted)
    tasks = min(tasks, total // _LEAST_ROWS + 1)
    parts: list[FilePiece] = []
    for piece in wanted:
        shares = max(1, min(-(-piece.rows * tasks // max(1, total)), piece.rows // _SHARE_ROWS))
        parts += [piece._replace(rows=piece.rows // shares, share=(number, shares)) for number in range(shares)]
    limits = even_limits([part.rows + 1 for part in parts], tasks)
    return [parts[begin:end] for begin, end in zip([0, *limits], [*limits, len(parts)], strict=True) if parts[begin:end]]


def read_pieces(
    schema: RowSchema, pieces: Sequence[FilePiece], columns: Sequence[str], *, counts: ReadCounts | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of some pieces; raises ExpiredError when one of their files was collected since they were pinned."""
    for piece in pieces:
        yield from read_data_file(schema, piece.filename, piece.keys, columns=columns, share=piece.share, counts=counts)


class FileTableReader(PieceReader):
    """Plans the reading of one query on the driver's side; executors get their pieces and need no database."""

    def __init__(self, options: FileRequestOptions, pinned: PinnedFiles) -> None:
        self._columns = options.columns
        self._tasks = options.partitions
        self._schema = pinned.schema
        self._pieces = pinned.pieces
        self._range = options.key_range(pinned.schema.key_type)
        self._selection = KeySelection(self._range)

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_pieces": ()}

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(pieces) for pieces in divide_pieces(self._pieces, self._selection, tasks=self._tasks)]

    def _read_task(self, pieces: list[Any]) -> Iterator[pa.RecordBatch]:
        return read_pieces(self._schema, pieces, self._columns)


class NarrowingFileReader(FileTableReader):
    """A reader that uses the conditions of a query on the key to read less. Spark checks them all again."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802  # Spark's name
        self._selection = select_keys(filters, self._schema.key, self._schema.key_type, within=self._range)
        return filters
