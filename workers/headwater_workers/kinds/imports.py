"""The task kind `import`: survey the Iceberg tables below some locations, on Spark where that is worth it, and put them into a catalog."""

from __future__ import annotations

from typing import Any

from structlog.typing import FilteringBoundLogger

from headwater.maintenance import SPARK, run_import
from headwater.store import Store
from headwater.tasks import Claim
from headwater_workers.pipeline import Survey

__all__ = ["run"]


def run(store: Store, claim: Claim, log: FilteringBoundLogger) -> dict[str, Any]:
    survey = Survey(store.settings, is_spark_wanted=claim.task.arguments.get("engine") == SPARK)
    log.info("survey starts")
    outcome = run_import(store, claim, survey=survey)
    log.info("survey ended", engine=survey.name)
    return outcome
