"""Jobs of the kinds `export` and `load`, and the file that each names.

A path means a file on one machine, but a task can be claimed on any.
"""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

from headwater.backup import ExportOrder, delete_load_progress, export_realm, is_sweeping, load_realm, readable_from
from headwater.clock import Micros, as_text
from headwater.errors import UnavailableError
from headwater.jobs.run_record import LOAD, list_runs, run_recorded
from headwater.realms import RealmRegistry
from headwater.store import Store
from headwater.tasks import Task, TaskLease, TaskNotReadyError

_LOOK_AGAIN_SECONDS = 10.0


def run_export(store: Store, claim: TaskLease) -> dict[str, Any]:
    """Export the task's realm.

    arguments     `file` and `host`: where to (see ``task_file``); `asOf`: microseconds since 1970, absent for the newest moment that
                  can be read when the attempt begins
    raises        TaskNotReadyError while a collection sweeps, as long as the moment can still be told after that
    """
    task = claim.task
    as_of = task.arguments.get("asOf")
    order = ExportOrder(
        realm=task.realm,
        realm_key=task.realm_key,
        file=task_file(task),
        time=None if as_of is None else Micros(as_of),
        task=claim.id,
        attempt=claim.attempt,
    )
    _check_over(store, order)
    _check_unswept(store, order)
    return run_recorded(
        store, claim, lambda: export_realm(store, order, fence=claim.check_stop, progress=claim.report_progress).as_plain()
    )


def _check_over(store: Store, order: ExportOrder) -> None:
    """Check that the moment is over by this machine's clock, which may be behind that of the machine that accepted the request."""
    if order.time is not None and store.clock.now() < readable_from(order.time, store.settings):
        raise UnavailableError(
            f"realm {order.realm!r} as of {as_text(order.time)} cannot be read yet: the export goes on by itself"
        )


def _check_unswept(store: Store, order: ExportOrder) -> None:
    """Refuse while a collection sweeps: this worker may be the one that has to finish an interrupted sweep."""
    realm = RealmRegistry(store).find_realm(order.realm)
    if realm is None or not is_sweeping(store.rows(realm.id, realm.key)):
        return
    grace = store.settings.reader_grace_seconds - _LOOK_AGAIN_SECONDS
    if order.time is None or store.clock.now() < order.time + round(grace * 1_000_000):
        raise TaskNotReadyError(
            f"a collection of realm {order.realm!r} is sweeping, and nothing can be pinned: the export goes on after it",
            seconds=_LOOK_AGAIN_SECONDS,
        )


def run_load(store: Store, claim: TaskLease) -> dict[str, Any]:
    """Load an archive into the task's realm, which the load creates.

    arguments     `file` and `host`: where it is (see ``task_file``); `inactive`: whether the realm is INACTIVE once it is loaded

    The progress leaves the realm only when the run was recorded: whichever attempt ends the task finds one of the two.
    """
    task = claim.task
    outcome = _recorded_before(store, claim)
    if outcome is None:
        file, is_active = task_file(task), not task.arguments.get("inactive", False)

        def work() -> dict[str, Any]:
            return load_realm(
                store, task.realm, file, is_active=is_active, fence=claim.check_stop, progress=claim.report_progress
            ).as_plain()

        outcome = run_recorded(store, claim, work)
    claim.check_stop()
    delete_load_progress(store, task.realm)
    return outcome


def _recorded_before(store: Store, claim: TaskLease) -> dict[str, Any] | None:
    """The result of an earlier attempt that did everything but record it."""
    if claim.attempt == 1:
        return None
    runs = list_runs(store, kind=LOAD, realm=claim.task.realm)
    return next((dict(run.counts) for run in runs if run.task == claim.id and not run.error), None)


def file_arguments(file: Path, *, is_here: bool) -> dict[str, Any]:
    """The arguments that name a file on this machine, or on the machine of the worker that will do the task."""
    return {"file": str(file.absolute())} | ({"host": socket.gethostname()} if is_here else {})


def task_file(task: Task) -> Path:
    """The file that a task's arguments name.

    raises        UnavailableError where it is one of another machine, whose command line does the task itself
    """
    host = task.arguments.get("host", "")
    if host not in ("", socket.gethostname()):
        raise UnavailableError(
            f"{task.arguments['file']!r} is meant on {host!r}, where {task} was asked for, and this is {socket.gethostname()!r}:"
            " give the same command there again, or with --detach for a file of a worker"
        )
    return Path(str(task.arguments["file"]))
