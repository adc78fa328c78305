"""The survey of an import as Spark jobs: the same rules and the same result as in process, spread over executors.

Defines the columns of its data frames: locations or an inventory become table directories, these become outcomes, and tables that
contradict each other are found by a shuffle. Outcomes and tables travel in the encoding of core.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import Any

import msgspec

from headwater.errors import NotFoundError, RefusedError, UnavailableError
from headwater.iceberg import SurveyProgress, SurveyResult, SurveyScope, examine_table, list_tables, survey_in_process
from headwater.iceberg.filesystem import divide_location
from headwater.iceberg.inventory import InventoryPart, inventory_parts, read_inventory_part
from headwater.iceberg.layout import FileInfo, TableFiles, belongs_to_table
from headwater.iceberg.survey_outcomes import (
    AcceptedTable,
    OutcomeSpill,
    QuarantinedTable,
    TableIdentity,
    exclusive_keys,
    find_conflicts,
    identity_of,
    pack_outcome,
)
from headwater.iceberg.table_survey import ListedTables, find_tables, survey_folder_of, tables_of
from headwater.settings import Settings
from headwater.typed_values import decode_msgpack
from headwater_workers.pipeline.spark_session import Engine, Jobs, SparkOptions, find_engine, session

LOCATIONS = "location string"
"""The locations to list."""

FOLDERS = "location string, folder string"
"""One row per folder that can be listed on its own: no table reaches over two of them."""

PARTS = "part binary"
"""One file of an inventory (a part of an inventory)."""

FILES = "location string, folder string, file binary"
"""One file that an inventory lists (``iceberg.FileInfo``) and the folder of a location that it belongs to."""

TABLES = "directory string, tbl binary"
"""The files of a table directory (``iceberg.TableFiles``); unique by ``directory``."""

OUTCOMES = "directory string, key array<string>, uuid string, traits array<struct<name string, alone boolean>>, outcome binary"
"""One outcome per table directory, with its document. What is quarantined has no ``key``, ``uuid`` and ``traits``; ``uuid`` may be null.
``traits`` are what ``iceberg.exclusive_keys`` says."""

TRAITS = "directory string, key array<string>, uuid string, name string, alone boolean"
"""One trait of a surveyed table."""


def traits_in(outcomes: Any) -> Any:
    """OUTCOMES -> TRAITS."""
    from pyspark.sql.functions import explode

    return outcomes.select("directory", "key", "uuid", explode("traits").alias("trait")).select(
        "directory", "key", "uuid", "trait.*"
    )


def verdicts_on(traits: Any) -> dict[str, QuarantinedTable]:
    """TRAITS -> the verdicts, by directory, on tables that cannot stand beside each other.

    One shuffle finds them, and only the verdicts come to this process; usually there are few.
    """
    from pyspark.sql.functions import col, count_if, lit

    contested = traits.groupBy("name").agg(count_if("alone").alias("owners"), count_if(lit(True)).alias("tables"))
    contested = contested.where((col("owners") > 0) & (col("tables") > 1))
    involved = traits.join(contested, "name", "left_semi").select("directory", "key", "uuid").distinct()
    return find_conflicts(TableIdentity(row.directory, tuple(row.key), row.uuid) for row in involved.collect())


_OF_A_TABLE = frozenset({"metadata", "data", "_delta_log"})


def tables_below(spark: Any, scope: SurveyScope, *, width: int) -> Any:
    """TABLES of a scope: its selected table directories.

    width         partitions to list in
    """
    if scope.inventory is not None:
        return _inventoried(spark, scope, scope.inventory, width)
    return _listed(spark, scope, width)


def _listed(spark: Any, scope: SurveyScope, width: int) -> Any:
    """LOCATIONS -> FOLDERS -> FOLDERS a level deeper -> TABLES; each level is repartitioned, because one folder may hold nearly all."""
    from pyspark.sql.functions import col, explode, udf

    @udf("array<string>", useArrow=False)  # type: ignore[untyped-decorator, unused-ignore]  # pyspark may be absent when types are checked
    def below(location: str) -> list[str]:
        return divide_location(location)

    @udf("array<string>", useArrow=False)  # type: ignore[untyped-decorator, unused-ignore]
    def deeper(folder: str) -> list[str]:
        return narrower(folder)

    @udf(f"array<struct<{TABLES}>>", useArrow=False)  # type: ignore[untyped-decorator, unused-ignore]
    def find(location: str, folder: str) -> list[tuple[str, bytearray]]:
        return [_row(table) for table in find_tables(scope, location, folder)]

    folders = spark.createDataFrame([(location,) for location in scope.locations], LOCATIONS)
    folders = folders.select("location", explode(below("location")).alias("folder")).repartition(width)
    folders = folders.select("location", explode(deeper("folder")).alias("folder")).repartition(width)
    return folders.select(explode(find("location", "folder")).alias("found")).select(col("found.*"))


def narrower(folder: str) -> list[str]:
    """The subfolders that can be listed separately; the folder itself where it is, was or belongs to a table, or has no subfolders."""
    if _name(folder) in _OF_A_TABLE:
        return [folder]
    try:
        folders = divide_location(folder)
    except (NotFoundError, UnavailableError):  # vanished meanwhile, or unreadable: whoever lists it finds out
        return [folder]
    return folders if folders and not {_name(subfolder) for subfolder in folders} & _OF_A_TABLE else [folder]


def _name(folder: str) -> str:
    return folder.rpartition("/")[2]


def _inventoried(spark: Any, scope: SurveyScope, inventory: str, width: int) -> Any:
    """PARTS -> FILES -> TABLES; the files of one folder meet in one partition, sorted, and are grouped as they stream by."""
    parts = spark.createDataFrame([(bytearray(msgspec.msgpack.encode(part)),) for part in inventory_parts(inventory)], PARTS)

    def files(rows: Iterable[Any]) -> Iterator[tuple[str, str, bytearray]]:
        for row in rows:
            for file in read_inventory_part(decode_msgpack(row.part, InventoryPart)):
                folder = survey_folder_of(scope, file)
                if folder is not None and belongs_to_table(folder[0], file):
                    yield *folder, bytearray(msgspec.msgpack.encode(file))

    def tables(rows: Iterable[Any]) -> Iterator[tuple[str, bytearray]]:
        for (location, _), group in groupby(rows, key=lambda row: (row.location, row.folder)):
            listed = (decode_msgpack(row.file, FileInfo) for row in group)
            yield from (_row(table) for table in tables_of(scope, location, listed))

    listed = spark.createDataFrame(parts.rdd.mapPartitions(files), FILES, verifySchema=False)
    sorted_ = listed.repartition(width, "location", "folder").sortWithinPartitions("location", "folder")
    return spark.createDataFrame(sorted_.rdd.mapPartitions(tables), TABLES, verifySchema=False)


def _row(table: TableFiles) -> tuple[str, bytearray]:
    return table.directory, bytearray(msgspec.msgpack.encode(table))


TABLES_PER_TASK = 500
"""Tables that one Spark task looks at: enough to be worth its start, few enough that not much is lost with it, and that the outcomes of
two tasks, with their documents, have room in the worker: so they come to it."""
SKETCHES_PER_TASK = 20_000
COUNTED_SECONDS = 30.0
"""The longest count of tables before the choice of the engine, in seconds: twice the start of Spark."""


class SparkSurvey:
    """Surveys on Spark where that is worth its start, and otherwise in this process, with the same result.

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
        """The engine of the survey, before or after it ran."""
        return str(self._engine)

    def check(self) -> None:
        """Pass if the wanted engine is available.

        raises        RefusedError when Spark is wanted and cannot run here
        """
        if self._is_spark_wanted and not self._engine.is_spark:
            raise RefusedError(f"this import asks for Spark, which cannot run here: {self._engine.reason}")

    def __call__(self, scope: SurveyScope, progress: SurveyProgress) -> SurveyResult:
        """Survey the tables of a scope.

        raises        what ``check``, ``survey_in_process`` and ``survey_on_spark`` raise
        """
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

    def _listed(self, scope: SurveyScope, progress: SurveyProgress) -> ListedTables | None:
        """The tables, if they are few and quickly listed; otherwise None."""
        until = self._monotonic() + COUNTED_SECONDS
        limit = self._settings.spark_from_tables
        return list_tables(scope, limit=limit, progress=progress, is_late=lambda: self._monotonic() > until)


