"""A lock on scanning a store whose keys are in no order: every scan there reads everything, so one runs at a time.

The lock is an object of the system realm. Its holder shows signs of life by changing the object's token. A process that sees that
token unchanged for a whole lease, by its own clock, takes the lock over.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

import structlog

from headwater.errors import HeadwaterError, SwapConflictError, UnavailableError
from headwater.gc.throttle import FenceWatch
from headwater.store import RealmStore, Store, StoredObject, Versioned, fixed_id, object_type

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
    def __init__(self, rows: RealmStore, seen: Versioned[ScanLock]) -> None:
        self._rows = rows
        # Invariant: what this holder wrote last. Every write is a swap of it, so a lock that was taken over is noticed.
        self._seen = seen
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
    found = rows.find_versioned(SCAN_LOCK_ID, ScanLock)
    with suppress(SwapConflictError):
        if found is None:
            return rows.insert_object(SCAN_LOCK_ID, mine)
        # The swap expects the token that stood still: a holder that wakes up in between beats, and we lose.
        if not found.value.is_held or _is_expired(rows, found, watch):
            return rows.update_object(found, mine)
    now = rows.find_versioned(SCAN_LOCK_ID, ScanLock)
    held_by = now.value.owner if now is not None else ""
    raise UnavailableError(f"another scan of the store is under way ({held_by or 'no owner named'}): try again after it")


def _is_expired(rows: RealmStore, seen: Versioned[ScanLock], watch: FenceWatch) -> bool:
    """Wait a whole lease. Returns True when the token stood still all the time, False at the first sign of life."""
    since = rows.clock.monotonic()
    while rows.clock.monotonic() - since < rows.settings.task_lease_seconds:
        watch.check_now_and_then()
        rows.clock.sleep(_LOOK_SECONDS)
        found = rows.find_versioned(SCAN_LOCK_ID, ScanLock)
        if found is None or found.token != seen.token:
            return False
    return True
