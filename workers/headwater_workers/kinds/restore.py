"""The task kind `restore`: let references hold again what they held."""

from __future__ import annotations

from typing import Any

from structlog.typing import FilteringBoundLogger

from headwater.maintenance.work import run_restore
from headwater.store import Store
from headwater.tasks import Claim

__all__ = ["run"]


def run(store: Store, claim: Claim, log: FilteringBoundLogger) -> dict[str, Any]:
    return run_restore(store, claim)
