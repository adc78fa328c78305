"""What workers know to do: the body of each kind of task.

A body finds out by itself what is done already, so that it can be run again after any interruption; calls ``claim.check`` before
each durable step; and reports progress. It knows nothing of Celery.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import structlog

from headwater.jobs import (
    COLLECT,
    EXPORT,
    IMPORT,
    LOAD,
    PURGE,
    PURGE_TABLE,
    RESTORE,
    SPARK,
    run_collection,
    run_export,
    run_import,
    run_load,
    run_purge,
    run_purge_table,
    run_restore,
)
from headwater.store import Store
from headwater.tasks import TaskLease
from headwater_workers.pipeline import SparkSurvey

log = structlog.get_logger(__name__)


class TaskBody(Protocol):
    def __call__(self, store: Store, claim: TaskLease, /) -> dict[str, Any]:
        """Do the task that is claimed; returns its outcome.

        raises        RefusedError and NotFoundError: it can never be done · FencedError and StoppedError, from ``claim.check`` ·
                      NotYetError: it waits, which is no failure · anything else: it is tried again later
        """
        ...


def import_tables_body(store: Store, claim: TaskLease) -> dict[str, Any]:
    """Survey the Iceberg tables below some locations, on Spark where that is worth it, and put them into a catalog."""
    survey = SparkSurvey(store.settings, is_spark_wanted=claim.task.arguments.get("engine") == SPARK)
    log.info("survey starts")
    outcome = run_import(store, claim, survey=survey)
    log.info("survey ended", engine=survey.name)
    return outcome


TASK_BODIES: Mapping[str, TaskBody] = {
    COLLECT: run_collection,
    EXPORT: run_export,
    IMPORT: import_tables_body,
    LOAD: run_load,
    PURGE: run_purge,
    PURGE_TABLE: run_purge_table,
    RESTORE: run_restore,
}
