"""The observed state of a realm or a catalog in a store: for the planners, which decide by it, and described for people and monitoring.

Both are plain values, and come from the store alone.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any

from headwater.catalogs import (
    Catalog,
    CatalogDefinition,
    CatalogManager,
    Catalogs,
    CatalogState,
    ContentType,
    ImportSpec,
    TypeCounts,
    count_types,
    listed_definitions,
    recount_types,
)
from headwater.clock import Micros
from headwater.errors import NotFoundError
from headwater.jobs import COLLECT, IMPORT, LAKE_WORK, PURGE
from headwater.policies import PolicyKind, StoredPolicy, list_policies
from headwater.realms import Realm, RealmManager, RealmRegistry, RealmState, hold_until
from headwater.reconcile.declared_access import ACCESS
from headwater.reconcile.manifests import CatalogManifest, KnownRealms, ManagerIdentity, RealmManifest, ResourceName
from headwater.reconcile.observed_access import (
    SeenCatalogAccess,
    SeenRealmAccess,
    observe_catalog_access,
    observe_realm_access,
)
from headwater.store import ObjectId, RealmId, RealmKey, Store, Versioned, id_text
from headwater.tasks import Task, TaskQueue, TaskState

READABLE = (RealmState.ACTIVE, RealmState.INACTIVE)
"""The states of a realm in which its catalogs are observed."""


@dataclass(frozen=True, slots=True)
class TaskHistory:
    """The tasks of one realm: the active ones first, then the finished ones, the newest first."""

    tasks: tuple[Versioned[Task], ...] = ()

    def active(self, kind: str, subject: str = "") -> Versioned[Task] | None:
        return next((task for task in self.all_active() if _is_about(task, kind, subject)), None)

    def last(self, kind: str, subject: str = "", *, state: TaskState | None = None) -> Versioned[Task] | None:
        """The task of a kind and subject that finished last, with this result or with any."""
        ended = (task for task in self.tasks if not task.value.is_active and state in (None, task.value.state))
        return next((task for task in ended if _is_about(task, kind, subject)), None)

    def all_active(self) -> tuple[Versioned[Task], ...]:
        return tuple(task for task in self.tasks if task.value.is_active)


def _is_about(task: Versioned[Task], kind: str, subject: str) -> bool:
    return (task.value.kind, task.value.subject) == (kind, subject)


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedRealm:
    """The state of one realm.

    realm             None when there is none of this id
    me                the resource that asks
    is_cluster_named  whether the name of its cluster was chosen, so that no other cluster has it
    hold_until        earliest time of a purge, while the realm is INACTIVE
    access            of an ACTIVE realm whose manifest declares or made some
    """

    realm: Realm | None
    me: RealmManager
    is_cluster_named: bool = True
    hold_until: Micros | None = None
    tasks: TaskHistory = TaskHistory()
    access: SeenRealmAccess | None = None


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
    access            of a complete catalog whose manifest declares or made some
    server_url        where catalogs are served, unless a manifest says; empty where that is not known
    policies          of the catalog and of its tables
    """

    realm: Realm | None
    realm_owner: RealmManager
    me: CatalogManager
    is_cluster_named: bool = True
    may_be_unmanaged: bool = False
    catalog: CatalogDefinition | None = None
    tasks: TaskHistory = TaskHistory()
    access: SeenCatalogAccess | None = None
    server_url: str = ""
    policies: tuple[StoredPolicy, ...] = ()

    @property
    def lets_go(self) -> bool:
        """Whether a policy of the catalog, or of one of its tables, lets snapshots or metadata files go."""
        return any(policy.kind in (PolicyKind.SNAPSHOTS, PolicyKind.METADATA_FILES) for policy in self.policies)


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
        self.store = store
        self._realms = RealmRegistry(store)
        self._tasks: dict[RealmId, list[Versioned[Task]]] = {}

    def observe_realm(self, manifest: RealmManifest, manager: ManagerIdentity) -> ObservedRealm:
        me, is_cluster_named = manager.of_realm(manifest.metadata.resource), manager.is_cluster_named
        realm = self._realms.find_realm(manifest.spec.realm_id)
        if realm is None:
            return ObservedRealm(realm=None, me=me, is_cluster_named=is_cluster_named)
        held = hold_until(realm, self.store.settings, self.store.clock.now())
        is_kept = realm.state is RealmState.ACTIVE and (manifest.spec.declares_access or ACCESS in realm.acted)
        return ObservedRealm(
            realm=realm,
            me=me,
            is_cluster_named=is_cluster_named,
            hold_until=held,
            tasks=self._history(realm),
            access=observe_realm_access(self._realms, realm) if is_kept else None,
        )

    def observe_catalog(
        self,
        manifest: CatalogManifest,
        manager: ManagerIdentity,
        *,
        realm_uid: str = "",
        may_be_unmanaged: bool = False,
        server_url: str = "",
    ) -> ObservedCatalog:
        me = manager.of_catalog(manifest.metadata.resource)
        realm = self._realms.find_realm(manifest.spec.realm_id)
        observed = ObservedCatalog(
            realm=realm,
            realm_owner=RealmManager(cluster=me.cluster, namespace=me.namespace, name=manifest.spec.realm, uid=realm_uid),
            me=me,
            is_cluster_named=manager.is_cluster_named,
            may_be_unmanaged=may_be_unmanaged,
            server_url=server_url,
        )
        if realm is None or realm.state not in READABLE:
            return observed
        rows = self._realms.open_realm(realm.id)
        catalog = Catalogs(rows).find_catalog(manifest.spec.name)
        observed = replace(observed, catalog=catalog, tasks=self._history(realm))
        if catalog is not None:
            observed = replace(observed, policies=tuple(list_policies(rows, catalog.id)))
        if catalog is None or catalog.unfinished or not (manifest.spec.declares_access or ACCESS in catalog.acted):
            return observed
        return replace(observed, access=observe_catalog_access(self._realms, realm, rows, catalog))

    def forget(self) -> None:
        """Forget the tasks that were read: they may have changed."""
        self._tasks.clear()

    def _history(self, realm: Realm) -> TaskHistory:
        """The realm's own tasks, and tasks that hold their places: one of an earlier realm of the same id does so until it ends."""
        if realm.id not in self._tasks:
            self._tasks[realm.id] = TaskQueue(self.store).of_realm(realm.id)
        tasks = self._tasks[realm.id]
        return TaskHistory(tuple(task for task in tasks if task.value.is_active or task.value.realm_key == realm.key))


