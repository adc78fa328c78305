"""What does the tasks of each kind in the process that asks for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pkgutil import resolve_name
from typing import Any

from headwater.errors import RefusedError
from headwater.jobs import COLLECT_FILES, IMPORT, SPARK
from headwater.settings import Settings
from headwater.store import Store
from headwater.tasks import Task, TaskLease

TaskBody = Callable[[Store, TaskLease], dict[str, Any]]

TASK_WORK: Mapping[str, str] = {
    "gc": "headwater.jobs:run_collection",
    "file-gc": "headwater.jobs:run_file_collection",
    "expire-snapshots": "headwater.expiry:run_expiry",
    "export": "headwater.jobs:run_export",
    "fsck": "headwater.fsck:run_fsck",
    "import": "headwater.jobs:run_import",
    "load": "headwater.jobs:run_load",
    "purge": "headwater.jobs:run_purge",
    "purge-table": "headwater.jobs:run_purge_table",
    "report-files": "headwater.jobs:run_file_report",
    "restore": "headwater.jobs:run_restore",
}
"""What does the tasks of each kind. Imported when it is called: it needs more than all other commands on tasks."""


def load_task_body(kind: str, settings: Settings) -> TaskBody:
    """What does the tasks of a kind; raises RefusedError for a kind that this release does not know."""
    if kind not in TASK_WORK:
        raise RefusedError(f"a task of kind {kind!r} is none that this release can do: run a newer one")
    work: Callable[..., dict[str, Any]] = resolve_name(TASK_WORK[kind])
    if kind == COLLECT_FILES:
        return partial(work, is_idle_recorded=True)
    if kind == IMPORT:
        return lambda store, claim: work(store, claim, survey=_survey(settings, claim.task))
    return work


def _survey(settings: Settings, task: Task) -> Any:
    """How the tables of an import are found: in this process, unless somebody asked for Spark."""
    if task.arguments.get("engine") == SPARK:
        return resolve_name("headwater.api.catalog_imports:load_spark_survey")(settings)
    return resolve_name("headwater.api.catalog_imports:SurveyInProcess")()
