"""Figures of realms and of their imports, collected from descriptions. A bounded number of realms has figures of its own, the others are
reported together.
"""

from __future__ import annotations

import collections
import threading
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from headwater.clock import Micros
from headwater.reconcile import CatalogDescription, ImportDescription, RealmDescription, TaskDescription, quarantined_tables
from headwater.tasks import TaskState

OTHERS = "_others_"
MICROS = 1_000_000
CatalogKey = Hashable
"""What a process knows a catalog by: its resource, or its realm and name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RealmTally:
    """The figures of one or several realms. Times are in seconds since 1970, the earliest of several; counts are sums; None: unknown.

    objects_deleted, bytes_reclaimed  only ever grow while the realm has this name in the metrics
    """

    last_success: float | None = None
    next_due: float | None = None
    purge_rows_remaining: int | None = None
    objects_deleted: int = 0
    bytes_reclaimed: int = 0


class RealmTallies:
    """Collects the descriptions of realms that passes produce. Thread-safe.

    limit         realms with a name in the metrics; a realm gets it at its first description, if one is left, and keeps it until it is
                  deleted, so that no counter ever moves from one name to another

    A collection is counted once, after its end; those that ended before ``count_from`` were counted by another process.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._named: set[str] = set()
        self._tallies: dict[str, RealmTally] = {}
        self._counted: dict[str, str] = {}
        self._count_from = Micros(0)
        self._others_deleted = 0
        self._others_reclaimed = 0

    def count_from(self, now: Micros) -> None:
        self._count_from = now

    def set_realm(self, realm: RealmDescription) -> None:
        with self._lock:
            if realm.id not in self._tallies and len(self._named) < self._limit and realm.id != OTHERS:
                self._named.add(realm.id)
            deleted, reclaimed = self._newly_collected(realm)
            former = self._tallies.get(realm.id, RealmTally())
            if realm.id not in self._named:
                self._others_deleted += deleted
                self._others_reclaimed += reclaimed
            self._tallies[realm.id] = RealmTally(
                last_success=_seconds(realm.last_success) or former.last_success,
                next_due=_seconds(realm.next_collection),
                purge_rows_remaining=_remaining(realm.purge),
                objects_deleted=former.objects_deleted + deleted,
                bytes_reclaimed=former.bytes_reclaimed + reclaimed,
            )

    def forget_realm(self, realm_id: str) -> None:
        """Forget a realm that was deleted or is no longer managed."""
        with self._lock:
            self._named.discard(realm_id)
            self._tallies.pop(realm_id, None)
            self._counted.pop(realm_id, None)

    def by_label(self) -> dict[str, RealmTally]:
        """The tallies by name in the metrics, ``_others_`` for those without one."""
        with self._lock:
            named = {realm_id: tally for realm_id, tally in self._tallies.items() if realm_id in self._named}
            others = [tally for realm_id, tally in self._tallies.items() if realm_id not in self._named]
            if others or self._others_deleted:
                named[OTHERS] = self._together(others)
        return named

    def _together(self, others: list[RealmTally]) -> RealmTally:
        remaining = [tally.purge_rows_remaining for tally in others if tally.purge_rows_remaining is not None]
        return RealmTally(
            last_success=_earliest(tally.last_success for tally in others),
            next_due=_earliest(tally.next_due for tally in others),
            purge_rows_remaining=sum(remaining) if remaining else None,
            objects_deleted=self._others_deleted,
            bytes_reclaimed=self._others_reclaimed,
        )

    def _newly_collected(self, realm: RealmDescription) -> tuple[int, int]:
        """Rows and bytes that a collection deleted, if it was not counted yet."""
        last = realm.last_collection
        if last is None or last.finished is None or self._counted.get(realm.id) == last.id:
            return 0, 0
        self._counted[realm.id] = last.id
        if last.finished < self._count_from:
            return 0, 0
        return _count(last, "deleted"), _count(last, "deletedBytes")


def _count(task: TaskDescription, name: str) -> int:
    value = task.outcome.get(name)
    return value if isinstance(value, int) else 0


def _remaining(purge: TaskDescription | None) -> int | None:
    """The rows that an active purge has left; 0 when it is done; None where unknown."""
    if purge is None:
        return None
    if purge.state is TaskState.SUCCEEDED:
        return 0
    return None if purge.total is None else max(purge.total - purge.done, 0)