TABLES = (ContentType.ICEBERG_TABLE, ContentType.DELTA_LAKE_TABLE)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskDescription:
    """One task.

    since         the start of its waiting: its due time, or the end of the previous attempt, if that was later
    started       when its last attempt began
    done, total   how far that attempt is, in ``unit``; ``total`` is None while it is not known
    outcome       what a finished one counted, as plain data
    """

    id: str
    kind: str
    subject: str
    state: TaskState
    attempt: int
    failures: int
    due: Micros
    since: Micros
    started: Micros | None
    finished: Micros | None
    done: int
    total: int | None
    unit: str
    error: str
    outcome: Mapping[str, Any]
    is_stopping: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RealmDescription:
    """One realm.

    catalogs, tables  on the default branches; None in a realm that has none to read
    tasks             the active ones
    last_collection   the one that ended last, unless that one was cancelled before it began; ``last_success``: its end, if it succeeded
    next_collection   when the waiting one is due
    purge             the active one, or the last
    """

    id: str
    key: int
    state: RealmState
    manager: RealmManager | None
    catalogs: int | None
    tables: int | None
    tasks: tuple[TaskDescription, ...]
    last_collection: TaskDescription | None
    last_success: Micros | None
    next_collection: Micros | None
    is_suspended: bool
    hold_until: Micros | None
    purge: TaskDescription | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeWorkDescription:
    """Scheduled work on a catalog's lake.

    last          the task of this kind that ended last, unless it was cancelled before it began
    next          when the waiting one is due
    """

    kind: str
    active: TaskDescription | None
    last: TaskDescription | None
    next: Micros | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportDescription:
    """One import of a catalog.

    last          its task that ended last, with any result
    succeeded     the last one that succeeded: what it counted stands until another one does
    next          when the waiting one is due
    """

    name: str
    mode: str
    active: TaskDescription | None
    last: TaskDescription | None
    next: Micros | None
    succeeded: TaskDescription | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogDescription:
    """One catalog; tables and namespaces are those of its default branch."""

    id: str
    name: str
    state: CatalogState
    tables: int
    namespaces: int
    imports: tuple[ImportDescription, ...]
    manager: CatalogManager | None = None
    lake_work: tuple[LakeWorkDescription, ...] = ()


def quarantined_tables(entry: ImportDescription) -> int:
    """The number of tables that the last successful run left alone."""
    tables = entry.succeeded.outcome.get("quarantined") if entry.succeeded is not None else None
    total = tables.get("total") if isinstance(tables, Mapping) else None
    return total if isinstance(total, int) else 0


@dataclass(slots=True)
class ContentCounts:
    """Caches the number of contents by type in a catalog: an unchanged catalog is not counted again."""

    most: int = 20_000
    _lock: Lock = field(default_factory=Lock)
    _known: OrderedDict[tuple[RealmKey, str], tuple[ObjectId, TypeCounts]] = field(default_factory=OrderedDict)

    def count_contents(self, catalog: Catalog, key: RealmKey) -> TypeCounts:
        try:
            head = catalog.resolve()
        except NotFoundError:  # it is being created
            head = None
        if head is None:
            return {}
        place = (key, catalog.definition.id)
        with self._lock:
            known = self._known.get(place)
        if known is not None and known[0] == head.id:
            return known[1]
        counts = count_types(head) if known is None else recount_types(head, before=known[0], counts=known[1])
        with self._lock:
            self._known[place] = (head.id, counts)
            while len(self._known) > self.most:
                self._known.popitem(last=False)
        return counts


class UncountedContents(ContentCounts):
    """Counts nothing, for who asks for tasks alone: in a catalog of a million tables, counting takes a while."""

    def count_contents(self, catalog: Catalog, key: RealmKey) -> TypeCounts:
        return {}


