"""Collect a set of realms: in one scan of the whole store where a database keeps no order of keys, otherwise one after the other.

Each realm has a live set, cut-offs, a record and a result of its own. Only the scans are shared.
Where the keys of a store are in no order, every scan reads everything, so one runs at a time: ``hold_scan_lock``.

The lock is an object of the system realm. Its holder shows signs of life by changing the object's token. A process that sees that
token unchanged for a whole lease, by its own clock, takes the lock over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

import structlog

from headwater.commits import SweptSplit
from headwater.errors import FencedError, HeadwaterError, SwapConflictError, UnavailableError
from headwater.gc.collector import Collector
from headwater.gc.retention import open_scope
from headwater.gc.sweep import CollectionResult, SplitSweep
from headwater.store import (
    ObjectKey,
    ObjectPosition,
    RealmKey,
    RealmStore,
    ScanSplit,
    Store,
    StoredObject,
    Versioned,
    fixed_id,
    object_type,
)
from headwater.tasks import TaskStoppedError
from headwater.throttle import Fence, FenceWatch, Throttle

_SCAN_ROWS = 600


def collect_realms(
    store: Store, realm_ids: Sequence[str], *, fence: Fence = lambda: None, owner: str = "", dry_run: bool = False
) -> dict[str, CollectionResult | HeadwaterError]:
    """Collect realms. Returns each realm's result, or the error that ended its collection; one that fails hinders no other.

    raises        FencedError and TaskStoppedError, which end the collection of all · UnavailableError when another scan of the store is on
    """
    together = _SharedCollection(store, fence, owner)
    for realm_id in dict.fromkeys(realm_ids):
        with together.alone(realm_id):
            together.runs[realm_id] = Collector(
                store, open_scope(store, realm_id), fence=fence, progress=lambda *_: None, owner=owner
            )
    if store.backend.capabilities.ordered_keys:
        for realm_id, run in list(together.runs.items()):
            with together.alone(realm_id):
                together.fates[realm_id] = run.collect(dry_run=dry_run)
    else:
        together.collect(dry_run=dry_run)
    return together.fates


class _SharedCollection:
    def __init__(self, store: Store, fence: Fence, owner: str) -> None:
        self._store = store
        self._pacing = Throttle(store.settings, store.clock, fence)
        self._owner = owner
        self._beat: Callable[[], None] = lambda: None
        # Invariant: a realm leaves ``runs`` with its first error, and no further step is done for it.
        self.runs: dict[str, Collector] = {}
        self.fates: dict[str, CollectionResult | HeadwaterError] = {}

    @contextmanager
    def alone(self, realm_id: str) -> Iterator[None]:
        """Turn an error of the body into this realm's outcome, and drop its run."""
        try:
            yield
        except (FencedError, TaskStoppedError):
            raise
        except HeadwaterError as fault:
            self.runs.pop(realm_id, None)
            self.fates[realm_id] = fault

    def collect(self, *, dry_run: bool) -> None:
        with hold_scan_lock(self._store, self._owner, self._pacing.watch) as lock:
            self._beat = lock.heartbeat
            for realm_id, run in list(self.runs.items()):
                with self.alone(realm_id):
                    if not dry_run and run.resume():  # by a scan of its own, from where it stood
                        self.fates[realm_id] = self.runs.pop(realm_id).result
                    else:
                        run.result.dry_run = dry_run
                        run.mark()
            for by_realm, _ in self._scan():
                for realm_id, run in list(self.runs.items()):
                    if run.key in by_realm:
                        with self.alone(realm_id):
                            run.plan_batch(by_realm[run.key])
            if not dry_run:
                self._sweep()
            self.fates |= {realm_id: run.result for realm_id, run in self.runs.items()}

    def _sweep(self) -> None:
        # Every realm publishes its sweep before the one scan begins: a row that the scan passes is judged by a saved live set.
        sweeps: dict[str, SplitSweep] = {}
        for realm_id, run in list(self.runs.items()):
            with self.alone(realm_id):
                sweeper = run.sweeper()
                sweeper.set_splits(run.publish_sweep((SweptSplit(),)), lambda *_: None)
                sweeps[realm_id] = sweeper.split(0)
        for by_realm, position in self._scan():
            for realm_id, run in list(self.runs.items()):
                with self.alone(realm_id):
                    sweeps[realm_id].sweep_batch(by_realm.get(run.key, ()), position)
        for realm_id, run in list(self.runs.items()):
            with self.alone(realm_id):
                run.finish_sweep(sweeps[realm_id].finish)

    def _scan(self) -> Iterator[tuple[Mapping[RealmKey, list[ObjectKey]], ObjectPosition]]:
        """Scan the store page by page. Yields the rows of each page by realm, and the position at which the page ends."""
        after: ObjectPosition | None = None
        while page := self._store.backend.scan_objects(ScanSplit(), after, _SCAN_ROWS):
            after = page[-1].position
            by_realm: dict[RealmKey, list[ObjectKey]] = {}
            for key in page:
                by_realm.setdefault(key.realm, []).append(key)
            yield by_realm, after
            self._beat()
            self._pacing.before_scanning_on(len(page))


