"""Nessie's API, versions 1 and 2, above the operations that every door shares: its addresses, its shapes of JSON, and its words.

Nothing here decides whether a change is allowed or what it does to a branch; that is ``headwater.catalogs`` and
``headwater.iceberg_catalog``. Nothing here must know how HTTP is spoken: handlers get calls that were decoded and checked, and give
answers.
"""

from headwater_server.nessie.nessie_routes import nessie_table

__all__ = ["nessie_table"]
