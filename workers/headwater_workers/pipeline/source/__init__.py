"""The contents of a store as tables of Spark: ``spark.read.format("headwater")``. Reads only.

``source_columns`` defines the tables, ``pushdown`` the conditions that reduce reading, ``pinned_states`` and ``partitions`` the states
and their division among tasks, ``source_rows`` the rows. Importing this package imports pyspark; no other package may import it.
"""

from headwater_workers.pipeline.source.data_source import HeadwaterSource, NarrowingSource, register_data_source
from headwater_workers.pipeline.source.reader_options import OPTIONS
from headwater_workers.pipeline.source.source_columns import TABLES, SourceColumn, SourceTable
from headwater_workers.pipeline.source.store_views import make_store_views

__all__ = [
    "OPTIONS",
    "TABLES",
    "HeadwaterSource",
    "NarrowingSource",
    "SourceColumn",
    "SourceTable",
    "make_store_views",
    "register_data_source",
]
