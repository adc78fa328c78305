"""Jobs of the kinds `gc`, `purge` and `restore`."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import structlog

from headwater.commits import unpin_commits
from headwater.errors import CorruptionError, HeadwaterError, NotFoundError, RefusedError
from headwater.gc import Collector, abandon_sweep, collect_realms, open_scope
from headwater.jobs.run_record import open_realm, run_recorded
from headwater.purge.realm_purge import purge_realm
from headwater.realms import RealmRegistry, RealmState
from headwater.restore import RequestMoment, RestoreRequest, restore_state
from headwater.store import SYSTEM_REALM, DoubtfulClockError, RealmStore, Store, check_clock, id_text
from headwater.tasks import Task, TaskLease, TaskNotReadyError, TaskStoppedError

_log = structlog.get_logger()
_LOOK_AGAIN_SECONDS = 3600.0
"""The longest time that a task waits for a person to confirm the clock."""


def run_collection(store: Store, claim: TaskLease) -> dict[str, Any]:
    """Collect the garbage of the task's realm, or resume a sweep that an earlier attempt left.

    raises        TaskNotReadyError while this machine's clock may be ahead, see ``_check_clock``
    """
    _check_clock(store)
    if claim.task.realm != SYSTEM_REALM:
        open_realm(store, claim.task)
    owner = f"task {id_text(claim.id)}, attempt {claim.attempt}"
    if not store.backend.capabilities.ordered_keys:
        return run_recorded(store, claim, lambda: _in_turn(store, claim, owner))
    scope = open_scope(store, claim.task.realm)
    collecting = Collector(store, scope, fence=claim.check_stop, progress=claim.report_progress, owner=owner)
    try:
        return run_recorded(store, claim, lambda: collecting.collect().as_plain(), so_far=collecting.so_far)
    except TaskStoppedError:
        if claim.task.stop_requested:  # cancelled: nobody resumes it. Otherwise the next attempt does
            _give_up(scope.rows, owner)
        raise


def _check_clock(store: Store) -> None:
    """Postpone the task where the clock may be ahead, and show that in the task: a person may correct the clock, another machine may take
    the task, or time shows that the clock is right.
    """
    try:
        check_clock(store, is_noted=True)
    except DoubtfulClockError as doubt:
        left = (doubt.until - store.clock.now()) / 1_000_000
        raise TaskNotReadyError(str(doubt), seconds=min(max(left, 1.0), _LOOK_AGAIN_SECONDS)) from doubt


def _in_turn(store: Store, claim: TaskLease, owner: str) -> dict[str, Any]:
    """Run the collection; where a scan reads the whole store, only while nobody else scans it."""
    fate = collect_realms(store, [claim.task.realm], fence=claim.check_stop, owner=owner)[claim.task.realm]
    if isinstance(fate, HeadwaterError):
        raise fate
    return fate.as_plain()


def _give_up(rows: RealmStore, owner: str) -> None:
    try:
        abandon_sweep(rows, owner)
    except HeadwaterError as fault:
        _log.warning("the flag of a cancelled sweep stays on until the next run", realm=rows.realm, fault=str(fault))


def run_purge(store: Store, claim: TaskLease) -> dict[str, Any]:
    """Purge the task's realm."""
    task = claim.task
    key = task.realm_key or None
    return run_recorded(
        store,
        claim,
        lambda: purge_realm(store, task.realm, key=key, fence=claim.check_stop, progress=claim.report_progress).as_plain(),
    )


def run_restore(store: Store, claim: TaskLease) -> dict[str, Any]:
    """Restore what the task's arguments name (see ``RestoreRequest.arguments``). Idempotent."""
    rows = _open_to_restore(store, claim.task)

    def work() -> dict[str, Any]:
        request = RestoreRequest.from_arguments(claim.task.arguments)
        try:
            return restore_state(
                rows,
                claim.id,
                request,
                asked=RequestMoment(claim.task.created, is_resumed=claim.attempt > 1),
                fence=claim.check_stop,
                progress=claim.report_progress,
            ).as_plain()
        except (RefusedError, NotFoundError, CorruptionError):
            with suppress(HeadwaterError):  # the next collection gives up the pins of tasks that ended
                unpin_commits(rows, claim.id, fence=claim.check_stop)
            raise

    return run_recorded(store, claim, work)


def _open_to_restore(store: Store, task: Task) -> RealmStore:
    """Open the task's realm whether ACTIVE or INACTIVE: a restoration is often requested while nobody works with the realm."""
    realms = RealmRegistry(store)
    realm = realms.read_realm(task.realm)
    if task.realm_key not in (0, realm.key):
        raise RefusedError(f"realm {realm.id!r} was created anew since this task was asked for: ask again")
    if realm.state not in (RealmState.ACTIVE, RealmState.INACTIVE):
        raise RefusedError(f"realm {realm.id!r} is {realm.state}: only ACTIVE and INACTIVE realms are restored")
    return realms.open_realm_for(realm.id, realm.state)
