"""Iceberg's REST protocol, above the operations that every door shares: addresses, shapes of requests and answers, and its words.

Nothing here decides whether a change is allowed or what it does to a table; that is ``headwater.iceberg_catalog``. Nothing here
must know how HTTP is spoken: handlers get calls that were decoded and checked, and give answers.
"""

from headwater_server.iceberg_rest.iceberg_routes import iceberg_table

__all__ = ["iceberg_table"]
