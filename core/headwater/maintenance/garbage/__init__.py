"""Garbage: which rows of a realm nothing keeps, why the others stay, and how the former are deleted.

Knows what references, commits and catalogs keep; must not know tasks' inside, who asks, or when.
"""

from headwater.maintenance.garbage.collecting import Collecting, collect, marker_for
from headwater.maintenance.garbage.counts import Collected, Phases
from headwater.maintenance.garbage.keys import keys_in_use, keys_with_rows
from headwater.maintenance.garbage.listing import RUNS, Listed, Policy, Scope, check_collectable, scope_of
from headwater.maintenance.garbage.marking import Marker, check_time
from headwater.maintenance.garbage.pacing import Fence, Pacing, Progress
from headwater.maintenance.garbage.parts import LeftOvers
from headwater.maintenance.garbage.publishing import give_up
from headwater.maintenance.garbage.retention import Why
from headwater.maintenance.garbage.together import collect_together

__all__ = [
    "RUNS",
    "Collected",
    "Collecting",
    "Fence",
    "LeftOvers",
    "Listed",
    "Marker",
    "Pacing",
    "Phases",
    "Policy",
    "Progress",
    "Scope",
    "Why",
    "check_collectable",
    "check_time",
    "collect",
    "collect_together",
    "give_up",
    "keys_in_use",
    "keys_with_rows",
    "marker_for",
    "scope_of",
]
