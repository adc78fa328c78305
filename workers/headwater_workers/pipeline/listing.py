"""From locations, or from an inventory, to table directories, listed in parallel."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

import msgspec

from headwater.catalogs.iceberg import Scope
from headwater.catalogs.iceberg.grouping import File, TableFiles, is_of_a_table
from headwater.catalogs.iceberg.inventory import Part, parts_of, read_part
from headwater.catalogs.iceberg.storage import divide
from headwater.catalogs.iceberg.surveying import find_tables, folder_of, tables_of
from headwater.errors import MissingError, UnavailableError
from headwater_workers.pipeline.schemas import FILES, LOCATIONS, PARTS, TABLES

__all__ = ["tables_below"]

_OF_A_TABLE = frozenset({"metadata", "data", "_delta_log"})


def tables_below(spark: Any, scope: Scope, *, width: int) -> Any:
    """TABLES of a scope: its selected table directories.

    width         partitions to list in
    """
    if scope.inventory is not None:
        return _inventoried(spark, scope, scope.inventory, width)
    return _listed(spark, scope, width)


def _listed(spark: Any, scope: Scope, width: int) -> Any:
    """LOCATIONS -> FOLDERS -> FOLDERS a level deeper -> TABLES; each level is dealt out anew: one folder may hold nearly all."""
    from pyspark.sql.functions import col, explode, udf

    @udf("array<string>", useArrow=False)  # type: ignore[untyped-decorator, unused-ignore]  # pyspark may be absent when types are checked
    def below(location: str) -> list[str]:
        return divide(location)

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
    """The folders of a folder that can be listed apart; the folder itself where it is, was or belongs to a table, or has none."""
    if _name(folder) in _OF_A_TABLE:
        return [folder]
    try:
        folders = divide(folder)
    except (MissingError, UnavailableError):  # went away meanwhile, or may not be listed: who lists it sees
        return [folder]
    return folders if folders and not {_name(one) for one in folders} & _OF_A_TABLE else [folder]


def _name(folder: str) -> str:
    return folder.rpartition("/")[2]


def _inventoried(spark: Any, scope: Scope, inventory: str, width: int) -> Any:
    """PARTS -> FILES -> TABLES; the files of one folder meet in one partition, sorted, and are grouped as they stream by."""
    parts = spark.createDataFrame([(bytearray(msgspec.msgpack.encode(part)),) for part in parts_of(inventory)], PARTS)

    def files(rows: Iterable[Any]) -> Iterator[tuple[str, str, bytearray]]:
        for row in rows:
            for file in read_part(msgspec.msgpack.decode(row.part, type=Part)):
                folder = folder_of(scope, file)
                if folder is not None and is_of_a_table(folder[0], file):
                    yield *folder, bytearray(msgspec.msgpack.encode(file))

    def tables(rows: Iterable[Any]) -> Iterator[tuple[str, bytearray]]:
        for (location, _), group in groupby(rows, key=lambda row: (row.location, row.folder)):
            listed = (msgspec.msgpack.decode(row.file, type=File) for row in group)
            yield from (_row(table) for table in tables_of(scope, location, listed))

    listed = spark.createDataFrame(parts.rdd.mapPartitions(files), FILES, verifySchema=False)
    sorted_ = listed.repartition(width, "location", "folder").sortWithinPartitions("location", "folder")
    return spark.createDataFrame(sorted_.rdd.mapPartitions(tables), TABLES, verifySchema=False)


def _row(table: TableFiles) -> tuple[str, bytearray]:
    return table.directory, bytearray(msgspec.msgpack.encode(table))
