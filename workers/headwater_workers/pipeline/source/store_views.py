"""The tables of a store as temporary views of a Spark session: ``Connection.make_spark_views`` of the public API."""

from __future__ import annotations

from pyspark.sql import SparkSession

from headwater_workers.pipeline.source.data_source import register_data_source
from headwater_workers.pipeline.source.source_columns import TABLES


def make_store_views(spark: SparkSession, url: str, realm: str | None) -> tuple[str, ...]:
    """Make a view of each table, of one realm or of all; returns their names.

    The views stand still: make them again to see what others committed since.
    """
    register_data_source(spark)
    scope = {"url": url} | ({} if realm is None else {"realm": realm})
    for table in TABLES:
        spark.read.format("headwater").options(**scope).load(table).createOrReplaceTempView(table)
    return tuple(TABLES)
