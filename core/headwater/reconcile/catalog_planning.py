"""What has to happen so that a catalog becomes as its manifest says: a pure function from what is wished and what is seen to actions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from headwater.catalogs import CatalogChanges, CatalogDefinition, CatalogManager, ImportSpec
from headwater.clock import Micros
from headwater.maintenance import IMPORT
from headwater.realms import Manager, Realm, RealmState
from headwater.reconcile.actions import (
    Action,
    CompleteCatalog,
    CreateCatalog,
    DeleteCatalog,
    RecordImported,
    Refuse,
    SubmitTask,
    UpdateCatalog,
    Wait,
)
from headwater.reconcile.manifests import CONFIRM_PURGE, CatalogManifest
from headwater.reconcile.observed import READABLE, ObservedCatalog, SeenTask
from headwater.reconcile.owning import manager_text
from headwater.reconcile.schedule import daily_schedule
from headwater.reconcile.scheduling import ScheduledWork, cancel, dead_letter, keep_scheduled
from headwater.reconcile.wording import unconfirmed_purge
from headwater.tasks import TaskState

__all__ = ["import_arguments", "import_subject", "plan_catalog"]

_WITHOUT_CATALOGS = (RealmState.CREATED, RealmState.INITIALIZING, RealmState.PURGED)


def plan_catalog(manifest: CatalogManifest, observed: ObservedCatalog, now: Micros) -> list[Action]:
    """The steps that can be taken now, in their order, and what waits or is refused. Nothing to do is an empty list."""
    realm, name = observed.realm, f"{manifest.spec.realm_id}/{manifest.spec.name}"
    if manifest.metadata.is_deletion and _has_nothing(observed):
        return []
    if manifest.metadata.is_deletion and observed.catalog is not None and not _is_mine(observed.catalog, observed.me):
        return _plan_foreign(manifest, observed.catalog, name)
    if realm is None:
        return [Wait("RealmMissing", f"catalog {name} waits for its realm, which is not there yet")]
    if not _is_owned(realm, observed):
        return [
            Refuse("RealmManagedByAnother", f"catalog {name} is in a realm that is managed by {manager_text(realm.manager)}")
        ]
    if realm.state is not RealmState.ACTIVE:
        return [Wait("RealmNotActive", f"catalog {name} waits for its realm to be ACTIVE; it is {realm.state}")]
    catalog = observed.catalog
    if catalog is not None and not _is_mine(catalog, observed.me):
        return _plan_foreign(manifest, catalog, name)
    if manifest.metadata.is_deletion:
        return [] if catalog is None else _plan_deletion(manifest, catalog, observed, name)
    return _plan_life(manifest, catalog, observed, now)


def import_subject(catalog: str, name: str) -> str:
    """What the task of an import is about: at most one of the same import is active."""
    return f"{catalog}/{name}"


def import_arguments(catalog: CatalogDefinition, spec: ImportSpec) -> dict[str, str]:
    """What the task of an import is given: which catalog of that name, and which version of the import, whose text is in the definition."""
    return {"catalog": catalog.name, "catalogId": catalog.id, "import": spec.name, "digest": spec.digest()}


def _has_nothing(observed: ObservedCatalog) -> bool:
    """Whether there is nothing in the store that this resource can have made: then its deletion has nothing to wait for."""
    realm, catalog = observed.realm, observed.catalog
    if realm is None or realm.state in _WITHOUT_CATALOGS:
        return True
    if realm.state not in READABLE:
        return False
    return catalog is None or (catalog.manager is None and not _is_owned(realm, observed))


def _is_owned(realm: Realm, observed: ObservedCatalog) -> bool:
    """Whether the realm belongs to the resource that the manifest names. A new uid is the same resource made again."""
    if realm.manager is None:
        return observed.may_be_unmanaged
    owner = observed.realm_owner
    return (realm.manager.cluster, realm.manager.namespace, realm.manager.name) == (owner.cluster, owner.namespace, owner.name)


def _is_mine(catalog: CatalogDefinition, me: CatalogManager) -> bool:
    """Whether this resource may change the catalog: its own, or one of nobody's in a realm that is its own."""
    manager = catalog.manager
    return manager is None or (manager.cluster, manager.namespace, manager.name) == (me.cluster, me.namespace, me.name)


