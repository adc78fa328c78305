"""What keeps a store tidy: collection of garbage, purging, the record of runs, fsck and explanations.

Also the work that tasks ask for, whoever claims them. Knows nothing of Celery, Spark, Kubernetes or the command line.
"""

from headwater.maintenance.checks import CODES, Action, Code, Finding, Step, Weight, check_store, is_bad, plan_repairs, repair
from headwater.maintenance.explaining import Explanation, explain
from headwater.maintenance.garbage import Collected, Fence, Progress, check_collectable, collect, collect_together
from headwater.maintenance.purging import Purged, purge
from headwater.maintenance.purging_tables import Dropped, Wish
from headwater.maintenance.reports import read_report
from headwater.maintenance.runs import Run, list_runs, record_run
from headwater.maintenance.work import (
    COLLECT,
    EXPORT,
    IMPORT,
    LOAD,
    PURGE,
    PURGE_TABLE,
    RESTORE,
    SPARK,
    Survey,
    ask_for_purge,
    dry_import,
    retry_reachable,
    run_collection,
    run_import,
    run_purge,
    run_purge_table,
    run_restore,
)

__all__ = [
    "CODES",
    "COLLECT",
    "EXPORT",
    "IMPORT",
    "LOAD",
    "PURGE",
    "PURGE_TABLE",
    "RESTORE",
    "SPARK",
    "Action",
    "Code",
    "Collected",
    "Dropped",
    "Explanation",
    "Fence",
    "Finding",
    "Progress",
    "Purged",
    "Run",
    "Step",
    "Survey",
    "Weight",
    "Wish",
    "ask_for_purge",
    "check_collectable",
    "check_store",
    "collect",
    "collect_together",
    "dry_import",
    "explain",
    "is_bad",
    "list_runs",
    "plan_repairs",
    "purge",
    "read_report",
    "record_run",
    "repair",
    "retry_reachable",
    "run_collection",
    "run_import",
    "run_purge",
    "run_purge_table",
    "run_restore",
]
