"""Merging and transplanting: what one branch did, done on another.

bases         the nearest common ancestor of two commits, over parents and what was merged before
differing     what changed between two commits, by key
planning      what a merge would do to a branch and what stands against it, by key
writing       a plan as edits of a commit
merging       a whole branch, squashed to one commit
transplanting commits one by one, published together

Reads commits and edits the content of a branch; must not know where branches are listed, nor catalogs' definitions.
"""

from headwater.catalogs.history.merging.merging import merge
from headwater.catalogs.history.merging.planning import KeyMerge, MergedKey, MergeMode, MergeOutcome
from headwater.catalogs.history.merging.requests import MergeConflictError, MergeOptions, MergeResult, MergeStep, Source, Target
from headwater.catalogs.history.merging.transplanting import transplant

__all__ = [
    "KeyMerge",
    "MergeConflictError",
    "MergeMode",
    "MergeOptions",
    "MergeOutcome",
    "MergeResult",
    "MergeStep",
    "MergedKey",
    "Source",
    "Target",
    "merge",
    "transplant",
]
