"""The work of a task of the kind `gc`."""

from __future__ import annotations

from typing import Any

from headwater.maintenance.garbage import collect
from headwater.maintenance.work.recorded import open_realm, recorded
from headwater.store import SYSTEM_REALM, Store, id_text
from headwater.tasks import Claim

__all__ = ["run_collection"]


def run_collection(store: Store, claim: Claim) -> dict[str, Any]:
    """Collect the garbage of the task's realm."""
    if claim.task.realm != SYSTEM_REALM:
        open_realm(store, claim.task)
    owner = f"task {id_text(claim.id)}, attempt {claim.attempt}"
    realm = claim.task.realm
    return recorded(
        store, claim, lambda: collect(store, realm, fence=claim.check, progress=claim.report, owner=owner).as_plain()
    )
