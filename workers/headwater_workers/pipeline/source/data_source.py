"""The data source as Spark knows it. It is thin, because every call may run in another process; the executors write nothing."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, Filter, InputPartition
from pyspark.sql.types import StructType

from headwater.commits import read_commit
from headwater.errors import CorruptionError, ExpiredError, HeadwaterError, NotFoundError, RefusedError
from headwater.realms import RealmRegistry
from headwater.store import Store
from headwater_workers.pipeline.source.partitions import ScanPartition, divided
from headwater_workers.pipeline.source.pinned_states import (
    PinnedState,
    Tenant,
    check_served,
    expired,
    pin_states,
    read_only,
    tenants,
)
from headwater_workers.pipeline.source.pushdown import Selection, asked_for, select
from headwater_workers.pipeline.source.reader_options import ReadRequest, open_for_reading, request_of
from headwater_workers.pipeline.source.source_columns import TABLES, arrow_schema
from headwater_workers.pipeline.source.source_rows import (
    PartitionReader,
    change_rows,
    commit_rows,
    content_rows,
    entry_rows,
    object_rows,
    reference_rows,
)

_TABLES = {
    "objects": object_rows,
    "references": reference_rows,
    "commits": commit_rows,
    "changes": change_rows,
    "entries": entry_rows,
    "contents": content_rows,
}


def read_partition(request: ReadRequest, selection: Selection, pieces: Sequence[ScanPartition]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of some pieces like ``read_from``, through a connection of its own that is closed at the end."""
    if not pieces:
        return
    with open_for_reading(request.url) as store, _without_collector():
        yield from read_from(store, request, selection, pieces)


def read_from(
    store: Store, request: ReadRequest, selection: Selection, pieces: Sequence[ScanPartition]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of some pieces, in the requested columns.

    raises        ExpiredError when a state was collected since it was pinned; NotFoundError and RefusedError when its realm is gone
    """
    schema = arrow_schema(request.columns)
    for piece in pieces:
        try:
            yield from _TABLES[request.table](
                PartitionReader(read_only(store, piece.tenant), piece, request, selection, schema)
            )
        except (NotFoundError, CorruptionError) as fault:
            raise _meaning(store, piece, fault) from None


@contextmanager
def _without_collector() -> Iterator[None]:
    """Pause the garbage collector: rows are millions of small tuples without cycles, and searching them takes longer than reading."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _meaning(store: Store, piece: ScanPartition, fault: HeadwaterError) -> HeadwaterError:
    """The error that explains why a state could not be read."""
    if piece.pin is None:
        return fault
    realm = RealmRegistry(store).find_realm(piece.tenant.realm)
    if realm is None or realm.key != piece.tenant.key:
        return NotFoundError(f"realm {piece.tenant.realm!r} was deleted since this data frame or view was made")
    try:
        check_served(realm)
        head = read_commit(read_only(store, piece.tenant).without_cache(), piece.pin.commit)
    except ExpiredError:
        return expired(piece.pin)
    except HeadwaterError as found:
        return found
    return expired(piece.pin) if isinstance(fault, CorruptionError) and head.is_collected() else fault


def register_data_source(spark: SparkSession) -> None:
    """Make ``spark.read.format("headwater")`` and ``USING headwater`` known to a session. Conditions are pushed down
    where the option ``pushdown`` asks for it, and everywhere if that is safe.

    The executors' Python must have Headwater, too.
    """
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    spark.dataSource.register(NarrowingSource if keeps_conditions_apart(spark) else HeadwaterSource)


def keeps_conditions_apart(spark: SparkSession) -> bool:
    """Whether Spark applies pushed-down conditions only to the scan that they belong to.

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
    """One table of a store. A data frame or view is a snapshot: it reads the states that existed when it was created."""

    narrows: ClassVar[bool] = False
    """Whether conditions reduce reading without the option."""

    @classmethod
    def name(cls) -> str:
        return "headwater"

    def schema(self) -> str:
        """The columns in Spark's types. Spark asks once, before it keeps this source: the states are looked up here."""
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
            self._pins = pin_states(store, self._request) if TABLES[self._request.table].has_states else []


class PieceReader(DataSourceReader):
    """A reader whose tasks get lists of pieces; our errors end them as a sentence, without a traceback."""

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        try:
            yield from self._read_task(partition.value or [])  # without a partition, Spark requests an empty one
        except HeadwaterError as fault:
            raise _sentence(fault) from None

    def _read_task(self, pieces: list[Any]) -> Iterator[pa.RecordBatch]:
        raise NotImplementedError


class HeadwaterReader(PieceReader):
    """Plans the reading of one query on the driver's side, and reads in executors, which get no more than they need."""

    def __init__(self, request: ReadRequest, places: list[Tenant], pins: list[PinnedState]) -> None:
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

    def _read_task(self, pieces: list[Any]) -> Iterator[pa.RecordBatch]:
        return read_partition(self._request, self._selection, pieces)


class NarrowingSource(HeadwaterSource):
    """One table of a store, for a Spark that keeps the conditions of two scans apart; see ``register_data_source``."""

    narrows = True


class NarrowingReader(HeadwaterReader):
    """A reader that uses the conditions of a query to read less."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802  # Spark's name
        self._selection, rest = select(self._request.table, [*self._asked, *filters])
        return rest


def _sentence(fault: HeadwaterError) -> HeadwaterError:
    """Remove the traceback, which Spark would show to a person frame by frame."""
    return fault.with_traceback(None)
