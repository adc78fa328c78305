"""The task kind `load`: make a new realm of an archive."""

from __future__ import annotations

from typing import Any

from structlog.typing import FilteringBoundLogger

from headwater.maintenance.work import run_load
from headwater.store import Store
from headwater.tasks import Claim

__all__ = ["run"]


def run(store: Store, claim: Claim, log: FilteringBoundLogger) -> dict[str, Any]:
    return run_load(store, claim)
