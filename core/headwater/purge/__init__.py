"""Purge: delete all rows of a realm, or the files of a dropped table.

    realm_purge        the rows of a realm in PURGING
    file_table_purge   file tables: one that is dropped, or all of a realm
    table_purge        the files that a dropped table's metadata reaches: request, plan, deletion

When those files may be deleted, ``headwater.jobs`` decides by the claims of their location. This package must not know who runs the
task, nor which client dropped the table.
"""

from headwater.purge.file_table_purge import FileTablePurge, PurgedFileTables
from headwater.purge.realm_purge import PurgedRealm, purge_realm
from headwater.purge.table_purge import DroppedTable, PurgedTable, PurgeRequest, first_look_after, purge_table

__all__ = [
    "DroppedTable",
    "FileTablePurge",
    "PurgeRequest",
    "PurgedFileTables",
    "PurgedRealm",
    "PurgedTable",
    "first_look_after",
    "purge_realm",
    "purge_table",
]
