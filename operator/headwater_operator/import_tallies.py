"""What metrics say of imports, realm by realm: a bounded number of realms by name, the others together."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from headwater.clock import Micros
from headwater.reconcile import CatalogDescription, ImportDescription, TaskDescription
from headwater_operator.judging import quarantined
from headwater_operator.resources import Key
from headwater_operator.tallies import MICROS, OTHERS

__all__ = ["OUTCOMES", "ImportTallies", "ImportTally"]

OUTCOMES = ("imported", "updated", "unchanged", "quarantined")


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportTally:
    """Of one realm, or of several.

    last_success  the earliest of the times, in seconds since 1970, at which its imports last succeeded; None: none of them ever has
    quarantined   tables that the last runs left alone
    tables        what became of the tables of runs, by outcome; only ever grows while the realm has this name in the metrics
    """

    last_success: float | None
    quarantined: int
    tables: Mapping[str, int]


@dataclass(slots=True)
class ImportTallies:
    """Fed with each description of a catalog that a reconcile made. Safe for threads.

    limit         realms that are told by name; one gets its name when an import of it is seen first, if there is one left, and keeps it
                  as long as it has any, so that no counter ever moves from one name to another

    A run is counted once, when it is seen ended; those that ended before ``count_from`` were counted by who led before.
    """

    limit: int
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _realms: dict[str, dict[Key, tuple[ImportDescription, ...]]] = field(default_factory=dict)
    """By id of the realm and by Catalog, what was seen of its imports last."""
    _homes: dict[Key, str] = field(default_factory=dict)
    _named: set[str] = field(default_factory=set)
    _totals: dict[str, Counter[str]] = field(default_factory=dict)
    _count_from: Micros = field(default=Micros(0))

    def count_from(self, now: Micros) -> None:
        self._count_from = now

    def note(self, catalog: Key, realm_id: str, seen: CatalogDescription) -> None:
        if not seen.imports or self._homes.get(catalog, realm_id) != realm_id:
            self.forget(catalog)
        if not seen.imports:
            return
        with self._lock:
            if realm_id not in self._realms and len(self._named) < self.limit and realm_id != OTHERS:
                self._named.add(realm_id)
            catalogs = self._realms.setdefault(realm_id, {})
            counted = {one.name: one.succeeded.id for one in catalogs.get(catalog, ()) if one.succeeded is not None}
            total = self._totals.setdefault(self._name(realm_id), Counter())
            for one in seen.imports:
                if one.succeeded is not None and self._is_new(one.succeeded, counted.get(one.name)):
                    total.update(_counts(one, one.succeeded))
            catalogs[catalog] = seen.imports
            self._homes[catalog] = realm_id

    def forget(self, catalog: Key) -> None:
        """It is gone, or has no imports any more."""
        with self._lock:
            realm_id = self._homes.pop(catalog, None)
            if realm_id is None:
                return
            del self._realms[realm_id][catalog]
            if not self._realms[realm_id]:
                del self._realms[realm_id]
                self._named.discard(realm_id)
                self._totals.pop(realm_id, None)

    def rows(self) -> dict[str, ImportTally]:
        """By the name that metrics show, ``_others_`` for those without one."""
        with self._lock:
            seen: dict[str, list[ImportDescription]] = {name: [] for name in self._totals}
            for realm_id, catalogs in self._realms.items():
                seen[self._name(realm_id)] += (one for imports in catalogs.values() for one in imports)
            return {name: _row(imports, self._totals[name]) for name, imports in seen.items()}

    def _name(self, realm_id: str) -> str:
        return realm_id if realm_id in self._named else OTHERS

    def _is_new(self, run: TaskDescription, counted: str | None) -> bool:
        """Whether it has not been counted, here or by who led before."""
        return counted != run.id and run.finished is not None and run.finished >= self._count_from


def _row(imports: Sequence[ImportDescription], total: Counter[str]) -> ImportTally:
    ended = [one.succeeded.finished for one in imports if one.succeeded is not None and one.succeeded.finished is not None]
    return ImportTally(
        last_success=min(ended) / MICROS if ended else None,
        quarantined=sum(map(quarantined, imports)),
        tables={outcome: total[outcome] for outcome in OUTCOMES},
    )


def _counts(one: ImportDescription, run: TaskDescription) -> dict[str, int]:
    found = {name: run.outcome.get(name) for name in OUTCOMES[:-1]}
    return {name: count for name, count in found.items() if isinstance(count, int)} | {"quarantined": quarantined(one)}
