"""The task kind `purge`: delete everything in a PURGING realm, and say PURGED once a scan finds nothing."""

from __future__ import annotations

from typing import Any

from structlog.typing import FilteringBoundLogger

from headwater.maintenance import run_purge
from headwater.store import Store
from headwater.tasks import Claim

__all__ = ["run"]


def run(store: Store, claim: Claim, log: FilteringBoundLogger) -> dict[str, Any]:
    return run_purge(store, claim)
