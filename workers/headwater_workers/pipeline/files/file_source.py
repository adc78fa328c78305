"""The format ``headwater-files`` as Spark knows it: rows of file tables, read and appended."""

from __future__ import annotations

from typing import ClassVar

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from headwater.errors import HeadwaterError, RefusedError
from headwater_workers.pipeline.files.file_options import file_options_of, file_table_at
from headwater_workers.pipeline.files.file_scan import FileTableReader, NarrowingFileReader, pin_files
from headwater_workers.pipeline.files.file_writer import FileTableWriter
from headwater_workers.pipeline.source.data_source import keeps_conditions_apart

FORMAT = "headwater-files"


def register_file_source(spark: SparkSession) -> None:
    """Make the format ``headwater-files`` known to a session. Conditions are pushed down as those of the format ``headwater`` are."""
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    spark.dataSource.register(NarrowingFileSource if keeps_conditions_apart(spark) else FileTableSource)


class FileTableSource(DataSource):
    """One file table. A data frame is a snapshot: it reads the files that the table had when it was made."""

    narrows: ClassVar[bool] = False
    """Whether conditions reduce reading without the option."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        """The columns in Spark's types. Spark asks once, before it keeps this source: the files are looked up here."""
        try:
            self._request = file_options_of(self.options)
            with file_table_at(self._request.url, self._request.realm, self._request.table) as table:
                self._pinned = pin_files(table, self._request)
        except HeadwaterError as fault:
            raise fault.with_traceback(None) from None
        return self._pinned.schema.ddl(self._request.columns)

    def reader(self, schema: StructType) -> FileTableReader:
        if not hasattr(self, "_pinned"):
            raise RefusedError("a file table tells its columns itself: choose some by the option columns, not by a schema")
        kind = NarrowingFileReader if self.narrows or self._request.pushdown else FileTableReader
        return kind(self._request, self._pinned)

    def writer(self, schema: StructType, overwrite: bool) -> FileTableWriter:
        if overwrite:
            raise RefusedError("a file table is appended to, and never overwritten: use mode('append')")
        try:
            options = file_options_of(self.options)
            with file_table_at(options.url, options.realm, options.table) as table:
                table.check_writable()
                return FileTableWriter(options, table, schema)
        except HeadwaterError as fault:
            raise fault.with_traceback(None) from None


class NarrowingFileSource(FileTableSource):
    """One file table, for a Spark that keeps the conditions of two scans apart."""

    narrows = True
