"""The job of the kind `report-files`: what nobody refers to in a catalog's lake, marked and planned. It deletes no file."""

from __future__ import annotations

from typing import Any

from headwater.catalogs import CatalogDefinition, Catalogs
from headwater.errors import RefusedError
from headwater.jobs.task_runs import REPORT_FILES, open_active_realm, run_recorded
from headwater.lake_files import FileEngine, ReadReport, report_files
from headwater.realms import RealmRegistry
from headwater.store import RealmStore, Store
from headwater.tasks import SubmittedTask, Task, TaskLease, TaskQueue


def run_file_report(store: Store, claim: TaskLease, *, engine: FileEngine | None = None) -> dict[str, Any]:
    """Report the files of the catalog that the task names.

    arguments     `catalog` and `catalog_id`; `dry_run`: count, and write nothing
    engine        how files are compared; None: in this process
    raises        TaskNotReadyError while the realm is INACTIVE
    """
    rows = open_active_realm(store, claim.task)
    definition = _definition(rows, claim.task)

    def work() -> dict[str, Any]:
        read = report_files(
            store,
            rows,
            definition,
            is_dry=bool(claim.task.arguments.get("dry_run")),
            engine=engine,
            fence=claim.check_stop,
            progress=claim.report_progress,
        )
        return read.counts()

    return run_recorded(store, claim, work)


def dry_file_report(store: Store, realm: str, catalog: str) -> ReadReport:
    """Count what a report would find now; nothing is written."""
    rows = RealmRegistry(store).open_realm(realm)
    return report_files(store, rows, Catalogs(rows).read_catalog(catalog), is_dry=True)


def submit_file_report(store: Store, realm_id: str, catalog: str) -> SubmittedTask:
    """Ask for a report of a catalog's files, unless one is asked for already."""
    realm = RealmRegistry(store).read_realm(realm_id)
    definition = Catalogs(RealmRegistry(store).open_realm(realm_id)).read_catalog(catalog)
    arguments = {"catalog": catalog, "catalog_id": definition.id, "dry_run": False}
    return TaskQueue(store).submit_task(REPORT_FILES, realm=realm.id, realm_key=realm.key, subject=catalog, arguments=arguments)


def _definition(rows: RealmStore, task: Task) -> CatalogDefinition:
    definition = Catalogs(rows).read_catalog(str(task.arguments.get("catalog")))
    if definition.id != task.arguments.get("catalog_id"):
        raise RefusedError(
            f"catalog {definition.name!r} of realm {rows.realm!r} was created anew since this was asked for: ask again"
        )
    return definition
