"""What the tasks on a catalog's lake have in common, expiry of snapshots and reports of files: arguments and submission."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headwater.catalogs import CatalogDefinition, Catalogs
from headwater.errors import ConflictError, RefusedError
from headwater.jobs.task_runs import EXPIRE_SNAPSHOTS, REPORT_FILES
from headwater.realms import RealmRegistry
from headwater.store import RealmStore, Store, id_text
from headwater.tasks import SubmittedTask, Task, TaskQueue, TaskState

LAKE_WORK = (EXPIRE_SNAPSHOTS, REPORT_FILES)
STOPPED_LOOK_SECONDS = 300.0
"""How often a task looks whether its maintenance was resumed."""


def lake_arguments(catalog: CatalogDefinition, *, dry_run: bool = False) -> dict[str, Any]:
    """The arguments of a task on a catalog's lake; its subject is the catalog's name."""
    return {"catalog": catalog.name, "catalog_id": catalog.id, "dry_run": dry_run}


def submit_catalog_task(
    store: Store, kind: str, realm_id: str, catalog: str, *, arguments: Mapping[str, Any] | None = None
) -> SubmittedTask:
    """Ask for a task on a catalog's lake, due now. One that waits for the time of its schedule runs now instead, with these arguments.

    arguments     None: those of a schedule
    returns       the active task; one that is under way may have other arguments
    raises        ConflictError where a task for an earlier catalog of this name is in the way
    """
    realms = RealmRegistry(store)
    realm, definition = realms.read_realm(realm_id), Catalogs(realms.open_realm(realm_id)).read_catalog(catalog)
    tasks, wanted = TaskQueue(store), dict(arguments or lake_arguments(definition))
    submitted = tasks.submit_task(kind, realm=realm.id, realm_key=realm.key, subject=definition.name, arguments=wanted)
    if not submitted.created:
        active = tasks.read_task(submitted.id).value
        if active.arguments.get("catalog_id") != definition.id:
            raise ConflictError(
                f"task {id_text(submitted.id)} is about an earlier catalog {catalog!r} of realm {realm_id!r}: cancel it first"
            )
        if active.state is TaskState.WAITING and active.due > store.clock.now() and not active.attempts:
            tasks.amend_task(submitted.id, lambda task: wanted, due=active.due)
        tasks.run_now(submitted.id)
    return submitted


def catalog_of_task(rows: RealmStore, task: Task) -> CatalogDefinition:
    """The catalog that a task is about; raises RefusedError where another one has its name by now."""
    definition = Catalogs(rows).read_catalog(str(task.arguments.get("catalog")))
    if definition.id != task.arguments.get("catalog_id"):
        raise RefusedError(
            f"catalog {definition.name!r} of realm {rows.realm!r} was created anew since this was asked for: ask again"
        )
    return definition
