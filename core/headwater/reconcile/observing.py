"""Looks into a store, and tells the planners what is there."""

from __future__ import annotations

from dataclasses import replace

from headwater.catalogs import Catalogs
from headwater.realms import Manager, Realm, Realms, hold_until
from headwater.reconcile.loading import KnownRealms
from headwater.reconcile.manifests import CatalogManifest, RealmManifest, ResourceName
from headwater.reconcile.observed import READABLE, ObservedCatalog, ObservedRealm, SeenTask, TaskHistory
from headwater.reconcile.owning import ManagerIdentity
from headwater.store import RealmId, Store, Versioned
from headwater.tasks import Task, Tasks

__all__ = ["Observer", "known_realms"]


def known_realms(store: Store, *, cluster: str = "") -> KnownRealms:
    """The realms that manifests of this cluster may name: managed from it, or by nobody."""
    listed = Realms(store).list()
    known: dict[RealmId, ResourceName | None] = {
        RealmId(row.realm): None for row in listed.unreadable
    }  # whoever needs one is told what is wrong
    for realm in listed:
        if realm.manager is None or realm.manager.cluster == cluster:
            known[realm.id] = ResourceName(realm.manager.namespace, realm.manager.name) if realm.manager else None
    return known


class Observer:
    """Looks at a store. Definitions are read anew each time; the tasks of a realm once, and again after ``forget``."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._realms = Realms(store)
        self._tasks: dict[RealmId, list[Versioned[Task]]] = {}

    def realm(self, manifest: RealmManifest, manager: ManagerIdentity) -> ObservedRealm:
        me, is_cluster_named = manager.of_realm(manifest.metadata.resource), manager.is_cluster_named
        realm = self._realms.find(manifest.spec.realm_id)
        if realm is None:
            return ObservedRealm(realm=None, me=me, is_cluster_named=is_cluster_named)
        held = hold_until(realm, self._store.settings, self._store.clock.now())
        return ObservedRealm(realm=realm, me=me, is_cluster_named=is_cluster_named, hold_until=held, tasks=self._history(realm))

    def catalog(
        self,
        manifest: CatalogManifest,
        manager: ManagerIdentity,
        *,
        realm_uid: str = "",
        may_be_unmanaged: bool = False,
    ) -> ObservedCatalog:
        me = manager.of_catalog(manifest.metadata.resource)
        realm = self._realms.find(manifest.spec.realm_id)
        observed = ObservedCatalog(
            realm=realm,
            realm_owner=Manager(cluster=me.cluster, namespace=me.namespace, name=manifest.spec.realm, uid=realm_uid),
            me=me,
            is_cluster_named=manager.is_cluster_named,
            may_be_unmanaged=may_be_unmanaged,
        )
        if realm is None or realm.state not in READABLE:
            return observed
        catalog = Catalogs(self._realms.open(realm.id)).find(manifest.spec.name)
        return replace(observed, catalog=catalog, tasks=self._history(realm))

    def forget(self) -> None:
        """Tasks may have changed."""
        self._tasks.clear()

    def _history(self, realm: Realm) -> TaskHistory:
        """The realm's own tasks, and whatever holds their places: a task left by an earlier realm of the same id does until it ends."""
        if realm.id not in self._tasks:
            self._tasks[realm.id] = Tasks(self._store).of_realm(realm.id)
        tasks = self._tasks[realm.id]
        return TaskHistory(tuple(_seen(task) for task in tasks if task.value.is_active or task.value.realm_key == realm.key))


def _seen(task: Versioned[Task]) -> SeenTask:
    value = task.value
    return SeenTask(
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
