"""The survey of an import as a Spark job: the same rules and the same answer as in process, spread over executors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import Any

import msgspec

from headwater.catalogs.iceberg import (
    Found,
    Outcome,
    Progress,
    Quarantined,
    Scope,
    TableFiles,
    divide,
    examine,
    find_tables,
    judge,
    sketch_of,
    survey_in_process,
)
from headwater.errors import UnavailableError
from headwater.settings import Settings
from headwater_workers.pipeline.engines import find_engine
from headwater_workers.pipeline.schemas import FOLDERS, OUTCOME, TABLES
from headwater_workers.pipeline.sessions import SparkOptions, first_line, session

__all__ = ["survey", "survey_on_spark"]

POLL_SECONDS = 0.5


def survey(scope: Scope, settings: Settings, *, progress: Progress | None = None) -> Iterable[Outcome]:
    """One outcome per selected table, sorted by directory, by the engine that ``find_engine`` names."""
    if find_engine(settings).is_spark:
        return survey_on_spark(scope, master=settings.spark_master, progress=progress)
    return survey_in_process(scope, progress=progress)


def survey_on_spark(scope: Scope, *, master: str, progress: Progress | None = None) -> list[Outcome]:
    """One outcome per selected table below the scope's locations, sorted by directory: what ``survey_in_process`` says.

    progress      called in this thread; what it raises stops the job and is handed on
    raises        MissingError for a location that is not there, UnavailableError when the storage or Spark does not answer
    """
    report = progress or _silent
    folders = [(location, folder) for location in scope.locations for folder in divide(location)]
    report(0, len(folders), "folders")
    if not folders:
        return []
    with session("headwater import", SparkOptions(master)) as spark:
        tables = _tables(spark, folders, scope).persist()
        total: int = _watched(spark, tables.count, lambda: report(0, len(folders), "folders"))
        done = spark.sparkContext.accumulator(0)
        outcomes = _outcomes(spark, tables, scope, done)
        report(0, total, "tables")
        rows: list[Any] = _watched(spark, outcomes.collect, lambda: report(min(done.value, total), total, "tables"))
    report(total, total, "tables")
    found = sorted((_outcome(row.asDict(recursive=True)) for row in rows), key=lambda outcome: outcome.directory)
    verdicts = judge(sketch_of(outcome) for outcome in found if isinstance(outcome, Found))
    return [verdicts.get(outcome.directory, outcome) if isinstance(outcome, Found) else outcome for outcome in found]


def _tables(spark: Any, folders: list[tuple[str, str]], scope: Scope) -> Any:
    """folders (location, folder) -> tables (table struct), one row per selected table directory; listed in parallel by folder."""
    from pyspark.sql.functions import explode, udf

    @udf(TABLES, useArrow=False)  # type: ignore[untyped-decorator, unused-ignore]  # pyspark may be absent when types are checked
    def find(location: str, folder: str) -> list[dict[str, Any]]:
        return [msgspec.to_builtins(table) for table in find_tables(scope, location, folder)]

    frame = spark.createDataFrame(folders, FOLDERS).repartition(min(len(folders), _slots(spark)))
    return frame.select(explode(find("location", "folder")).alias("table"))


def _outcomes(spark: Any, tables: Any, scope: Scope, done: Any) -> Any:
    """tables (table struct) -> outcomes (columns of OUTCOME), one row for each; metadata is chosen, read and validated in parallel."""
    from pyspark.sql.functions import udf

    @udf(OUTCOME, useArrow=False)  # type: ignore[untyped-decorator, unused-ignore]
    def look(table: Any) -> dict[str, Any]:
        outcome = examine(msgspec.convert(table.asDict(recursive=True), TableFiles), scope)
        done.add(1)
        plain: dict[str, Any] = msgspec.to_builtins(outcome)
        return plain

    return tables.repartition(_slots(spark)).select(look("table").alias("outcome")).select("outcome.*")


def _slots(spark: Any) -> int:
    return max(1, int(spark.sparkContext.defaultParallelism)) * 2


def _watched(spark: Any, action: Callable[[], Any], report: Callable[[], None]) -> Any:
    """Run a Spark action in a thread and report from this one, so that a caller who loses its task can stop the job.

    raises        what ``report`` raises, after the job was cancelled; UnavailableError for what Spark raises
    """
    from py4j.protocol import Py4JError

    with ThreadPoolExecutor(1, thread_name_prefix="spark") as pool:
        future: Future[Any] = pool.submit(action)
        try:
            while wait([future], timeout=POLL_SECONDS).not_done:
                report()
        except BaseException:
            with suppress(Py4JError, OSError):
                spark.sparkContext.cancelAllJobs()
            raise
    fault = future.exception()
    if fault is not None:
        raise UnavailableError(f"the Spark job failed: {_cause(fault)}") from fault
    return future.result()


def _cause(fault: BaseException) -> str:
    """The error of our own rules inside of Spark's traceback, or what Spark says."""
    ours = [line.strip() for line in str(fault).splitlines() if line.strip().startswith("headwater.errors.")]
    return ours[-1].partition(": ")[2] if ours else first_line(fault)


def _outcome(row: Mapping[str, Any]) -> Outcome:
    filled = {name: value for name, value in row.items() if value is not None}
    if "code" in filled:
        return msgspec.convert(filled, Quarantined)
    return msgspec.convert({"uuid": None, "snapshot_id": None, **filled}, Found)


def _silent(done: int, total: int, unit: str) -> None:
    """No one listens."""
