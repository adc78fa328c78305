"""A file table in a Spark program: ``SparkFileTable`` with ``ingest``, ``select_rows`` and ``compact``."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, closing
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from headwater.extras import missing_extra
from headwater.files import CompactionReport, CompactionRules, RequestSender, RowKey, is_applied, is_asynchronous
from headwater.settings import Settings
from headwater_workers.pipeline.files.file_options import file_table_at
from headwater_workers.pipeline.files.file_source import FORMAT, register_file_source
from headwater_workers.pipeline.files.row_spread import SpreadKind, spread_rows
from headwater_workers.pipeline.files.spark_compaction import compact_on_spark


class SparkFileTable:
    """One file table, for one Spark session.

    url           of the store; "": the environment's
    """

    def __init__(self, spark: SparkSession, *, realm: str, name: str, url: str = "") -> None:
        self.spark = spark
        self.realm = realm
        self.name = name
        self._url = url or Settings.from_environment().store
        register_file_source(spark)

    @property
    def _place(self) -> dict[str, str]:
        return {"url": self._url, "realm": self.realm, "table": self.name}

    def ingest(self, rows: DataFrame, *, request: str = "", partitions: int = 0, spread: SpreadKind = SpreadKind.AUTO) -> None:
        """Append rows: spread over ranges of keys, sorted, written as Parquet, tracked in one request.

        request       a name for this ingest, such as the day of its data: a second one of the same name changes nothing
        partitions    how many files at least; 0: ``spark.sql.shuffle.partitions``
        raises        PySparkException with a sentence of ours when a row has no key or does not fit: then nothing was appended
        """
        with file_table_at(self._url, self.realm, self.name) as table:
            if request and is_applied(table, request):
                return
            wanted = partitions or int(str(self.spark.conf.get("spark.sql.shuffle.partitions")))
            sorted_rows = spread_rows(rows, table, partitions=wanted, kind=SpreadKind(spread))
        options = self._place | ({"request": request} if request else {})
        sorted_rows.write.format(FORMAT).mode("append").options(**options).save()

    def select_rows(
        self, *, first: RowKey | None = None, below: RowKey | None = None, columns: Sequence[str] = (), **options: Any
    ) -> DataFrame:
        """The rows with a key from ``first`` on and below ``below``, as the table has them now.

        options       further ones of the format, such as ``pushdown="true"`` or ``partitions=16``
        """
        chosen = {name: _text(key) for name, key in (("from", first), ("below", below)) if key is not None}
        if columns:
            chosen["columns"] = ",".join(columns)
        return self.spark.read.format(FORMAT).options(**self._place, **chosen, **options).load()

    def compact(self, rules: CompactionRules | None = None, **options: Any) -> CompactionReport:
        """Compact the table by Spark; ``options`` are those of ``compact_on_spark``. Commits go to the queue of the workers where the
        setting ``files_asynchronous`` says so.
        """
        settings = Settings.from_environment(store=self._url)
        options = {"lease_seconds": settings.files_compaction_lease_seconds} | options
        with ExitStack() as opened:
            if "sender" not in options and is_asynchronous(settings, "commit"):
                options["sender"] = opened.enter_context(closing(_open_sender(settings)))
            table = opened.enter_context(file_table_at(self._url, self.realm, self.name))
            return compact_on_spark(self.spark, table, rules or CompactionRules.of(settings), **options)


def ingest(rows: DataFrame, *, realm: str, name: str, url: str = "", **options: Any) -> None:
    """Append rows to a file table; ``options`` are those of ``SparkFileTable.ingest``."""
    SparkFileTable(rows.sparkSession, realm=realm, name=name, url=url).ingest(rows, **options)


def _open_sender(settings: Settings) -> RequestSender:
    try:
        from headwater_workers.file_queue import open_request_sender  # with the broker's libraries: not every program has them
    except ModuleNotFoundError as absent:
        raise missing_extra(absent) or absent from absent
    return open_request_sender(settings)


def _text(key: RowKey) -> str:
    return key.hex() if isinstance(key, bytes) else str(key)
