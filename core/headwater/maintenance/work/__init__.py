"""The work that tasks ask for, whoever holds the claim: one function a kind. Knows what a task is, and not who runs it."""

from headwater.maintenance.work.archive_tasks import run_export, run_load
from headwater.maintenance.work.import_tasks import SPARK, Survey, dry_import, run_import
from headwater.maintenance.work.kinds import COLLECT, EXPORT, IMPORT, LOAD, PURGE, PURGE_TABLE, RESTORE
from headwater.maintenance.work.realm_tasks import run_collection, run_purge, run_restore
from headwater.maintenance.work.table_tasks import ask_for_purge, retry_reachable, run_purge_table

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
