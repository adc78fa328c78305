"""The task kind `import`: survey the Iceberg tables below some locations, on Spark where it can be had, and put them into a catalog."""

from __future__ import annotations

from typing import Any

from structlog.typing import FilteringBoundLogger

from headwater.maintenance import run_import
from headwater.store import Store
from headwater.tasks import Claim
from headwater_workers.pipeline import find_engine, survey

__all__ = ["run"]


def run(store: Store, claim: Claim, log: FilteringBoundLogger) -> dict[str, Any]:
    engine = str(find_engine(store.settings))
    log.info("survey starts", engine=engine)
    return run_import(
        store, claim, survey=lambda scope, progress: survey(scope, store.settings, progress=progress), engine=engine
    )
