"""What metrics say of single realms: a bounded number of them by name, the others together."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass

from headwater.clock import Micros
from headwater.reconcile import RealmDescription, TaskDescription
from headwater.tasks import TaskState

__all__ = ["OTHERS", "RealmTallies", "Tally"]

OTHERS = "_others_"
MICROS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Of one realm, or of several: times in seconds since 1970, the earliest of several; counts are sums. None: nothing known.

    objects_deleted, bytes_reclaimed  only ever grow while the realm has this name in the metrics
    """

    last_success: float | None = None
    next_due: float | None = None
    purge_rows_remaining: int | None = None
    objects_deleted: int = 0
    bytes_reclaimed: int = 0


class RealmTallies:
    """Fed with each description of a realm that a reconcile made. Safe for threads.

    limit         realms that are told by name; one gets its name when it is seen first, if there is one left, and keeps it until it is
                  forgotten, so that no counter ever moves from one name to another

    A collection is counted once, when it is seen ended; those that ended before ``count_from`` were counted by who led before.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._named: set[str] = set()
        self._tallies: dict[str, Tally] = {}
        self._counted: dict[str, str] = {}
        self._count_from = Micros(0)
        self._others_deleted = 0
        self._others_reclaimed = 0

    def count_from(self, now: Micros) -> None:
        self._count_from = now

    def note(self, realm: RealmDescription) -> None:
        with self._lock:
            if realm.id not in self._tallies and len(self._named) < self._limit and realm.id != OTHERS:
                self._named.add(realm.id)
            deleted, reclaimed = self._newly_collected(realm)
            former = self._tallies.get(realm.id, Tally())
            if realm.id not in self._named:
                self._others_deleted += deleted
                self._others_reclaimed += reclaimed
            self._tallies[realm.id] = Tally(
                last_success=_seconds(realm.last_success) or former.last_success,
                next_due=_seconds(realm.next_collection),
                purge_rows_remaining=_remaining(realm.purge),
                objects_deleted=former.objects_deleted + deleted,
                bytes_reclaimed=former.bytes_reclaimed + reclaimed,
            )

    def forget(self, realm_id: str) -> None:
        """It is gone, or nobody looks after it any more."""
        with self._lock:
            self._named.discard(realm_id)
            self._tallies.pop(realm_id, None)
            self._counted.pop(realm_id, None)

    def rows(self) -> dict[str, Tally]:
        """By the name that metrics show, ``_others_`` for those without one."""
        with self._lock:
            rows = {realm_id: tally for realm_id, tally in self._tallies.items() if realm_id in self._named}
            others = [tally for realm_id, tally in self._tallies.items() if realm_id not in self._named]
            if others or self._others_deleted:
                rows[OTHERS] = self._together(others)
        return rows

    def _together(self, others: list[Tally]) -> Tally:
        remaining = [tally.purge_rows_remaining for tally in others if tally.purge_rows_remaining is not None]
        return Tally(
            last_success=_earliest(tally.last_success for tally in others),
            next_due=_earliest(tally.next_due for tally in others),
            purge_rows_remaining=sum(remaining) if remaining else None,
            objects_deleted=self._others_deleted,
            bytes_reclaimed=self._others_reclaimed,
        )

    def _newly_collected(self, realm: RealmDescription) -> tuple[int, int]:
        """Rows and bytes that a collection deleted which was not counted yet."""
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
    """Of a purge on its way, how many rows it has left; 0 when it is done; None where that is not known."""
    if purge is None:
        return None
    if purge.state is TaskState.SUCCEEDED:
        return 0
    return None if purge.total is None else max(purge.total - purge.done, 0)


def _seconds(time: Micros | None) -> float | None:
    return None if time is None else time / MICROS


def _earliest(times: Iterable[float | None]) -> float | None:
    return min((time for time in times if time is not None), default=None)
