"""The task kind `gc`: collect the garbage of one realm."""

from __future__ import annotations

from typing import Any

from structlog.typing import FilteringBoundLogger

from headwater.maintenance import run_collection
from headwater.store import Store
from headwater.tasks import Claim

__all__ = ["run"]


def run(store: Store, claim: Claim, log: FilteringBoundLogger) -> dict[str, Any]:
    return run_collection(store, claim)
