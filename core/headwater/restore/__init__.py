"""Restore: bring a realm, a catalog or one reference back to an earlier state, by new commits on top.

Knows nothing of tasks but the id in whose name commits are pinned, and nothing of who asks.
"""

from headwater.restore.restoration import RestoreResult, restore_state
from headwater.restore.restore_plan import RestoreAction, RestorePlan, RestoreStep, plan_restoration
from headwater.restore.restore_request import RequestMoment, RestoreRequest, RestoreTarget

__all__ = [
    "RequestMoment",
    "RestoreAction",
    "RestorePlan",
    "RestoreRequest",
    "RestoreResult",
    "RestoreStep",
    "RestoreTarget",
    "plan_restoration",
    "restore_state",
]