def describe_realm(store: Store, realm_id: str, *, counts: ContentCounts | None = None) -> RealmDescription | None:
    """Describe a realm; None when there is none.

    counts        keep one between calls, so that only changes are counted
    """
    realms = RealmRegistry(store)
    realm = realms.find_realm(realm_id)
    if realm is None:
        return None
    history = _own_history(store, realm)
    catalogs, tables = _content(realms, realm, counts or ContentCounts())
    waiting, collection = history.active(COLLECT), history.last(COLLECT)
    if collection is not None and not collection.value.attempt:
        collection = None  # a task that was cancelled before its time is no run
    purge = history.active(PURGE) or history.last(PURGE)
    return RealmDescription(
        id=realm.id,
        key=realm.key,
        state=realm.state,
        manager=realm.manager,
        catalogs=catalogs,
        tables=tables,
        tasks=tuple(_describe_task(task) for task in history.all_active()),
        last_collection=_describe_any(collection),
        last_success=collection.value.finished if collection and collection.value.state is TaskState.SUCCEEDED else None,
        next_collection=waiting.value.due if waiting else None,
        is_suspended=realm.maintenance.suspend,
        hold_until=hold_until(realm, store.settings, store.clock.now()),
        purge=_describe_any(purge),
    )


def describe_catalog(
    store: Store, realm_id: str, name: str, *, counts: ContentCounts | None = None
) -> CatalogDescription | None:
    """Describe a catalog; None when it or its realm does not exist."""
    realms = RealmRegistry(store)
    realm = realms.find_realm(realm_id)
    if realm is None or realm.state not in READABLE:
        return None
    realm_store = realms.open_realm(realm.id)
    definition = Catalogs(realm_store).find_catalog(name)
    if definition is None:
        return None
    catalog = Catalog(realm_store, definition)
    content = (counts or ContentCounts()).count_contents(catalog, realm.key)
    history = _own_history(store, realm)
    return CatalogDescription(
        id=definition.id,
        name=definition.name,
        state=definition.state,
        tables=sum(content.get(kind, 0) for kind in TABLES),
        namespaces=content.get(ContentType.NAMESPACE, 0),
        imports=tuple(_describe_import(definition, spec, history) for spec in definition.imports),
        manager=definition.manager,
        lake_work=tuple(_describe_lake_work(kind, definition, history) for kind in LAKE_WORK),
    )


def _own_history(store: Store, realm: Realm) -> TaskHistory:
    """The realm's own tasks, without those of an earlier realm of the same id."""
    return TaskHistory(tuple(task for task in TaskQueue(store).of_realm(realm.id) if task.value.realm_key in (0, realm.key)))


def _content(realms: RealmRegistry, realm: Realm, counts: ContentCounts) -> tuple[int, int] | tuple[None, None]:
    if realm.state not in READABLE:
        return None, None
    realm_store = realms.open_realm(realm.id)
    catalogs = [Catalog(realm_store, definition) for definition in listed_definitions(realm_store)]
    return len(catalogs), sum(counts.count_contents(catalog, realm.key).get(kind, 0) for catalog in catalogs for kind in TABLES)


def _describe_import(definition: CatalogDefinition, spec: ImportSpec, history: TaskHistory) -> ImportDescription:
    subject = import_subject(definition.name, spec.name)
    active = history.active(IMPORT, subject)
    return ImportDescription(
        name=spec.name,
        mode=spec.mode,
        active=_describe_any(active),
        last=_describe_any(history.last(IMPORT, subject)),
        next=active.value.due if active and active.value.state is TaskState.WAITING else None,
        succeeded=_describe_any(history.last(IMPORT, subject, state=TaskState.SUCCEEDED)),
    )


def _describe_lake_work(kind: str, definition: CatalogDefinition, history: TaskHistory) -> LakeWorkDescription:
    own = TaskHistory(tuple(task for task in history.tasks if task.value.arguments.get("catalog_id") == definition.id))
    active, last = own.active(kind, definition.name), own.last(kind, definition.name)
    return LakeWorkDescription(
        kind=kind,
        active=_describe_any(active),
        last=_describe_any(last) if last is not None and last.value.attempt else None,
        next=active.value.due if active and active.value.state is TaskState.WAITING else None,
    )


def _describe_any(task: Versioned[Task] | None) -> TaskDescription | None:
    return None if task is None else _describe_task(task)


def _describe_task(versioned: Versioned[Task]) -> TaskDescription:
    task = versioned.value
    progress = task.progress
    attempt = task.attempts[-1] if task.attempts else None
    return TaskDescription(
        id=id_text(versioned.id),
        kind=task.kind,
        subject=task.subject,
        state=task.state,
        attempt=task.attempt,
        failures=task.failures,
        due=task.due,
        since=max(task.due, (attempt.ended or task.due) if attempt else task.due),
        started=attempt.started if attempt else None,
        finished=task.finished,
        done=progress.done if progress else 0,
        total=progress.total if progress else None,
        unit=progress.unit if progress else "",
        error=task.error,
        outcome=task.outcome or {},
        is_stopping=task.stop_requested,
    )
