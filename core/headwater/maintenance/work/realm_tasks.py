"""The work of tasks of the kinds `gc`, `purge` and `restore`."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import structlog

from headwater.commits import unpin_commits
from headwater.errors import HeadwaterError, MissingError, RefusedError, UnreadableError
from headwater.maintenance.garbage import Collecting, collect_together, give_up, scope_of
from headwater.maintenance.purging import purge
from headwater.maintenance.restoring import Asked, Request, restore
from headwater.maintenance.work.run_record import open_realm, recorded
from headwater.realms import Realms, RealmState
from headwater.store import SYSTEM_REALM, DoubtfulClockError, RealmStore, Store, check_clock, id_text
from headwater.tasks import Claim, NotYetError, StoppedError, Task

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


def run_purge(store: Store, claim: Claim) -> dict[str, Any]:
    """Purge the task's realm."""
    task = claim.task
    key = task.realm_key or None
    return recorded(
        store, claim, lambda: purge(store, task.realm, key=key, fence=claim.check, progress=claim.report).as_plain()
    )


def run_restore(store: Store, claim: Claim) -> dict[str, Any]:
    """Restore what the task's arguments name (see ``Request.arguments``). Done again it finds nothing to do."""
    rows = _open_to_restore(store, claim.task)

    def work() -> dict[str, Any]:
        request = Request.of(claim.task.arguments)
        try:
            return restore(
                rows,
                claim.id,
                request,
                asked=Asked(claim.task.created, is_resumed=claim.attempt > 1),
                fence=claim.check,
                progress=claim.report,
            ).as_plain()
        except (RefusedError, MissingError, UnreadableError):
            with suppress(HeadwaterError):  # the next collection gives up the pins of tasks that ended
                unpin_commits(rows, claim.id, fence=claim.check)
            raise

    return recorded(store, claim, work)


def _open_to_restore(store: Store, task: Task) -> RealmStore:
    """A handle on the realm as it is, serving or at rest: an undo is often wanted while nobody works with it."""
    realms = Realms(store)
    realm = realms.read(task.realm)
    if task.realm_key not in (0, realm.key):
        raise RefusedError(f"realm {realm.id!r} was created anew since this task was asked for: ask again")
    if realm.state not in (RealmState.ACTIVE, RealmState.INACTIVE):
        raise RefusedError(f"realm {realm.id!r} is {realm.state}: only ACTIVE and INACTIVE realms are restored")
    return realms.open_for(realm.id, realm.state)
