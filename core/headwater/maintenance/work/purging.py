"""The work of a task of the kind `purge`."""

from __future__ import annotations

from typing import Any

from headwater.maintenance.purging import purge
from headwater.maintenance.work.recorded import recorded
from headwater.store import Store
from headwater.tasks import Claim

__all__ = ["run_purge"]


def run_purge(store: Store, claim: Claim) -> dict[str, Any]:
    """Purge the task's realm."""
    task = claim.task
    key = task.realm_key or None
    return recorded(
        store, claim, lambda: purge(store, task.realm, key=key, fence=claim.check, progress=claim.report).as_plain()
    )