def _seconds(time: Micros | None) -> float | None:
    return None if time is None else time / MICROS


def _earliest(times: Iterable[float | None]) -> float | None:
    return min((time for time in times if time is not None), default=None)


OUTCOMES = ("imported", "updated", "unchanged", "quarantined")


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportTally:
    """The figures of the imports of one or several realms.

    last_success  the earliest of the times, in seconds since 1970, at which its imports last succeeded; None: none of them ever has
    quarantined   tables that the last runs left alone
    tables        what became of the tables of runs, by outcome; only ever grows while the realm has this name in the metrics
    """

    last_success: float | None
    quarantined: int
    tables: Mapping[str, int]


@dataclass(slots=True)
class ImportTallies:
    """Collects the descriptions of catalogs that passes produce. Thread-safe.

    limit         realms with a name in the metrics; a realm gets it with its first import, if one is left, and keeps it as long as it
                  has any, so that no counter ever moves from one name to another

    A run is counted once, after its end; those that ended before ``count_from`` were counted by another process.
    """

    limit: int
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _realms: dict[str, dict[CatalogKey, tuple[ImportDescription, ...]]] = field(default_factory=dict)
    """The imports last seen, by realm id and Catalog."""
    _homes: dict[CatalogKey, str] = field(default_factory=dict)
    _named: set[str] = field(default_factory=set)
    _totals: dict[str, collections.Counter[str]] = field(default_factory=dict)
    _count_from: Micros = field(default=Micros(0))

    def count_from(self, now: Micros) -> None:
        self._count_from = now

    def set_catalog(self, catalog: CatalogKey, realm_id: str, description: CatalogDescription) -> None:
        if not description.imports or self._homes.get(catalog, realm_id) != realm_id:
            self.forget_catalog(catalog)
        if not description.imports:
            return
        with self._lock:
            if realm_id not in self._realms and len(self._named) < self.limit and realm_id != OTHERS:
                self._named.add(realm_id)
            catalogs = self._realms.setdefault(realm_id, {})
            counted = {entry.name: entry.succeeded.id for entry in catalogs.get(catalog, ()) if entry.succeeded is not None}
            total = self._totals.setdefault(self._name(realm_id), collections.Counter())
            for entry in description.imports:
                if entry.succeeded is not None and self._is_new(entry.succeeded, counted.get(entry.name)):
                    total.update(_counts(entry, entry.succeeded))
            catalogs[catalog] = description.imports
            self._homes[catalog] = realm_id

    def forget_catalog(self, catalog: CatalogKey) -> None:
        """Forget a Catalog that was deleted or has no imports any more."""
        with self._lock:
            realm_id = self._homes.pop(catalog, None)
            if realm_id is None:
                return
            del self._realms[realm_id][catalog]
            if not self._realms[realm_id]:
                del self._realms[realm_id]
                self._named.discard(realm_id)
                self._totals.pop(realm_id, None)

    def by_label(self) -> dict[str, ImportTally]:
        """The tallies by name in the metrics, ``_others_`` for those without one."""
        with self._lock:
            imports_of: dict[str, list[ImportDescription]] = {name: [] for name in self._totals}
            for realm_id, catalogs in self._realms.items():
                imports_of[self._name(realm_id)] += (entry for imports in catalogs.values() for entry in imports)
            return {name: _row(imports, self._totals[name]) for name, imports in imports_of.items()}

    def _name(self, realm_id: str) -> str:
        return realm_id if realm_id in self._named else OTHERS

    def _is_new(self, run: TaskDescription, counted: str | None) -> bool:
        """Whether the run was counted neither here nor by another process."""
        return counted != run.id and run.finished is not None and run.finished >= self._count_from


def _row(imports: Sequence[ImportDescription], total: collections.Counter[str]) -> ImportTally:
    ended = [
        entry.succeeded.finished for entry in imports if entry.succeeded is not None and entry.succeeded.finished is not None
    ]
    return ImportTally(
        last_success=min(ended) / MICROS if ended else None,
        quarantined=sum(map(quarantined_tables, imports)),
        tables={outcome: total[outcome] for outcome in OUTCOMES},
    )


def _counts(entry: ImportDescription, run: TaskDescription) -> dict[str, int]:
    counts = {name: run.outcome.get(name) for name in OUTCOMES[:-1]}
    return {name: count for name, count in counts.items() if isinstance(count, int)} | {
        "quarantined": quarantined_tables(entry)
    }
