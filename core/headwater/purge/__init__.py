"""Purge: delete all rows of a realm, or the files of a dropped table.

    realm_purge        the rows of a realm in PURGING
    table_purge        the files that a dropped table's metadata reaches: request, plan, deletion
    location_lock      when those files may be deleted, by the claims of their location

Must not know who runs the task, nor which client dropped the table.
"""

from headwater.purge.location_lock import LocationLock, allowed_places, check_no_realm, lock_locations
from headwater.purge.realm_purge import PurgedRealm, purge_realm
from headwater.purge.table_purge import DroppedTable, PurgedTable, PurgeRequest, first_look_after, purge_table

__all__ = [
    "DroppedTable",
    "LocationLock",
    "PurgeRequest",
    "PurgedRealm",
    "PurgedTable",
    "allowed_places",
    "check_no_realm",
    "first_look_after",
    "lock_locations",
    "purge_realm",
    "purge_table",
]
