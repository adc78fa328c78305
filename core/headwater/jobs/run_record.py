"""The kinds of tasks, as they are stored.

What every kind of work shares: the realm that was meant, and the record that a run leaves however it ends.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import structlog

from headwater.errors import CorruptionError, FencedError, HeadwaterError, RefusedError, UnavailableError
from headwater.jobs.run_history import Run, record_run
from headwater.realms import Realm, RealmRegistry, RealmState
from headwater.store import SYSTEM_REALM, RealmStore, Store, id_text
from headwater.tasks import Task, TaskLease, TaskNotReadyError, TaskStoppedError

COLLECT, PURGE, IMPORT = "gc", "purge", "import"
EXPORT, LOAD, RESTORE = "export", "load", "restore"
PURGE_TABLE = "purge-table"


_GOING = (RealmState.PURGING, RealmState.PURGED)
_log = structlog.get_logger()


def run_recorded(
    store: Store, claim: TaskLease, work: Callable[[], dict[str, Any]], *, so_far: Callable[[], dict[str, Any]] = dict
) -> dict[str, Any]:
    """Do the work and keep a record of it; its notes stand under ``notes`` of what it returns.

    so_far        what work that fails has counted until then

    An attempt that was taken over, handed back or put off leaves no record: the one that ends the work does.
    """
    started = store.clock.now()

    def record(outcome: dict[str, Any], error: str = "") -> None:
        claim.check_stop()  # what failed may have failed because the work was taken over
        run = Run(
            kind=claim.task.kind,
            realm=claim.task.realm,
            subject=claim.task.subject,
            started=started,
            finished=store.clock.now(),
            task=claim.id,
            attempt=claim.attempt,
            counts={name: value for name, value in outcome.items() if name != "notes"},
            notes=tuple(outcome.get("notes", ())),
            error=error,
        )
        try:
            record_run(store, run, fence=claim.check_stop)
        except (FencedError, TaskStoppedError):
            raise
        except HeadwaterError as fault:  # the work itself is done, and its task tells how it ended
            _log.warning("the run was not recorded", task=id_text(claim.id), fault=str(fault))

    before = _realm(store, claim.task)
    try:
        outcome = work()
    except (FencedError, TaskNotReadyError, TaskStoppedError):
        raise
    except RefusedError as refused:
        record(so_far(), str(refused))
        if {_state(before), _state(_realm(store, claim.task))} == {RealmState.ACTIVE, RealmState.INACTIVE}:
            raise UnavailableError(f"the realm was switched meanwhile, try again: {refused}") from refused
        raise
    except CorruptionError as damage:
        record(so_far(), str(damage))
        if _is_going(before, _realm(store, claim.task)):
            raise RefusedError(f"realm {claim.task.realm!r} was purged meanwhile: {damage}") from damage
        raise
    except HeadwaterError as error:
        record(so_far(), str(error))
        raise
    record(outcome)
    return outcome


def open_realm(store: Store, task: Task) -> RealmStore:
    """A user's handle on the task's realm: the one that had this id when the task was asked for, and no later one."""
    rows = RealmRegistry(store).open_realm(task.realm)
    if task.realm_key not in (0, rows.key):
        raise RefusedError(f"realm {task.realm!r} was created anew since this task was asked for: ask again")
    return rows


def open_active_realm(store: Store, task: Task) -> RealmStore:
    """As ``open_realm``, for work that a user could do by hand: in a realm that sleeps by now it waits, which is no failure.

    raises        NotYetError while the realm is INACTIVE; RefusedError in any other state but ACTIVE, or when it was created anew;
                  NotFoundError
    """
    rows = open_realm(store, task)
    realm = RealmRegistry(store).read_realm(task.realm)
    if realm.state is RealmState.INACTIVE and realm.key == rows.key:
        raise TaskNotReadyError(f"realm {task.realm!r} is INACTIVE: this goes on once it is activated")
    rows.check_write()
    return rows


def _realm(store: Store, task: Task) -> Realm | None:
    return None if task.realm == SYSTEM_REALM else RealmRegistry(store).find_realm(task.realm)


def _state(realm: Realm | None) -> RealmState | None:
    return None if realm is None else realm.state


def _is_going(before: Realm | None, now: Realm | None) -> bool:
    """Whether a realm that stood when the work began is being deleted by now: then nothing is damaged that it did not find."""
    if before is None or before.state in _GOING:
        return False
    return now is None or now.key != before.key or now.state in _GOING
