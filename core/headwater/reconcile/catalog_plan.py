"""The plan for a catalog: a pure function from the manifest and the observed state to actions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from headwater.catalogs import CatalogChanges, CatalogDefinition, CatalogFields, CatalogManager, ImportSpec, normalise_location
from headwater.clock import Micros
from headwater.errors import RefusedError
from headwater.jobs import IMPORT
from headwater.policies import changed_kinds
from headwater.realms import Realm, RealmManager, RealmState
from headwater.reconcile.access_plan import plan_catalog_access, plan_connection_end
from headwater.reconcile.actions import (
    Action,
    CompleteCatalog,
    CreateCatalog,
    DeclarePolicies,
    DeleteCatalog,
    RecordImported,
    RefuseManifest,
    SubmitTask,
    UpdateCatalog,
    WaitUntil,
    unconfirmed_purge,
)
from headwater.reconcile.lake_schedule import plan_lake_end, plan_lake_work
from headwater.reconcile.manifests import ADOPT, CONFIRM_PURGE, CatalogManifest
from headwater.reconcile.observed_state import READABLE, ObservedCatalog, import_arguments, import_subject
from headwater.reconcile.realm_plan import manager_text, may_return
from headwater.reconcile.schedule import ScheduledWork, cancel_scheduled, daily_schedule, dead_letter, keep_scheduled
from headwater.redaction import without_logins
from headwater.store import Versioned
from headwater.tasks import Task, TaskState

_WITHOUT_CATALOGS = (RealmState.CREATED, RealmState.INITIALIZING, RealmState.PURGED)


def plan_catalog(manifest: CatalogManifest, observed: ObservedCatalog, now: Micros) -> list[Action]:
    """The actions that can be taken now, in order, and what waits or is refused. An empty list means nothing to do."""
    realm, name = observed.realm, f"{manifest.spec.realm_id}/{manifest.spec.name}"
    if manifest.metadata.is_deletion and _has_nothing(observed):
        return []
    catalog = observed.catalog
    foreign = None if catalog is None or _may_have(manifest, catalog, observed, name) else catalog
    if manifest.metadata.is_deletion and foreign is not None:
        return _plan_foreign(manifest, foreign, name)
    if realm is None:
        return [WaitUntil("RealmMissing", f"catalog {name} waits for its realm, which is not there yet")]
    if not _is_owned(realm, observed):
        return [_not_owned(realm, observed, name)]
    if realm.state is not RealmState.ACTIVE:
        return [WaitUntil("RealmNotActive", f"catalog {name} waits for its realm to be ACTIVE; it is {realm.state}")]
    if foreign is not None:
        return _plan_foreign(manifest, foreign, name)
    if manifest.metadata.is_deletion:
        return [] if catalog is None else _plan_deletion(manifest, catalog, observed, name, now)
    return _plan_life(manifest, catalog, observed, now)


def _has_nothing(observed: ObservedCatalog) -> bool:
    """Whether the store has nothing that this resource can have created: then its deletion has nothing to wait for."""
    realm, catalog = observed.realm, observed.catalog
    if realm is None or realm.state in _WITHOUT_CATALOGS:
        return True
    if realm.state not in READABLE:
        return False
    return catalog is None or (catalog.manager is None and not _is_owned(realm, observed))


def _is_owned(realm: Realm, observed: ObservedCatalog) -> bool:
    """Whether the realm belongs to the resource that the manifest names.

    Where the uid is known, it must match: of two copies of a cluster, only the one that owns the realm owns its catalogs.
    """
    if realm.manager is None:
        return observed.may_be_unmanaged
    owner = observed.realm_owner
    return realm.manager.is_same(owner) and owner.uid in ("", realm.manager.uid)


def _not_owned(realm: Realm, observed: ObservedCatalog, name: str) -> WaitUntil | RefuseManifest:
    if may_return(realm, observed.realm_owner, is_cluster_named=observed.is_cluster_named):
        return WaitUntil(
            "RealmMissing", f"catalog {name} waits for its Realm, which was made again and has not taken its realm back yet"
        )
    return RefuseManifest(
        "RealmManagedByAnother", f"catalog {name} is in a realm that is managed by {manager_text(realm.manager)}"
    )


def _may_have(manifest: CatalogManifest, catalog: CatalogDefinition, observed: ObservedCatalog, name: str) -> bool:
    """Whether this resource may change the catalog: its own, one it released, an unmanaged one that matches, or one it adopts.

    A catalog without a manager was not created by a resource, not even partly: a resource is the manager from the first swap on.
    """
    if catalog.manager is not None:
        return catalog.manager.is_same(observed.me) and _is_of_this_cluster(catalog.manager, observed)
    if manifest.metadata.annotations.get(ADOPT) == name:
        return True
    return _is_alike(manifest, catalog) if catalog.former is None else catalog.former.is_same(observed.me)


def _is_of_this_cluster(manager: CatalogManager, observed: ObservedCatalog) -> bool:
    """Whether a manager of the same name is this resource, perhaps created anew, and not one of another cluster without a name.

    The uid of the Realm that has the realm proves it, too: that is in this cluster.
    """
    owner, realm = observed.realm_owner, observed.realm
    has_realm = realm is not None and realm.manager == owner and owner.uid != ""
    return observed.is_cluster_named or manager.uid == observed.me.uid or has_realm


def _is_alike(manifest: CatalogManifest, catalog: CatalogDefinition) -> bool:
    """Whether the catalog lies where the manifest says, so that nothing of its creator is lost."""
    wanted = manifest.spec
    return catalog.default_branch == wanted.default_branch and _is_same_place(catalog.base_location, wanted.base_location)


def _is_same_place(location: str, other: str) -> bool:
    try:
        return location == other or normalise_location(location) == normalise_location(other)
    except RefusedError:  # one of them was written by a release that accepted it all the same
        return False


def _plan_foreign(manifest: CatalogManifest, catalog: CatalogDefinition, name: str) -> list[Action]:
    if manifest.metadata.is_deletion and manifest.spec.deletion_policy == "Retain":
        return []
    adopt = f"annotate {ADOPT}: {name} to take it over"
    if catalog.manager is None and catalog.former is None:
        why = (
            f"catalog {name} has no manager, at {without_logins(catalog.base_location)} with the default branch "
            f"{catalog.default_branch}, and this Catalog asks for {without_logins(manifest.spec.base_location)} with "
            f"{manifest.spec.default_branch}: make baseLocation and defaultBranch of the Catalog equal to take it over as it is, or "
            f"annotate {ADOPT}: {name} to change it"
        )
    elif catalog.manager is None:
        why = f"catalog {name} was left by {_manager_text(catalog.former)}, which may come back for it; {adopt}"
    else:
        release = f"if it is gone for good, run `headwater catalog release {name}`"
        why = (
            f"catalog {name} is managed by {_manager_text(catalog.manager)}; delete that resource with deletionPolicy: Retain first "
            f"({release}), then {adopt}"
        )
    return [RefuseManifest("ManagedByAnother", why)]


def _manager_text(manager: CatalogManager | None) -> str:
    if manager is None:
        return manager_text(None)
    return manager_text(RealmManager(cluster=manager.cluster, namespace=manager.namespace, name=manager.name))


def _plan_deletion(
    manifest: CatalogManifest, catalog: CatalogDefinition, observed: ObservedCatalog, name: str, now: Micros
) -> list[Action]:
    if manifest.spec.deletion_protection:
        return [
            RefuseManifest(
                "DeletionProtected", f"catalog {name} has deletionProtection: true; set it to false before deleting it"
            )
        ]
    if manifest.spec.deletion_policy == "Retain":
        return [] if catalog.manager is None else [UpdateCatalog(CatalogChanges(manager=None, former=catalog.manager))]
    if unconfirmed := unconfirmed_purge(manifest.metadata.annotations.get(CONFIRM_PURGE), "catalog", name):
        return [unconfirmed]
    unprotect: list[Action] = [UpdateCatalog(CatalogChanges(deletion_protection=False))] if catalog.deletion_protection else []
    ended = [*_stop_imports(observed, catalog), *plan_lake_end(catalog, observed)]
    return [*unprotect, *ended, *plan_connection_end(catalog, now), DeleteCatalog()]


def _plan_life(
    manifest: CatalogManifest, catalog: CatalogDefinition | None, observed: ObservedCatalog, now: Micros
) -> list[Action]:
    if catalog is None:
        # with its manager in the same swap: a moment without one, and another resource of this name would take it for its own
        return [CreateCatalog(CatalogFields(**manifest.spec.fields(), manager=observed.me))]
    changes = _changes(manifest, catalog, observed.me)
    kept = {spec.name for spec in manifest.spec.imports}
    imports = [step for spec in manifest.spec.imports for step in _plan_import(catalog, spec, observed, now)]
    # what has no manager may be from a release that noted neither who makes a catalog nor that its making is not over
    completed: list[Action] = [CompleteCatalog()] if catalog.unfinished or catalog.manager is None else []
    updated: list[Action] = [UpdateCatalog(changes)] if changes else []
    updated += _plan_policies(manifest, observed)
    access = plan_catalog_access(manifest, catalog, observed.access, now, server_url=observed.server_url)
    lake = plan_lake_work(manifest, catalog, observed, now)
    return [*completed, *_stop_imports(observed, catalog, kept), *updated, *access, *imports, *lake]


def _plan_policies(manifest: CatalogManifest, observed: ObservedCatalog) -> list[Action]:
    declared = manifest.spec.policies
    kinds = changed_kinds(observed.policies, declared)
    return [DeclarePolicies(declared, kinds)] if kinds else []


def _changes(manifest: CatalogManifest, catalog: CatalogDefinition, me: CatalogManager) -> CatalogChanges:
    """The fields that differ from the manifest."""
    wished: Mapping[str, object] = {**manifest.spec.fields(), "manager": me, "former": None}
    return cast(CatalogChanges, {name: value for name, value in wished.items() if getattr(catalog, name) != value})


def _stop_imports(
    observed: ObservedCatalog, catalog: CatalogDefinition, kept: set[str] | frozenset[str] = frozenset()
) -> list[Action]:
    """Cancel the tasks of imports that are no longer wanted. Imports that a person requested by hand have other subjects."""
    gone = {import_subject(catalog.name, spec.name) for spec in catalog.imports if spec.name not in kept}
    imports = [task for task in observed.tasks.all_active() if task.value.kind == IMPORT and task.value.subject in gone]
    return [cancel_scheduled(task) for task in imports if not task.value.stop_requested]


def _plan_import(catalog: CatalogDefinition, spec: ImportSpec, observed: ObservedCatalog, now: Micros) -> list[Action]:
    subject, arguments = import_subject(catalog.name, spec.name), import_arguments(catalog, spec)
    is_done = catalog.imported.get(spec.name) == spec.digest()
    active, last = observed.tasks.active(IMPORT, subject), observed.tasks.last(IMPORT, subject)
    if last is not None and last.value.arguments != arguments:
        last = None  # it followed another version of the import, or filled an earlier catalog of this name
    if last is not None and last.value.state is TaskState.SUCCEEDED and not is_done:
        return [RecordImported(spec.name, spec.digest())]
    if active is None and last is not None and last.value.state is not TaskState.SUCCEEDED:
        return [dead_letter(last)]
    if active is not None and active.value.state is TaskState.WAITING and active.value.arguments != arguments:
        return [cancel_scheduled(active), SubmitTask(IMPORT, now, subject, arguments)]
    if not is_done:
        return [] if active else [SubmitTask(IMPORT, now, subject, arguments)]
    return _again(catalog, spec, observed, last, now) if spec.mode == "sync" else []


def _again(
    catalog: CatalogDefinition, spec: ImportSpec, observed: ObservedCatalog, last: Versioned[Task] | None, now: Micros
) -> list[Action]:
    """The next run of a repeated import."""
    assert observed.realm is not None
    subject = import_subject(catalog.name, spec.name)
    work = ScheduledWork(
        kind=IMPORT,
        subject=subject,
        arguments=import_arguments(catalog, spec),
        cron=spec.schedule or daily_schedule(f"{observed.realm.id}/{subject}"),
        zone=observed.realm.maintenance.time_zone,
    )
    return keep_scheduled(work, observed.tasks, since=last.value.finished if last and last.value.finished else now, now=now)
