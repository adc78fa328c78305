"""Iceberg tables lying in a file system: finding them, choosing their latest metadata, and telling sound ones from broken ones.

Rules over values: listings and bytes in, outcomes out. This room must not know catalogs, stores, tasks or Spark; only
``storage`` touches a file system.
"""

from headwater.catalogs.iceberg.grouping import File, TableFiles, group, is_selected
from headwater.catalogs.iceberg.locations import canonical, is_same_place, is_within
from headwater.catalogs.iceberg.outcomes import Found, Outcome, QuarantineCode, Quarantined, Rule
from headwater.catalogs.iceberg.storage import divide
from headwater.catalogs.iceberg.surveying import Progress, Scope, examine, find_tables, judge_together, survey_in_process

__all__ = [
    "File",
    "Found",
    "Outcome",
    "Progress",
    "QuarantineCode",
    "Quarantined",
    "Rule",
    "Scope",
    "TableFiles",
    "canonical",
    "divide",
    "examine",
    "find_tables",
    "group",
    "is_same_place",
    "is_selected",
    "is_within",
    "judge_together",
    "survey_in_process",
]
