"""Turns at scanning a store whose keys are in no order: every scan reads everything there, so there is one at a time.

The turn is an object of the system realm. Who holds it shows signs of life by changing its token; who sees that token stand still
for a lease, by a clock of its own, takes the turn over.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

import structlog

from headwater.errors import BeatenError, HeadwaterError, UnavailableError
from headwater.maintenance.garbage.pacing import Watch
from headwater.store import RealmStore, Store, StoredObject, Versioned, fixed_id, object_type

__all__ = ["SCAN_TURN_ID", "ScanTurn", "scan_turn"]

SCAN_TURN_ID = fixed_id(4)
_LOOK_SECONDS = 1.0
_log = structlog.get_logger()


@object_type("scan-turn", updateable=True)
class ScanTurn(StoredObject, frozen=True, kw_only=True):
    """Whose turn it is; nobody's while ``is_held`` is False. ``beats`` only grows."""

    owner: str = ""
    is_held: bool = False
    beats: int = 0


class _Turn:
    def __init__(self, rows: RealmStore, seen: Versioned[ScanTurn]) -> None:
        self._rows = rows
        self._seen = seen
        self._beaten_at = rows.clock.monotonic()

    def beat(self) -> None:
        """A sign of life, when one is due. UnavailableError when the turn was taken over."""
        now = self._rows.clock.monotonic()
        if now - self._beaten_at < self._rows.settings.task_heartbeat_seconds:
            return
        held = self._seen.value
        try:
            self._seen = self._rows.update(self._seen, ScanTurn(owner=held.owner, is_held=True, beats=held.beats + 1))
        except BeatenError as beaten:
            raise UnavailableError("another scan of the store took the turn over: try again after it") from beaten
        self._beaten_at = now

    def give_back(self) -> None:
        try:
            self._rows.update(self._seen, ScanTurn(beats=self._seen.value.beats + 1))
        except HeadwaterError as fault:
            _log.warning("the turn at scanning stays taken until its lease ends", fault=str(fault))


@contextmanager
def scan_turn(store: Store, owner: str, watch: Watch) -> Iterator[_Turn]:
    """Hold the turn while scanning, and call ``beat`` of it now and then.

    raises        UnavailableError when somebody else holds it, and lives
    """
    turn = _Turn(store.system, _take(store.system, owner, watch))
    try:
        yield turn
    finally:
        turn.give_back()


def _take(rows: RealmStore, owner: str, watch: Watch) -> Versioned[ScanTurn]:
    mine = ScanTurn(owner=owner, is_held=True)
    found = rows.find_versioned(SCAN_TURN_ID, ScanTurn)
    with suppress(BeatenError):
        if found is None:
            return rows.insert(SCAN_TURN_ID, mine)
        if not found.value.is_held or _stood_still(rows, found, watch):
            return rows.update(found, mine)
    now = rows.find_versioned(SCAN_TURN_ID, ScanTurn)
    held_by = now.value.owner if now is not None else ""
    raise UnavailableError(f"another scan of the store is under way ({held_by or 'no owner named'}): try again after it")


def _stood_still(rows: RealmStore, seen: Versioned[ScanTurn], watch: Watch) -> bool:
    """Whether nobody changes the turn for a whole lease, which is waited for; False at the first sign of life."""
    since = rows.clock.monotonic()
    while rows.clock.monotonic() - since < rows.settings.task_lease_seconds:
        watch.look()
        rows.clock.sleep(_LOOK_SECONDS)
        found = rows.find_versioned(SCAN_TURN_ID, ScanTurn)
        if found is None or found.token != seen.token:
            return False
    return True