def survey_by_spark(settings: Settings) -> SparkSurvey:
    """The survey by Spark for the command line, which finds it by its entry point.

    raises        RefusedError when Spark cannot run here: then no task is submitted that could only fail
    """
    survey = SparkSurvey(settings, is_spark_wanted=True)
    survey.check()
    return survey


def survey_on_spark(scope: SurveyScope, options: SparkOptions, *, progress: SurveyProgress | None = None) -> SurveyResult:
    """One outcome per selected table of the scope, sorted by directory: what ``survey_in_process`` says.

    The session is stopped before this returns. Outcomes wait on this process' disk; at most those of two
    tasks are in memory at a time.

    progress      called in this thread, with Spark's tasks of the stage at hand; what it raises stops the jobs and is handed on
    raises        NotFoundError for a location that is not there, UnavailableError when the storage or Spark does not answer
    """
    with session("headwater import", options) as spark:
        return survey_in(spark, scope, progress=progress)


def survey_in(spark: Any, scope: SurveyScope, *, progress: SurveyProgress | None = None) -> SurveyResult:
    """Run ``survey_on_spark`` in an existing session, which stays open."""
    jobs = Jobs(spark, progress or _silent)
    slots = max(1, int(spark.sparkContext.defaultParallelism))
    tables = tables_below(spark, scope, width=4 * slots).persist()
    total = jobs.run_job("list", tables.count)
    outcomes = _outcomes(spark, tables, scope, _parts(total, TABLES_PER_TASK, slots)).persist(_on_disk())
    traits = traits_in(outcomes).persist()
    jobs.run_job("examine", traits.count)
    spark.conf.set("spark.sql.shuffle.partitions", str(_parts(total, SKETCHES_PER_TASK, slots)))
    verdicts = jobs.run_job("judge", lambda: verdicts_on(traits))
    return SurveyResult(jobs.run_job("hand over", lambda: _handed_over(outcomes)), verdicts)


