"""Tables that contradict each other, found by joins: the verdicts that ``iceberg.judging`` gives in process, by the same ranks."""

from __future__ import annotations

from functools import reduce
from typing import Any

from headwater.catalogs.iceberg.judging import NAMED, directories_above, keys_above, nested, same_key, same_uuid, under_a_table
from headwater.catalogs.iceberg.outcomes import Sketch, pack

__all__ = ["verdicts_on"]


def verdicts_on(sketches: Any) -> Any:
    """sketches (directory, key, uuid), unique by directory -> VERDICTS on those that cannot stand beside each other."""
    from pyspark.sql.functions import min_by

    ranked = reduce(lambda one, other: one.unionByName(other), [*_sharing(sketches), *_nestings(sketches)])
    verdicts = ranked.groupBy("directory").agg(min_by("verdict", "rank").alias("verdict")).persist()
    return verdicts.unionByName(_under_tables(sketches.join(verdicts, "directory", "left_anti")))


def _sharing(sketches: Any) -> list[Any]:
    """Those with the same uuid, and those with the same key: (directory, rank, verdict)."""
    from pyspark.sql import Window
    from pyspark.sql.functions import col, collect_list, count, lit, row_number, sort_array, udf, when

    @udf("binary", useArrow=False)  # type: ignore[untyped-decorator, unused-ignore]  # pyspark may be absent when types are checked
    def on_uuid(directory: str, key: list[str], uuid: str, directories: list[str], total: int) -> bytearray:
        return bytearray(pack(same_uuid(Sketch(directory, tuple(key), uuid), directories, total)))

    @udf("binary", useArrow=False)  # type: ignore[untyped-decorator, unused-ignore]
    def on_key(directory: str, key: list[str], uuid: str, directories: list[str], total: int) -> bytearray:
        return bytearray(pack(same_key(Sketch(directory, tuple(key), uuid), directories, total)))

    frames = []
    for rank, (trait, verdict) in enumerate((("uuid", on_uuid), ("key", on_key))):
        sharing = Window.partitionBy(trait)
        placed = sketches.where(col(trait).isNotNull()).withColumn("place", row_number().over(sharing.orderBy("directory")))
        named = collect_list(when(col("place") <= NAMED, col("directory"))).over(sharing)
        counted = placed.withColumn("total", count("*").over(sharing)).withColumn("directories", sort_array(named))
        told = verdict("directory", "key", "uuid", "directories", "total").alias("verdict")
        frames.append(counted.where("total > 1").select("directory", lit(rank).alias("rank"), told))
    return frames


def _nestings(sketches: Any) -> list[Any]:
    """Those within others, with the nearest around; those around others, with the first within: (directory, rank, verdict)."""
    from pyspark.sql.functions import col, explode, length, lit, max_by, udf
    from pyspark.sql.functions import min as least

    @udf("array<string>", useArrow=False)  # type: ignore[untyped-decorator, unused-ignore]
    def above(directory: str) -> list[str]:
        return directories_above(directory)

    @udf("binary", useArrow=False)  # type: ignore[untyped-decorator, unused-ignore]
    def verdict(directory: str, key: list[str], uuid: str, other: str) -> bytearray:
        return bytearray(pack(nested(Sketch(directory, tuple(key), uuid), other)))

    around = sketches.select(col("directory").alias("inner"), explode(above("directory")).alias("outer"))
    pairs = around.join(sketches.select(col("directory").alias("outer")), "outer")
    within = pairs.groupBy(col("inner").alias("directory")).agg(
        max_by("outer", length("outer")).alias("other"), lit(2).alias("rank")
    )
    holding = pairs.groupBy(col("outer").alias("directory")).agg(least("inner").alias("other"), lit(3).alias("rank"))
    told = verdict("directory", "key", "uuid", "other").alias("verdict")
    return [frame.join(sketches, "directory").select("directory", "rank", told) for frame in (within, holding)]


def _under_tables(clear: Any) -> Any:
    """Of tables that have none of the other contradictions, those whose key needs another's as a namespace: VERDICTS."""
    from pyspark.sql.functions import col, explode, min_by, size, udf

    @udf("array<array<string>>", useArrow=False)  # type: ignore[untyped-decorator, unused-ignore]
    def above(key: list[str]) -> list[list[str]]:
        return [list(one) for one in keys_above(key)]

    @udf("binary", useArrow=False)  # type: ignore[untyped-decorator, unused-ignore]
    def verdict(directory: str, key: list[str], uuid: str, needed: list[str]) -> bytearray:
        return bytearray(pack(under_a_table(Sketch(directory, tuple(key), uuid), needed)))

    needs = clear.select("directory", "key", "uuid", explode(above("key")).alias("needed"))
    taken = needs.join(clear.select(col("key").alias("needed")), "needed")
    first = taken.groupBy("directory", "key", "uuid").agg(min_by("needed", size("needed")).alias("needed"))
    return first.select("directory", verdict("directory", "key", "uuid", "needed").alias("verdict"))
