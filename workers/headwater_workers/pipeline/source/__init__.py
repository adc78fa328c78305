"""What a store holds, as tables of Spark: ``spark.read.format("headwater")``. Reads only.

``columns`` states the tables, ``conditions`` and ``keys`` what a query's conditions spare, ``pinning`` and ``dividing`` what is read by
whom, ``reading`` the rows. Importing this room imports pyspark; no other room may import it.
"""

from headwater_workers.pipeline.source.data_source import HeadwaterSource, NarrowingSource, register_data_source
from headwater_workers.pipeline.source.reader_options import OPTIONS
from headwater_workers.pipeline.source.source_columns import TABLES, SourceColumn, SourceTable

__all__ = ["OPTIONS", "TABLES", "HeadwaterSource", "NarrowingSource", "SourceColumn", "SourceTable", "register_data_source"]
