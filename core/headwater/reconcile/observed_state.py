"""The observed state of one realm or catalog in a store, as plain values, from which the planners decide."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from headwater.catalogs import CatalogDefinition, CatalogManager, Catalogs, ImportSpec
from headwater.clock import Micros
from headwater.realms import Realm, RealmManager, RealmRegistry, RealmState, hold_until
from headwater.reconcile.manifests import CatalogManifest, KnownRealms, RealmManifest, ResourceName
from headwater.reconcile.ownership import ManagerIdentity
from headwater.store import ObjectId, RealmId, Store, Versioned
from headwater.tasks import Task, TaskQueue, TaskState

READABLE = (RealmState.ACTIVE, RealmState.INACTIVE)
"""The states of a realm in which its catalogs are observed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedTask:
    """One task. ``is_stopping``: it is running and was asked to stop."""

    id: ObjectId
    kind: str
    due: Micros
    subject: str = ""
    state: TaskState = TaskState.WAITING
    failures: int = 0
    is_stopping: bool = False
    finished: Micros | None = None
    error: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_active(self) -> bool:
        return self.state.is_active

    @property
    def is_scheduled(self) -> bool:
        """Whether it waits for a scheduled time, and not for its next attempt."""
        return self.state is TaskState.WAITING and self.failures == 0


@dataclass(frozen=True, slots=True)
class TaskHistory:
    """The tasks of one realm: the active ones first, then the finished ones, the newest first."""

    tasks: tuple[ObservedTask, ...] = ()

    def active(self, kind: str, subject: str = "") -> ObservedTask | None:
        return next((task for task in self.tasks if task.is_active and (task.kind, task.subject) == (kind, subject)), None)

    def last(self, kind: str, subject: str = "") -> ObservedTask | None:
        """The task of a kind and subject that finished last."""
        return next((task for task in self.tasks if not task.is_active and (task.kind, task.subject) == (kind, subject)), None)

    def all_active(self) -> tuple[ObservedTask, ...]:
        return tuple(task for task in self.tasks if task.is_active)


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedRealm:
    """The state of one realm.

    realm             None when there is none of this id
    me                the resource that asks
    is_cluster_named  whether the name of its cluster was chosen, so that no other cluster has it
    hold_until        earliest time of a purge, while the realm is INACTIVE
    """

    realm: Realm | None
    me: RealmManager
    is_cluster_named: bool = True
    hold_until: Micros | None = None
    tasks: TaskHistory = TaskHistory()


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedCatalog:
    """The state of one catalog.

    realm             None when it does not exist
    realm_owner       the resource that manages the realm according to the manifest; its uid may be unknown
    may_be_unmanaged  whether the realm may also have no manager: its manifest is not among those that are applied
    me                the resource that asks
    is_cluster_named  whether the name of its cluster was chosen, so that no other cluster has it
    catalog           None when there is none of this name, or its realm is neither ACTIVE nor INACTIVE
    tasks             those of a realm with one of these states
    """

    realm: Realm | None
    realm_owner: RealmManager
    me: CatalogManager
    is_cluster_named: bool = True
    may_be_unmanaged: bool = False
    catalog: CatalogDefinition | None = None
    tasks: TaskHistory = TaskHistory()


def import_subject(catalog: str, name: str) -> str:
    """The subject of an import's task: at most one task of an import is active."""
    return f"{catalog}/{name}"


def import_arguments(catalog: CatalogDefinition, spec: ImportSpec) -> dict[str, str]:
    """The arguments of an import's task: the catalog, and the version of the import, whose text is in the definition."""
    return {"catalog": catalog.name, "catalogId": catalog.id, "import": spec.name, "digest": spec.digest()}


def known_realms(store: Store, *, cluster: str = "") -> KnownRealms:
    """The realms that manifests of this cluster may name: managed from it, or by nobody."""
    listed = RealmRegistry(store).list_realms()
    known: dict[RealmId, ResourceName | None] = {
        RealmId(row.realm): None for row in listed.unreadable
    }  # reported when a manifest needs it
    for realm in listed:
        if realm.manager is None or realm.manager.cluster == cluster:
            known[realm.id] = ResourceName(realm.manager.namespace, realm.manager.name) if realm.manager else None
    return known


class StoreObserver:
    """Observes a store. Definitions are read anew each time; the tasks of a realm once, and again after ``forget``."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._realms = RealmRegistry(store)
        self._tasks: dict[RealmId, list[Versioned[Task]]] = {}

    def observe_realm(self, manifest: RealmManifest, manager: ManagerIdentity) -> ObservedRealm:
        me, is_cluster_named = manager.of_realm(manifest.metadata.resource), manager.is_cluster_named
        realm = self._realms.find_realm(manifest.spec.realm_id)
        if realm is None:
            return ObservedRealm(realm=None, me=me, is_cluster_named=is_cluster_named)
        held = hold_until(realm, self._store.settings, self._store.clock.now())
        return ObservedRealm(realm=realm, me=me, is_cluster_named=is_cluster_named, hold_until=held, tasks=self._history(realm))

    def observe_catalog(
        self,
        manifest: CatalogManifest,
        manager: ManagerIdentity,
        *,
        realm_uid: str = "",
        may_be_unmanaged: bool = False,
    ) -> ObservedCatalog:
        me = manager.of_catalog(manifest.metadata.resource)
        realm = self._realms.find_realm(manifest.spec.realm_id)
        observed = ObservedCatalog(
            realm=realm,
            realm_owner=RealmManager(cluster=me.cluster, namespace=me.namespace, name=manifest.spec.realm, uid=realm_uid),
            me=me,
            is_cluster_named=manager.is_cluster_named,
            may_be_unmanaged=may_be_unmanaged,
        )
        if realm is None or realm.state not in READABLE:
            return observed
        catalog = Catalogs(self._realms.open_realm(realm.id)).find_catalog(manifest.spec.name)
        return replace(observed, catalog=catalog, tasks=self._history(realm))

    def forget(self) -> None:
        """Forget the tasks that were read: they may have changed."""
        self._tasks.clear()

    def _history(self, realm: Realm) -> TaskHistory:
        """The realm's own tasks, and tasks that hold their places: one of an earlier realm of the same id does so until it ends."""
        if realm.id not in self._tasks:
            self._tasks[realm.id] = TaskQueue(self._store).of_realm(realm.id)
        tasks = self._tasks[realm.id]
        return TaskHistory(tuple(_seen(task) for task in tasks if task.value.is_active or task.value.realm_key == realm.key))


def _seen(task: Versioned[Task]) -> ObservedTask:
    value = task.value
    return ObservedTask(
        id=task.id,
        kind=value.kind,
        subject=value.subject,
        state=value.state,
        due=value.due,
        failures=value.failures,
        is_stopping=value.stop_requested,
        finished=value.finished,
        error=value.error,
        arguments=value.arguments,
    )
