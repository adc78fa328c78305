"""File tables in Spark: ingest, the format ``headwater-files``, and compactions as one application.

``spark_file_table`` is what a program uses; ``file_source`` is the format as Spark knows it, with ``file_scan`` for reading and
``file_writer`` for writing. The rules of rows and references come from core. Importing this package imports pyspark.
"""

from headwater_workers.pipeline.files.file_options import FILE_OPTIONS
from headwater_workers.pipeline.files.file_source import register_file_source
from headwater_workers.pipeline.files.row_spread import SpreadKind
from headwater_workers.pipeline.files.spark_compaction import compact_on_spark
from headwater_workers.pipeline.files.spark_file_table import SparkFileTable, ingest

__all__ = ["FILE_OPTIONS", "SparkFileTable", "SpreadKind", "compact_on_spark", "ingest", "register_file_source"]