def _outcomes(spark: Any, tables: Any, scope: SurveyScope, width: int) -> Any:
    """TABLES -> OUTCOMES, sorted: metadata is chosen, read, validated and verified in parallel, documents stay where they were read."""

    def look(
        rows: Iterable[Any],
    ) -> Iterator[tuple[str, list[str] | None, str | None, list[tuple[str, bool]] | None, bytearray]]:
        for row in rows:
            outcome = examine_table(decode_msgpack(row.tbl, TableFiles), scope)
            packed = bytearray(pack_outcome(outcome))
            if isinstance(outcome, AcceptedTable):
                alone, shared = exclusive_keys(identity_of(outcome), scope.locations)
                traits = [*((name, True) for name in alone), *((name, False) for name in shared)]
                yield outcome.directory, list(outcome.key), outcome.uuid, traits, packed
            else:
                yield outcome.directory, None, None, None, packed

    ordered = tables.repartitionByRange(width, "directory").sortWithinPartitions("directory")
    return spark.createDataFrame(ordered.rdd.mapPartitions(look), OUTCOMES, verifySchema=False)


def _handed_over(outcomes: Any) -> OutcomeSpill:
    """The outcomes in order; one partition after the other comes to this process."""
    spill = OutcomeSpill()
    for row in outcomes.select("outcome").toLocalIterator(prefetchPartitions=True):
        spill.append_packed(bytes(row.outcome))
    return spill


def _on_disk() -> Any:
    """Keep documents on disk: in the memory of a JVM, those of many tables leave no room for the work."""
    from pyspark import StorageLevel

    return StorageLevel.DISK_ONLY


def _parts(rows: int, each: int, least: int) -> int:
    return max(least, -(-rows // each))


def _silent(done: int, total: int, unit: str) -> None:
    """The default without a listener."""
