"""Writing into a file table: each task writes the sorted rows of its partition, and the driver tracks all files in one request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from headwater.errors import HeadwaterError, RefusedError
from headwater.files import (
    FileTable,
    LeafFileWriter,
    LeafLimits,
    OutputNames,
    RowSchema,
    TrackedFile,
    discard_files,
    track_files,
)
from headwater.store import ObjectId, id_text
from headwater_workers.pipeline.files.file_options import FileRequestOptions, file_table_at


@dataclass
class WrittenFiles(WriterCommitMessage):  # type: ignore[misc, unused-ignore]  # pyspark may be absent when types are checked
    """The files that one task has stored; nobody tracks them yet."""

    files: tuple[TrackedFile, ...]


class FileTableWriter(DataSourceArrowWriter):
    """The writing of one data frame. Executors need the storage and no database."""

    def __init__(self, options: FileRequestOptions, table: FileTable, given: StructType) -> None:
        self._options = options
        self._schema = RowSchema.of(table.definition)
        _check_given(self._schema, given.names)
        self._limits = LeafLimits.of(table.read_tree())
        self._location = table.definition.location
        self._file_id: ObjectId = table.rows.new_id()

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WrittenFiles:
        """Store the rows of one partition.

        raises        RefusedError when they are not sorted, or one has no key
        """
        context = TaskContext.get()
        assert context is not None
        # Attempts of one task, and tasks that Spark runs twice to be faster, must not share a name.
        part = f"{context.partitionId()}-{context.taskAttemptId()}"
        try:
            with LeafFileWriter(self._schema, self._limits, OutputNames(self._location, self._file_id, part)) as writer:
                for batch in iterator:
                    writer.write_rows(self._schema.conform(batch))
                return WrittenFiles(tuple(writer.finish()))
        except RefusedError as fault:
            if "sorted" in str(fault):
                raise RefusedError(f"{fault}; use ingest(), which spreads and sorts the rows") from None
            raise fault.with_traceback(None) from None

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        options = self._options
        try:
            with file_table_at(options.url, options.realm, options.table) as table:
                table.check_writable()
                track_files(table, _files_of(messages), request=options.request or id_text(self._file_id))
        except HeadwaterError as fault:
            raise fault.with_traceback(None) from None

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        discard_files(_files_of(messages))


def _files_of(messages: Sequence[WriterCommitMessage | None]) -> list[TrackedFile]:
    return [file for message in messages if isinstance(message, WrittenFiles) for file in message.files]


def _check_given(schema: RowSchema, names: Sequence[str]) -> None:
    if unknown := [name for name in names if name not in schema.names]:
        raise RefusedError(f"the table has no column {unknown[0]!r}: its columns are {', '.join(schema.names)}")
    if missing := [name for name in (schema.key, *schema.required) if name not in names]:
        raise RefusedError(f"the rows have no column {missing[0]!r}, which is never null")
