"""The work that tasks ask for, whoever holds the claim: one module a kind. Knows what a task is, and not who runs it."""

from headwater.maintenance.work.collecting import run_collection
from headwater.maintenance.work.exporting import run_export
from headwater.maintenance.work.importing import SPARK, Survey, dry_import, run_import
from headwater.maintenance.work.kinds import COLLECT, EXPORT, IMPORT, LOAD, PURGE, PURGE_TABLE, RESTORE
from headwater.maintenance.work.loading import run_load
from headwater.maintenance.work.purging import run_purge
from headwater.maintenance.work.purging_tables import ask_for_purge, retry_reachable, run_purge_table
from headwater.maintenance.work.restoring import run_restore

__all__ = [
    "COLLECT",
    "EXPORT",
    "IMPORT",
    "LOAD",
    "PURGE",
    "PURGE_TABLE",
    "RESTORE",
    "SPARK",
    "Survey",
    "ask_for_purge",
    "dry_import",
    "retry_reachable",
    "run_collection",
    "run_export",
    "run_import",
    "run_load",
    "run_purge",
    "run_purge_table",
    "run_restore",
]
