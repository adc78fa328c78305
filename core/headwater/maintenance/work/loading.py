"""The work of a task of the kind `load`."""

from __future__ import annotations

from typing import Any

from headwater.maintenance.archives import forget_progress, load
from headwater.maintenance.runs import list_runs
from headwater.maintenance.work.kinds import LOAD
from headwater.maintenance.work.places import file_here
from headwater.maintenance.work.recorded import recorded
from headwater.store import Store
from headwater.tasks import Claim

__all__ = ["run_load"]


def run_load(store: Store, claim: Claim) -> dict[str, Any]:
    """Import an archive into the task's realm, which the import makes.

    arguments     `file` and `host`: where it is (see `places`); `inactive`: whether the realm is INACTIVE in the end

    The progress leaves the realm only when the run was recorded: whichever attempt ends the task finds one of the two.
    """
    task = claim.task
    outcome = _recorded_before(store, claim)
    if outcome is None:
        file, is_active = file_here(task), not task.arguments.get("inactive", False)

        def work() -> dict[str, Any]:
            return load(store, task.realm, file, is_active=is_active, fence=claim.check, progress=claim.report).as_plain()

        outcome = recorded(store, claim, work)
    claim.check()
    forget_progress(store, task.realm)
    return outcome


def _recorded_before(store: Store, claim: Claim) -> dict[str, Any] | None:
    """What an attempt before this one did, if it did everything but say so."""
    if claim.attempt == 1:
        return None
    runs = list_runs(store, kind=LOAD, realm=claim.task.realm)
    return next((dict(run.counts) for run in runs if run.task == claim.id and not run.error), None)
