"""What the tasks on a catalog's lake have in common, expiry of snapshots and reports of files: arguments and submission."""

from __future__ import annotations

from typing import Any

from headwater.catalogs import CatalogDefinition, Catalogs
from headwater.errors import ConflictError, RefusedError
from headwater.jobs.task_runs import EXPIRE_SNAPSHOTS, REPORT_FILES
from headwater.realms import RealmRegistry
from headwater.store import RealmStore, Store, id_text
from headwater.tasks import SubmittedTask, Task, TaskQueue

LAKE_WORK = (EXPIRE_SNAPSHOTS, REPORT_FILES)
STOPPED_LOOK_SECONDS = 300.0
"""How often a task looks whether its maintenance was resumed."""


def lake_arguments(catalog: CatalogDefinition) -> dict[str, Any]:
    """The arguments of a task on a catalog's lake; its subject is the catalog's name."""
    return {"catalog": catalog.name, "catalog_id": catalog.id}


def submit_catalog_task(store: Store, kind: str, realm_id: str, catalog: str) -> SubmittedTask:
    """Ask for a task on a catalog's lake, due now. One that waits for the time of its schedule runs now instead.

    raises        ConflictError where a task for an earlier catalog of this name is in the way
    """
    realms = RealmRegistry(store)
    realm, definition = realms.read_realm(realm_id), Catalogs(realms.open_realm(realm_id)).read_catalog(catalog)
    tasks, arguments = TaskQueue(store), lake_arguments(definition)
    submitted = tasks.submit_task(kind, realm=realm.id, realm_key=realm.key, subject=definition.name, arguments=arguments)
    if not submitted.created:
        active = tasks.read_task(submitted.id).value
        if active.arguments.get("catalog_id") != definition.id:
            raise ConflictError(
                f"task {id_text(submitted.id)} is about an earlier catalog {catalog!r} of realm {realm_id!r}: cancel it first"
            )
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
