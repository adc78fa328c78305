"""Purging a dropped table: its files are deleted once no kept commit of its realm holds it, and not before.

    requests     what is asked for
    gating       when the files may go: whose the place is says it
    planning     which files, in a temporary file
    deleting     in batches, leaves first, and a look whether they are gone

Must not know who runs the task, nor which client dropped the table.
"""

from headwater.maintenance.purging_tables.deleting import PurgedTable, purge_table
from headwater.maintenance.purging_tables.requests import Dropped, Wish

__all__ = ["Dropped", "PurgedTable", "Wish", "purge_table"]
