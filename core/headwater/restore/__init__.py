"""Restore: bring a realm, a catalog or one reference back to an earlier state, by new commits on top.

Knows only the id of a task, which owns the pins of commits, and does not know its caller.
"""

from headwater.restore.restoration import RestoreResult, restore_state
from headwater.restore.restore_plan import (
    RequestMoment,
    RestoreAction,
    RestorePlan,
    RestoreStep,
    plan_restoration,
)
from headwater.restore.restore_target import RestoreRequest, RestoreTarget, read_restore_target

__all__ = [
    "RequestMoment",
    "RestoreAction",
    "RestorePlan",
    "RestoreRequest",
    "RestoreResult",
    "RestoreStep",
    "RestoreTarget",
    "plan_restoration",
    "read_restore_target",
    "restore_state",
]