SCAN_LOCK_ID = fixed_id(4)
_LOOK_SECONDS = 1.0
_log = structlog.get_logger()


@object_type("scan-turn", updateable=True)
class ScanLock(StoredObject, frozen=True, kw_only=True):
    """The holder of the lock; nobody holds it while ``is_held`` is False. ``beats`` only grows, so every heartbeat changes the token."""

    owner: str = ""
    is_held: bool = False
    beats: int = 0


class _HeldLock:
    def __init__(self, rows: RealmStore, lock: Versioned[ScanLock]) -> None:
        self._rows = rows
        # Invariant: what this holder wrote last. Every write is a swap of it, so a lock that was taken over is noticed.
        self._seen = lock
        self._beaten_at = rows.clock.monotonic()

    def heartbeat(self) -> None:
        """Show a sign of life when one is due. Raises UnavailableError when the lock was taken over."""
        now = self._rows.clock.monotonic()
        if now - self._beaten_at < self._rows.settings.task_heartbeat_seconds:
            return
        held = self._seen.value
        try:
            self._seen = self._rows.update_object(self._seen, ScanLock(owner=held.owner, is_held=True, beats=held.beats + 1))
        except SwapConflictError as beaten:
            raise UnavailableError("another scan of the store took the turn over: try again after it") from beaten
        self._beaten_at = now

    def give_back(self) -> None:
        try:
            self._rows.update_object(self._seen, ScanLock(beats=self._seen.value.beats + 1))
        except HeadwaterError as fault:
            _log.warning("the turn at scanning stays taken until its lease ends", fault=str(fault))


@contextmanager
def hold_scan_lock(store: Store, owner: str, watch: FenceWatch) -> Iterator[_HeldLock]:
    """Hold the lock while scanning; the caller calls its ``heartbeat`` between batches.

    raises        UnavailableError when a living process holds it
    """
    lock = _HeldLock(store.system, _acquire(store.system, owner, watch))
    try:
        yield lock
    finally:
        lock.give_back()


def _acquire(rows: RealmStore, owner: str, watch: FenceWatch) -> Versioned[ScanLock]:
    mine = ScanLock(owner=owner, is_held=True)
    lock = rows.find_versioned(SCAN_LOCK_ID, ScanLock)
    with suppress(SwapConflictError):
        if lock is None:
            return rows.insert_object(SCAN_LOCK_ID, mine)
        # The swap expects the token that stood still: a holder that wakes up in between beats, and we lose.
        if not lock.value.is_held or _is_expired(rows, lock, watch):
            return rows.update_object(lock, mine)
    now = rows.find_versioned(SCAN_LOCK_ID, ScanLock)
    held_by = now.value.owner if now is not None else ""
    raise UnavailableError(f"another scan of the store is under way ({held_by or 'no owner named'}): try again after it")


def _is_expired(rows: RealmStore, lock: Versioned[ScanLock], watch: FenceWatch) -> bool:
    """Wait a whole lease. Returns True when the token stood still all the time, False at the first sign of life."""
    since = rows.clock.monotonic()
    while rows.clock.monotonic() - since < rows.settings.task_lease_seconds:
        watch.check_now_and_then()
        rows.clock.sleep(_LOOK_SECONDS)
        current = rows.find_versioned(SCAN_LOCK_ID, ScanLock)
        if current is None or current.token != lock.token:
            return False
    return True
