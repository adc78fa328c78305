"""The data source as Spark knows it: thin, for every call may run in another process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, Filter, InputPartition
from pyspark.sql.types import StructType

from headwater.errors import HeadwaterError, RefusedError
from headwater_workers.pipeline.source.columns import TABLES
from headwater_workers.pipeline.source.conditions import asked_for, select
from headwater_workers.pipeline.source.dividing import Piece, divided
from headwater_workers.pipeline.source.options import Request, open_for_reading, request_of
from headwater_workers.pipeline.source.pinning import Pin, Tenant, pinned, tenants
from headwater_workers.pipeline.source.reading import read

__all__ = ["HeadwaterSource", "NarrowingReader", "NarrowingSource", "keeps_conditions_apart", "register"]


def register(spark: SparkSession) -> None:
    """Make ``spark.read.format("headwater")`` and ``USING headwater`` known to a session. Conditions are pushed down for who asks for it
    by the option ``pushdown``, and for all where that is safe.

    The executors' Python must have Headwater, too.
    """
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    spark.dataSource.register(NarrowingSource if keeps_conditions_apart(spark) else HeadwaterSource)


def keeps_conditions_apart(spark: SparkSession) -> bool:
    """Whether what is pushed down is Spark's for the one scan that it was said of.

    Up to Spark 4.3 it is kept with the data frame or view: the last scan's conditions were those of all scans of it, in the same query
    (``dev JOIN main`` of one view read one branch twice) and in later ones (which saw a part for the whole).
    """
    jvm = getattr(spark, "_jvm", None)  # Spark Connect has none, and does not tell
    if jvm is None:
        return False
    from py4j.protocol import Py4JError

    try:
        scan = jvm.java.lang.Class.forName("org.apache.spark.sql.execution.datasources.v2.python.PythonScanBuilder")
    except Py4JError:
        return False
    return "readInfo" in [one.getName() for one in scan.getDeclaredFields()]


class HeadwaterSource(DataSource):
    """One table of a store. A data frame or view stands still: it reads the states that there were when it was made."""

    narrows: ClassVar[bool] = False
    """Whether conditions spare reading also where nobody asked for it."""

    @classmethod
    def name(cls) -> str:
        return "headwater"

    def schema(self) -> str:
        """The columns in Spark's words. Spark asks once, before it keeps this source: what is read is looked up here."""
        try:
            self._look()
        except HeadwaterError as fault:
            raise _sentence(fault) from None
        return ", ".join(f"{column.name} {column.type}" for column in self._request.columns)

    def reader(self, schema: StructType) -> HeadwaterReader:
        if not hasattr(self, "_request"):
            raise RefusedError(
                "the data source headwater tells its columns itself: choose some by the option columns, not by a schema"
            )
        kind = NarrowingReader if self.narrows or self._request.pushdown else HeadwaterReader
        return kind(self._request, self._tenants, self._pins)

    def _look(self) -> None:
        self._request = request_of(self.options)
        with open_for_reading(self._request.url) as store:
            self._tenants = tenants(store, self._request)
            self._pins = pinned(store, self._request) if TABLES[self._request.table].has_states else []


class HeadwaterReader(DataSourceReader):
    """Plans the reading of one query beside the driver, and reads in executors; these get no more than they need."""

    def __init__(self, request: Request, places: list[Tenant], pins: list[Pin]) -> None:
        self._request = request
        self._places = places
        self._pins = pins
        self._asked = asked_for(request.table, prefix=request.prefix)
        self._selection, _ = select(request.table, self._asked)

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_places": [], "_pins": []}

    def partitions(self) -> list[InputPartition]:
        try:
            with open_for_reading(self._request.url) as store:
                bundles = divided(store, self._request, self._selection, self._places, self._pins)
        except HeadwaterError as fault:
            raise _sentence(fault) from None
        return [InputPartition(bundle) for bundle in bundles]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        pieces: list[Piece] = partition.value or []  # without a partition, Spark asks for one of nothing
        try:
            yield from read(self._request, self._selection, pieces)
        except HeadwaterError as fault:
            raise _sentence(fault) from None


class NarrowingSource(HeadwaterSource):
    """The same for a Spark that keeps the conditions of two scans apart; see ``register``."""

    narrows = True


class NarrowingReader(HeadwaterReader):
    """Reads what conditions leave."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802  # Spark's name
        self._selection, rest = select(self._request.table, [*self._asked, *filters])
        return rest


def _sentence(fault: HeadwaterError) -> HeadwaterError:
    """The same without the way to it, which Spark would show to a person frame by frame."""
    return fault.with_traceback(None)
