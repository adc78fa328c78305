"""The survey of an import as Spark jobs: the same rules and the same answer as in process, spread over executors."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from headwater.catalogs.iceberg import Progress, Scope, Surveyed, examine, list_tables, survey_in_process
from headwater.catalogs.iceberg.grouping import TableFiles
from headwater.catalogs.iceberg.judging import traits_of
from headwater.catalogs.iceberg.outcomes import Found, pack, sketch_of
from headwater.catalogs.iceberg.spilling import Spill
from headwater.catalogs.iceberg.surveying import ListedTables
from headwater.errors import RefusedError
from headwater.settings import Settings
from headwater_workers.pipeline.engines import Engine, find_engine
from headwater_workers.pipeline.jobs import Jobs
from headwater_workers.pipeline.judging import traits_in, verdicts_on
from headwater_workers.pipeline.listing import tables_below
from headwater_workers.pipeline.schemas import OUTCOMES
from headwater_workers.pipeline.sessions import SparkOptions, session

__all__ = ["Survey", "survey_by_spark", "survey_in", "survey_on_spark"]

TABLES_PER_TASK = 500
"""Tables that one Spark task looks at: enough to be worth its start, few enough that not much is lost with it, and that the outcomes of
two tasks, with their documents, have room in the worker: so they come to it."""
SKETCHES_PER_TASK = 20_000
COUNTED_SECONDS = 30.0
"""How long tables are counted to find out whether they are worth Spark: twice as long as that takes to start."""


class Survey:
    """Surveys on Spark what is worth its start, and in this process what is not, with the same result.

    Spark takes some 15 seconds until it looks at its first table, in which a process has looked at tens of thousands. So tables are
    counted first, up to the setting ``spark_from_tables``, and for ``COUNTED_SECONDS`` at most: a storage that is so slow is better
    listed by many. Spark lists anew. An inventory is the list of a large lake, and is not counted.

    is_spark_wanted  Spark, whatever the size
    """

    def __init__(
        self, settings: Settings, *, is_spark_wanted: bool = False, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._monotonic = monotonic
        self._settings = settings
        self._is_spark_wanted = is_spark_wanted
        self._engine = find_engine(settings)

    @property
    def name(self) -> str:
        """What surveys here, or has surveyed."""
        return str(self._engine)

    def check(self) -> None:
        """raises        RefusedError when Spark is wanted and cannot run here"""
        if self._is_spark_wanted and not self._engine.is_spark:
            raise RefusedError(f"this import asks for Spark, which cannot run here: {self._engine.reason}")

    def __call__(self, scope: Scope, progress: Progress) -> Surveyed:
        """raises        what ``check``, ``survey_in_process`` and ``survey_on_spark`` raise"""
        self.check()
        if not self._engine.is_spark:
            return survey_in_process(scope, progress=progress)
        limit = self._settings.spark_from_tables
        is_counted = not self._is_spark_wanted and scope.inventory is None
        tables = self._listed(scope, progress) if is_counted else None
        if tables is None:
            return survey_on_spark(scope, SparkOptions.of(self._settings), progress=progress)
        self._engine = Engine(False, f"fewer than {limit} tables")
        return survey_in_process(scope, progress=progress, tables=tables)

    def _listed(self, scope: Scope, progress: Progress) -> ListedTables | None:
        """The tables, if they are few and soon listed."""
        until = self._monotonic() + COUNTED_SECONDS
        limit = self._settings.spark_from_tables
        return list_tables(scope, limit=limit, progress=progress, is_late=lambda: self._monotonic() > until)


def survey_by_spark(settings: Settings) -> Survey:
    """For the command line, which finds it by its entry point.

    raises        RefusedError when Spark cannot run here: then no task is submitted that could only fail
    """
    survey = Survey(settings, is_spark_wanted=True)
    survey.check()
    return survey


def survey_on_spark(scope: Scope, options: SparkOptions, *, progress: Progress | None = None) -> Surveyed:
    """One outcome per selected table of the scope, sorted by directory: what ``survey_in_process`` says.

    The session is stopped before this returns. Outcomes wait on this process' disk; at most those of two
    tasks are in memory at a time.

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
    traits = traits_in(outcomes).persist()
    jobs.run("examine", traits.count)
    spark.conf.set("spark.sql.shuffle.partitions", str(_parts(total, SKETCHES_PER_TASK, slots)))
    verdicts = jobs.run("judge", lambda: verdicts_on(traits))
    return Surveyed(jobs.run("hand over", lambda: _handed_over(outcomes)), verdicts)


def _outcomes(spark: Any, tables: Any, scope: Scope, width: int) -> Any:
    """TABLES -> OUTCOMES, sorted: metadata is chosen, read, validated and verified in parallel, documents stay where they were read."""

    def look(
        rows: Iterable[Any],
    ) -> Iterator[tuple[str, list[str] | None, str | None, list[tuple[str, bool]] | None, bytearray]]:
        for row in rows:
            outcome = examine(msgspec.msgpack.decode(row.tbl, type=TableFiles), scope)
            packed = bytearray(pack(outcome))
            if isinstance(outcome, Found):
                alone, shared = traits_of(sketch_of(outcome), scope.locations)
                traits = [*((name, True) for name in alone), *((name, False) for name in shared)]
                yield outcome.directory, list(outcome.key), outcome.uuid, traits, packed
            else:
                yield outcome.directory, None, None, None, packed

    ordered = tables.repartitionByRange(width, "directory").sortWithinPartitions("directory")
    return spark.createDataFrame(ordered.rdd.mapPartitions(look), OUTCOMES, verifySchema=False)


def _handed_over(outcomes: Any) -> Spill:
    """The outcomes in their order; one partition after the other comes to this process."""
    spill = Spill()
    for row in outcomes.select("outcome").toLocalIterator(prefetchPartitions=True):
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
