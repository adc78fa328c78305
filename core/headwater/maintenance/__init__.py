"""What keeps a store tidy: collection of garbage, purging, the record of runs, fsck and explanations.

Works on realms, catalogs and their commits, by the design's handshake. Knows nothing of tasks' protocol beyond a fence to call,
and nothing of Celery, Kubernetes or the command line.
"""

from headwater.maintenance.checking import Finding, check_store
from headwater.maintenance.collecting import Collected, Fence, Progress, collect
from headwater.maintenance.explaining import Explanation, explain
from headwater.maintenance.listing import RUNS, Listed, Policy, Scope, scope_of
from headwater.maintenance.marking import Marker
from headwater.maintenance.purging import Purged, purge
from headwater.maintenance.retention import Line, Why
from headwater.maintenance.runs import Run, list_runs, record_run

__all__ = [
    "RUNS",
    "Collected",
    "Explanation",
    "Fence",
    "Finding",
    "Line",
    "Listed",
    "Marker",
    "Policy",
    "Progress",
    "Purged",
    "Run",
    "Scope",
    "Why",
    "check_store",
    "collect",
    "explain",
    "list_runs",
    "purge",
    "record_run",
    "scope_of",
]
