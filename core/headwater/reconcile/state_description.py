"""Describe the state of a realm or a catalog for people and monitoring, from the store alone."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
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
    recount_types,
)
from headwater.clock import Micros
from headwater.errors import NotFoundError
from headwater.jobs import COLLECT, IMPORT, PURGE
from headwater.realms import Realm, RealmManager, RealmRegistry, RealmState, hold_until
from headwater.reconcile.observed_state import import_subject
from headwater.store import ObjectId, RealmKey, Store, Versioned, id_text
from headwater.tasks import Task, TaskQueue, TaskState

TABLES = (ContentType.ICEBERG_TABLE, ContentType.DELTA_LAKE_TABLE)
_SERVED = (RealmState.ACTIVE, RealmState.INACTIVE)


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


@dataclass(slots=True)
class ContentCounts:
    """Caches the number of contents by type in a catalog: an unchanged catalog is not counted again."""

    most: int = 20_000
    _lock: Lock = field(default_factory=Lock)
    _known: OrderedDict[tuple[RealmKey, str], tuple[ObjectId, TypeCounts]] = field(default_factory=OrderedDict)

    def of(self, catalog: Catalog, key: RealmKey) -> TypeCounts:
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


def describe_realm(store: Store, realm_id: str, *, counts: ContentCounts | None = None) -> RealmDescription | None:
    """Describe a realm; None when there is none.

    counts        keep one between calls, so that only changes are counted
    """
    realms = RealmRegistry(store)
    realm = realms.find_realm(realm_id)
    if realm is None:
        return None
    tasks = _tasks(store, realm)
    catalogs, tables = _content(realms, realm, counts or ContentCounts())
    collection, purge = _last_begun(tasks, COLLECT), _active(tasks, PURGE) or _last(tasks, PURGE)
    waiting = _active(tasks, COLLECT)
    return RealmDescription(
        id=realm.id,
        key=realm.key,
        state=realm.state,
        manager=realm.manager,
        catalogs=catalogs,
        tables=tables,
        tasks=tuple(_described(task) for task in tasks if task.value.is_active),
        last_collection=_described(collection) if collection else None,
        last_success=collection.value.finished if collection and collection.value.state is TaskState.SUCCEEDED else None,
        next_collection=waiting.value.due if waiting else None,
        is_suspended=realm.maintenance.suspend,
        hold_until=hold_until(realm, store.settings, store.clock.now()),
        purge=_described(purge) if purge else None,
    )


def describe_catalog(
    store: Store, realm_id: str, name: str, *, counts: ContentCounts | None = None
) -> CatalogDescription | None:
    """Describe a catalog; None when it or its realm does not exist."""
    realms = RealmRegistry(store)
    realm = realms.find_realm(realm_id)
    if realm is None or realm.state not in _SERVED:
        return None
    rows = realms.open_realm(realm.id)
    definition = Catalogs(rows).find_catalog(name)
    if definition is None:
        return None
    catalog = Catalog(rows, definition)
    content = (counts or ContentCounts()).of(catalog, realm.key)
    tasks = [task for task in _tasks(store, realm) if task.value.kind == IMPORT]
    return CatalogDescription(
        id=definition.id,
        name=definition.name,
        state=definition.state,
        tables=sum(content.get(kind, 0) for kind in TABLES),
        namespaces=content.get(ContentType.NAMESPACE, 0),
        imports=tuple(_import(definition, spec, tasks) for spec in definition.imports),
        manager=definition.manager,
    )


def _tasks(store: Store, realm: Realm) -> list[Versioned[Task]]:
    """The realm's own tasks, without those of an earlier realm of the same id."""
    return [task for task in TaskQueue(store).of_realm(realm.id) if task.value.realm_key in (0, realm.key)]


def _active(tasks: list[Versioned[Task]], kind: str, subject: str = "") -> Versioned[Task] | None:
    return next((one for one in tasks if one.value.is_active and (one.value.kind, one.value.subject) == (kind, subject)), None)


def _last(tasks: list[Versioned[Task]], kind: str, subject: str = "") -> Versioned[Task] | None:
    ended = (one for one in tasks if not one.value.is_active)
    return next((one for one in ended if (one.value.kind, one.value.subject) == (kind, subject)), None)


def _last_succeeded(tasks: list[Versioned[Task]], kind: str, subject: str) -> Versioned[Task] | None:
    done = (one for one in tasks if one.value.state is TaskState.SUCCEEDED)
    return next((one for one in done if (one.value.kind, one.value.subject) == (kind, subject)), None)


def _last_begun(tasks: list[Versioned[Task]], kind: str) -> Versioned[Task] | None:
    """The last run that began. A task that was cancelled before its time is no run."""
    last = _last(tasks, kind)
    return last if last is not None and last.value.attempt else None


def _content(realms: RealmRegistry, realm: Realm, counts: ContentCounts) -> tuple[int, int] | tuple[None, None]:
    if realm.state not in _SERVED:
        return None, None
    rows = realms.open_realm(realm.id)
    opened = [Catalog(rows, definition) for definition in Catalogs(rows).list_catalogs()]
    return len(opened), sum(counts.of(one, realm.key).get(kind, 0) for one in opened for kind in TABLES)


def _import(definition: CatalogDefinition, spec: ImportSpec, tasks: list[Versioned[Task]]) -> ImportDescription:
    subject = import_subject(definition.name, spec.name)
    active, last = _active(tasks, IMPORT, subject), _last(tasks, IMPORT, subject)
    succeeded = _last_succeeded(tasks, IMPORT, subject)
    return ImportDescription(
        name=spec.name,
        mode=spec.mode,
        active=_described(active) if active else None,
        last=_described(last) if last else None,
        next=active.value.due if active and active.value.state is TaskState.WAITING else None,
        succeeded=_described(succeeded) if succeeded else None,
    )


def _described(seen: Versioned[Task]) -> TaskDescription:
    task = seen.value
    progress = task.progress
    attempt = task.attempts[-1] if task.attempts else None
    return TaskDescription(
        id=id_text(seen.id),
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
