"""The task kind `gc`: collect the garbage of one realm."""

from __future__ import annotations

from typing import Any

from structlog.typing import FilteringBoundLogger

from headwater.maintenance import collect
from headwater.store import Store, id_text
from headwater.tasks import Claim, Task
from headwater_workers.kinds.realms import require_same_realm
from headwater_workers.kinds.runs import recorded

__all__ = ["run"]


def run(store: Store, task: Task, claim: Claim, log: FilteringBoundLogger) -> dict[str, Any]:
    require_same_realm(store, task)

    def work() -> dict[str, Any]:
        owner = f"task {id_text(claim.id)}, attempt {claim.attempt}"
        return collect(store, task.realm, fence=claim.check, progress=claim.report, owner=owner).as_plain()

    return recorded(store, claim, work)
