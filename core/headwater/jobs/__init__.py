"""Jobs: the body of each kind of task, and the record that a run of it leaves.

The holder of a task's lease calls one ``run_...`` function of this package with it. Knows what a task is, but not who runs it.
"""

from headwater.jobs.catalog_tasks import (
    LAKE_WORK,
    catalog_of_task,
    lake_arguments,
    submit_catalog_task,
)
from headwater.jobs.file_tasks import (
    plan_file_collection,
    run_file_collection,
    schedule_file_collections,
    submit_file_collection,
)
from headwater.jobs.import_tasks import SPARK, TableSurvey, dry_import, run_import
from headwater.jobs.lake_file_tasks import dry_file_report, run_file_report
from headwater.jobs.table_tasks import request_table_purge, retry_reachable_only, run_purge_table
from headwater.jobs.task_runs import (
    COLLECT,
    COLLECT_FILES,
    EXPIRE_SNAPSHOTS,
    EXPORT,
    FSCK,
    IMPORT,
    LOAD,
    PURGE,
    PURGE_TABLE,
    REPORT_FILES,
    RESTORE,
    TASK_KINDS,
    Run,
    file_arguments,
    list_runs,
    read_report,
    record_run,
    run_collection,
    run_export,
    run_load,
    run_purge,
    run_restore,
)

__all__ = [
    "COLLECT",
    "COLLECT_FILES",
    "EXPIRE_SNAPSHOTS",
    "EXPORT",
    "FSCK",
    "IMPORT",
    "LAKE_WORK",
    "LOAD",
    "PURGE",
    "PURGE_TABLE",
    "REPORT_FILES",
    "RESTORE",
    "SPARK",
    "TASK_KINDS",
    "Run",
    "TableSurvey",
    "catalog_of_task",
    "dry_file_report",
    "dry_import",
    "file_arguments",
    "lake_arguments",
    "list_runs",
    "plan_file_collection",
    "read_report",
    "record_run",
    "request_table_purge",
    "retry_reachable_only",
    "run_collection",
    "run_export",
    "run_file_collection",
    "run_file_report",
    "run_import",
    "run_load",
    "run_purge",
    "run_purge_table",
    "run_restore",
    "schedule_file_collections",
    "submit_catalog_task",
    "submit_file_collection",
]
