"""The work of a task of the kind `gc`."""

from __future__ import annotations

from typing import Any

import structlog

from headwater.errors import HeadwaterError
from headwater.maintenance.garbage import Collecting, collect_together, give_up, scope_of
from headwater.maintenance.work.recorded import open_realm, recorded
from headwater.store import SYSTEM_REALM, DoubtfulClockError, RealmStore, Store, check_clock, id_text
from headwater.tasks import Claim, NotYetError, StoppedError

__all__ = ["run_collection"]

_log = structlog.get_logger()
_LOOK_AGAIN_SECONDS = 3600.0
"""So long a task waits at most, in case that somebody confirms the clock."""


def run_collection(store: Store, claim: Claim) -> dict[str, Any]:
    """Collect the garbage of the task's realm, or go on with what an attempt that ended in its sweep has left.

    raises        NotYetError while this machine's clock may be ahead, see ``check_clock``
    """
    _check_clock(store)
    if claim.task.realm != SYSTEM_REALM:
        open_realm(store, claim.task)
    owner = f"task {id_text(claim.id)}, attempt {claim.attempt}"
    if not store.backend.capabilities.ordered_keys:
        return recorded(store, claim, lambda: _in_turn(store, claim, owner))
    scope = scope_of(store, claim.task.realm)
    collecting = Collecting(store, scope, fence=claim.check, progress=claim.report, owner=owner)
    try:
        return recorded(store, claim, lambda: collecting.run().as_plain(), so_far=collecting.so_far)
    except StoppedError:
        if claim.task.stop_requested:  # cancelled: nobody goes on with it. Else the next attempt does
            _give_up(scope.rows, owner)
        raise


def _check_clock(store: Store) -> None:
    """Put the task off where the clock may be ahead, which shows in the task: somebody sets it right, another machine does the work,
    or time shows that it is right.
    """
    try:
        check_clock(store, is_noted=True)
    except DoubtfulClockError as doubt:
        left = (doubt.until - store.clock.now()) / 1_000_000
        raise NotYetError(str(doubt), seconds=min(max(left, 1.0), _LOOK_AGAIN_SECONDS)) from doubt


def _in_turn(store: Store, claim: Claim, owner: str) -> dict[str, Any]:
    """Where a scan reads the whole store, when nobody else scans it."""
    fate = collect_together(store, [claim.task.realm], fence=claim.check, owner=owner)[claim.task.realm]
    if isinstance(fate, HeadwaterError):
        raise fate
    return fate.as_plain()


def _give_up(rows: RealmStore, owner: str) -> None:
    try:
        give_up(rows, owner)
    except HeadwaterError as fault:
        _log.warning("the flag of a cancelled sweep stays on until the next run", realm=rows.realm, fault=str(fault))
