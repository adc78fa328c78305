"""The task kind `purge-table`: delete the files of a dropped table, when nothing holds it any more."""

from __future__ import annotations

from typing import Any

from structlog.typing import FilteringBoundLogger

from headwater.maintenance import run_purge_table
from headwater.store import Store
from headwater.tasks import Claim

__all__ = ["run"]


def run(store: Store, claim: Claim, log: FilteringBoundLogger) -> dict[str, Any]:
    return run_purge_table(store, claim)
