"""The survey of an import as Spark jobs: the same rules and the same answer as in process, spread over executors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from headwater.catalogs.iceberg import Progress, Scope, Surveyed, examine, survey_in_process
from headwater.catalogs.iceberg.grouping import TableFiles
from headwater.catalogs.iceberg.outcomes import Found, pack
from headwater.catalogs.iceberg.spilling import Spill
from headwater.settings import Settings
from headwater_workers.pipeline.engines import find_engine
from headwater_workers.pipeline.jobs import Jobs
from headwater_workers.pipeline.judging import verdicts_on
from headwater_workers.pipeline.listing import tables_below
from headwater_workers.pipeline.schemas import OUTCOMES
from headwater_workers.pipeline.sessions import SparkOptions, session

__all__ = ["survey", "survey_in", "survey_on_spark"]

TABLES_PER_TASK = 500
"""Tables that one Spark task looks at: enough to be worth its start, few enough that not much is lost with it."""
SKETCHES_PER_TASK = 20_000
OUTCOMES_AT_ONCE = 500
"""Outcomes, with their documents, that come to the worker at once; it holds those of two such parts in memory."""


def survey(scope: Scope, settings: Settings, *, progress: Progress | None = None) -> Surveyed:
    """One outcome per selected table, sorted by directory, by the engine that ``find_engine`` names."""
    if find_engine(settings).is_spark:
        return survey_on_spark(scope, SparkOptions.of(settings), progress=progress)
    return survey_in_process(scope, progress=progress)


def survey_on_spark(scope: Scope, options: SparkOptions, *, progress: Progress | None = None) -> Surveyed:
    """One outcome per selected table of the scope, sorted by directory: what ``survey_in_process`` says.

    The session is stopped before this returns. Outcomes wait on this process' disk; at most two parts of ``OUTCOMES_AT_ONCE`` are in
    memory at a time.

    progress      called in this thread, with Spark's tasks of the stage at hand; what it raises stops the jobs and is handed on
    raises        MissingError for a location that is not there, UnavailableError when the storage or Spark does not answer
    """
    with session("headwater import", options) as spark:
        return survey_in(spark, scope, progress=progress)


def survey_in(spark: Any, scope: Scope, *, progress: Progress | None = None) -> Surveyed:
    """``survey_on_spark`` in a session that is there, and stays."""
    jobs = Jobs(spark, progress or _silent)
    slots = max(1, int(spark.sparkContext.defaultParallelism))
    tables = tables_below(spark, scope, width=4 * slots).persist()
    total = jobs.run("list", tables.count)
    outcomes = _outcomes(spark, tables, scope, _parts(total, TABLES_PER_TASK, slots)).persist(_on_disk())
    jobs.run("examine", outcomes.count)
    spark.conf.set("spark.sql.shuffle.partitions", str(_parts(total, SKETCHES_PER_TASK, slots)))
    sketches = outcomes.where("key is not null").select("directory", "key", "uuid").coalesce(slots).persist()
    verdicts = verdicts_on(sketches).persist()
    jobs.run("judge", verdicts.count)
    return Surveyed(jobs.run("hand over", lambda: _handed_over(outcomes, verdicts, _parts(total, OUTCOMES_AT_ONCE, 1))), {})


def _outcomes(spark: Any, tables: Any, scope: Scope, width: int) -> Any:
    """TABLES -> OUTCOMES: metadata is chosen, read, validated and verified in parallel."""

    def look(rows: Iterable[Any]) -> Iterator[tuple[str, list[str] | None, str | None, bytearray]]:
        for row in rows:
            outcome = examine(msgspec.msgpack.decode(row.tbl, type=TableFiles), scope)
            key, uuid = (list(outcome.key), outcome.uuid) if isinstance(outcome, Found) else (None, None)
            yield outcome.directory, key, uuid, bytearray(pack(outcome))

    return spark.createDataFrame(tables.repartition(width, "directory").rdd.mapPartitions(look), OUTCOMES, verifySchema=False)


def _handed_over(outcomes: Any, verdicts: Any, parts: int) -> Spill:
    """What stands after the verdicts, sorted by directory; one partition after the other comes to this process."""
    from pyspark.sql.functions import coalesce

    judged = outcomes.join(verdicts, "directory", "left").select("directory", coalesce("verdict", "outcome").alias("outcome"))
    ordered = judged.repartitionByRange(parts, "directory").sortWithinPartitions("directory")
    spill = Spill()
    for row in ordered.toLocalIterator(prefetchPartitions=True):
        spill.add_packed(bytes(row.outcome))
    return spill


def _on_disk() -> Any:
    """Where documents wait: in the memory of a JVM, those of many tables leave no room for the work."""
    from pyspark import StorageLevel

    return StorageLevel.DISK_ONLY


def _parts(rows: int, each: int, least: int) -> int:
    return max(least, -(-rows // each))


def _silent(done: int, total: int, unit: str) -> None:
    """No one listens."""
