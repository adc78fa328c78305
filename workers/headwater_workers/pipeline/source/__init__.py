"""What a store holds, as tables of Spark: ``spark.read.format("headwater")``. Reads only.

``columns`` states the tables, ``conditions`` and ``keys`` what a query's conditions spare, ``pinning`` and ``dividing`` what is read by
whom, ``reading`` the rows. Importing this room imports pyspark; no other room may import it.
"""

from headwater_workers.pipeline.source.columns import TABLES, Column, Table
from headwater_workers.pipeline.source.options import OPTIONS
from headwater_workers.pipeline.source.tables import HeadwaterSource, NarrowingSource, register

__all__ = ["OPTIONS", "TABLES", "Column", "HeadwaterSource", "NarrowingSource", "Table", "register"]
