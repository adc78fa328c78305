"""Undo: a realm, a catalog or one reference holds again what it held, by new commits. Knows nothing of tasks, nor of who asks."""

from headwater.maintenance.restoring.carrying import Restored, restore
from headwater.maintenance.restoring.planning import plan_restoration
from headwater.maintenance.restoring.requests import Aim, Asked, Request
from headwater.maintenance.restoring.steps import Act, Plan, Step

__all__ = ["Act", "Aim", "Asked", "Plan", "Request", "Restored", "Step", "plan_restoration", "restore"]
