"""Ingests and compactions of file tables on Spark for the command line, which finds them by an entry point."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headwater.errors import HeadwaterError, RefusedError
from headwater.files.compaction import CompactionReport, CompactionRules
from headwater.settings import Settings
from headwater_workers.pipeline.spark_session import SparkOptions, find_engine, session, spark_errors


class SparkFileWork:
    """Each call is one Spark application of the session that the settings describe."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def ingest_files(self, realm: str, name: str, locations: Sequence[str], *, request: str = "") -> None:
        """Append the rows of Parquet files to a file table, all or none."""
        with session("headwater file-table ingest", SparkOptions.of(self._settings)) as spark:
            try:
                self._table(spark, realm, name).ingest(spark.read.parquet(*locations), request=request)
            except HeadwaterError:
                raise
            except Exception as fault:  # whatever Spark raises: its classes differ by how it is connected
                raise spark_errors(fault) from fault

    def compact_table(self, realm: str, name: str, rules: CompactionRules) -> CompactionReport:
        """Compact a file table."""
        with session("headwater file-table compact", SparkOptions.of(self._settings)) as spark:
            report: CompactionReport = self._table(spark, realm, name).compact(rules)
            return report

    def _table(self, spark: Any, realm: str, name: str) -> Any:
        from headwater_workers.pipeline.files import SparkFileTable  # imports pyspark

        return SparkFileTable(spark, realm=realm, name=name, url=self._settings.store)


def file_work_by_spark(settings: Settings) -> SparkFileWork:
    """raises RefusedError when Spark cannot run here"""
    engine = find_engine(settings)
    if not engine.is_spark:
        raise RefusedError(f"--spark asks for Spark, which cannot run here: {engine.reason}")
    return SparkFileWork(settings)
