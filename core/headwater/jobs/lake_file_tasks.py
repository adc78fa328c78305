"""The job of the kind `report-files`: what nobody refers to in a catalog's lake, marked and planned. It deletes no file."""

from __future__ import annotations

from typing import Any

from headwater.catalogs import Catalogs
from headwater.errors import MaintenanceStoppedError
from headwater.jobs.catalog_tasks import STOPPED_LOOK_SECONDS, catalog_of_task
from headwater.jobs.task_runs import check_clock_of_task, open_active_realm, run_recorded
from headwater.lake_files import FileEngine, ReadReport, report_files
from headwater.realms import RealmRegistry
from headwater.store import Store
from headwater.tasks import TaskLease, TaskNotReadyError
from headwater.throttle import ProgressCallback, no_progress


def run_file_report(store: Store, claim: TaskLease, *, engine: FileEngine | None = None) -> dict[str, Any]:
    """Report the files of the catalog that the task names.

    arguments     see ``lake_arguments``
    engine        how files are compared; None: in this process
    raises        TaskNotReadyError while the realm is INACTIVE, maintenance is stopped, or this machine's clock may be ahead: the graces
                  of files would seem to be over
    """
    check_clock_of_task(store)
    rows = open_active_realm(store, claim.task)
    definition = catalog_of_task(rows, claim.task)

    def work() -> dict[str, Any]:
        try:
            read = report_files(
                store,
                rows,
                definition,
                engine=engine,
                fence=claim.check_stop,
                progress=claim.report_progress,
            )
        except MaintenanceStoppedError as stopped:
            raise TaskNotReadyError(str(stopped), seconds=STOPPED_LOOK_SECONDS) from stopped
        return read.task_outcome()

    return run_recorded(store, claim, work)


def dry_file_report(store: Store, realm: str, catalog: str, *, progress: ProgressCallback = no_progress) -> ReadReport:
    """Count what a report would find now; nothing is written."""
    rows = RealmRegistry(store).open_realm(realm)
    return report_files(store, rows, Catalogs(rows).read_catalog(catalog), is_dry=True, progress=progress)
