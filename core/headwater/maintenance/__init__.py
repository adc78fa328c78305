"""What keeps a store tidy: collection of garbage, purging, the record of runs, fsck and explanations.

Also the work that tasks ask for, whoever claims them. Knows nothing of Celery, Spark, Kubernetes or the command line.
"""

from headwater.maintenance.checks import CODES, Code, Finding, Weight, check_store, is_bad
from headwater.maintenance.garbage import Collected, Explanation, Fence, Progress, collect, explain
from headwater.maintenance.purging import Purged, purge
from headwater.maintenance.runs import Run, list_runs, record_run
from headwater.maintenance.work import (
    COLLECT,
    EXPORT,
    IMPORT,
    LOAD,
    PURGE,
    RESTORE,
    Survey,
    dry_import,
    run_collection,
    run_import,
    run_purge,
)

__all__ = [
    "CODES",
    "COLLECT",
    "EXPORT",
    "IMPORT",
    "LOAD",
    "PURGE",
    "RESTORE",
    "Code",
    "Collected",
    "Explanation",
    "Fence",
    "Finding",
    "Progress",
    "Purged",
    "Run",
    "Survey",
    "Weight",
    "check_store",
    "collect",
    "dry_import",
    "explain",
    "is_bad",
    "list_runs",
    "purge",
    "record_run",
    "run_collection",
    "run_import",
    "run_purge",
]
