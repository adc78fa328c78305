"""The task kind `purge`: delete everything in a PURGING realm, and say PURGED once a scan finds nothing."""

from __future__ import annotations

from typing import Any

from structlog.typing import FilteringBoundLogger

from headwater.maintenance import purge
from headwater.store import Store
from headwater.tasks import Claim, Task
from headwater_workers.kinds.runs import recorded

__all__ = ["run"]


def run(store: Store, task: Task, claim: Claim, log: FilteringBoundLogger) -> dict[str, Any]:
    key = task.realm_key or None
    return recorded(
        store, claim, lambda: purge(store, task.realm, key=key, fence=claim.check, progress=claim.report).as_plain()
    )