def _plan_foreign(manifest: CatalogManifest, catalog: CatalogDefinition, name: str) -> list[Action]:
    if manifest.metadata.is_deletion and manifest.spec.deletion_policy == "Retain":
        return []
    manager = catalog.manager
    owner = manager_text(Manager(cluster=manager.cluster, namespace=manager.namespace, name=manager.name)) if manager else ""
    return [
        Refuse(
            "ManagedByAnother", f"catalog {name} is managed by {owner}; delete that resource with deletionPolicy: Retain first"
        )
    ]


def _plan_deletion(manifest: CatalogManifest, catalog: CatalogDefinition, observed: ObservedCatalog, name: str) -> list[Action]:
    if manifest.spec.deletion_protection:
        return [Refuse("DeletionProtected", f"catalog {name} has deletionProtection: true; set it to false before deleting it")]
    if manifest.spec.deletion_policy == "Retain":
        return [] if catalog.manager is None else [UpdateCatalog(CatalogChanges(manager=None))]
    if unconfirmed := unconfirmed_purge(manifest.metadata.annotations.get(CONFIRM_PURGE), "catalog", name):
        return [unconfirmed]
    unprotect: list[Action] = [UpdateCatalog(CatalogChanges(deletion_protection=False))] if catalog.deletion_protection else []
    return [*unprotect, *_stop_imports(observed, catalog), DeleteCatalog()]


def _plan_life(
    manifest: CatalogManifest, catalog: CatalogDefinition | None, observed: ObservedCatalog, now: Micros
) -> list[Action]:
    if catalog is None:
        return [CreateCatalog(manifest.spec.fields())]
    changes = _changes(manifest, catalog, observed.me)
    kept = {spec.name for spec in manifest.spec.imports}
    imports = [step for spec in manifest.spec.imports for step in _plan_import(catalog, spec, observed, now)]
    # its manager is written last: as long as it has none, its making may have been broken off
    completed: list[Action] = [CompleteCatalog()] if catalog.manager is None else []
    return [*completed, *_stop_imports(observed, catalog, kept), *([UpdateCatalog(changes)] if changes else []), *imports]


def _changes(manifest: CatalogManifest, catalog: CatalogDefinition, me: CatalogManager) -> CatalogChanges:
    """The fields that are not as wished."""
    wished: Mapping[str, object] = {**manifest.spec.fields(), "manager": me}
    return cast(CatalogChanges, {name: value for name, value in wished.items() if getattr(catalog, name) != value})


def _stop_imports(
    observed: ObservedCatalog, catalog: CatalogDefinition, kept: set[str] | frozenset[str] = frozenset()
) -> list[Action]:
    """Cancel the tasks of imports that are no longer wanted. Imports that a person asked for by hand have other subjects."""
    gone = {import_subject(catalog.name, spec.name) for spec in catalog.imports if spec.name not in kept}
    tasks = observed.tasks.all_active()
    return [cancel(task) for task in tasks if task.kind == IMPORT and task.subject in gone and not task.is_stopping]


def _plan_import(catalog: CatalogDefinition, spec: ImportSpec, observed: ObservedCatalog, now: Micros) -> list[Action]:
    subject, arguments = import_subject(catalog.name, spec.name), import_arguments(catalog, spec)
    is_done = catalog.imported.get(spec.name) == spec.digest()
    active, last = observed.tasks.active(IMPORT, subject), observed.tasks.last(IMPORT, subject)
    if last is not None and last.arguments != arguments:
        last = None  # it followed another version of the import, or filled an earlier catalog of this name
    if last is not None and last.state is TaskState.SUCCEEDED and not is_done:
        return [RecordImported(spec.name, spec.digest())]
    if active is None and last is not None and last.state is not TaskState.SUCCEEDED:
        return [dead_letter(last)]
    if active is not None and active.state is TaskState.WAITING and active.arguments != arguments:
        return [cancel(active), SubmitTask(IMPORT, now, subject, arguments)]
    if not is_done:
        return [] if active else [SubmitTask(IMPORT, now, subject, arguments)]
    return _again(catalog, spec, observed, last, now) if spec.mode == "sync" else []


def _again(
    catalog: CatalogDefinition, spec: ImportSpec, observed: ObservedCatalog, last: SeenTask | None, now: Micros
) -> list[Action]:
    """The next run of an import that is repeated."""
    assert observed.realm is not None
    subject = import_subject(catalog.name, spec.name)
    work = ScheduledWork(
        kind=IMPORT,
        subject=subject,
        arguments=import_arguments(catalog, spec),
        cron=spec.schedule or daily_schedule(f"{observed.realm.id}/{subject}"),
        zone=observed.realm.maintenance.time_zone,
    )
    return keep_scheduled(work, observed.tasks, since=last.finished if last and last.finished else now, now=now)
