"""The job of the kind `purge-table`, and how it is requested.

The task is submitted before the table is dropped: a client that dies in between leaves a task that finds the table in its catalog.

    submit            not due before a claim of now could be released
    claim             the table's own, anew: so there is one, and the collector releases it when no kept commit holds the table
    drop              by a commit
"""

from __future__ import annotations

from typing import Any

import msgspec
import structlog

from headwater.clock import Micros
from headwater.errors import ConflictError, FencedError, HeadwaterError, RefusedError
from headwater.jobs.run_record import PURGE_TABLE, open_active_realm, run_recorded
from headwater.purge.location_lock import LocationLock, allowed_places, check_no_realm, lock_locations
from headwater.purge.table_purge import PurgedTable, PurgeRequest, first_look_after, purge_table
from headwater.store import ObjectId, Store, id_text
from headwater.tasks import SubmittedTask, Task, TaskLease, TaskProgress, TaskQueue, TaskState

_TRIES = 20
_log = structlog.get_logger()


def run_purge_table(store: Store, claim: TaskLease) -> dict[str, Any]:
    """Delete the files of a dropped table, when no kept commit holds it.

    arguments     see ``PurgeRequest``
    raises        TaskNotReadyError while a kept commit may hold it, and while the realm is INACTIVE
    """
    rows = open_active_realm(store, claim.task)
    wish = PurgeRequest.from_task(claim.task)
    result = PurgedTable(table=f"{wish.catalog}/{wish.drops[-1].key}")
    begun = [attempt.progress.unit for attempt in claim.task.attempts[:-1] if attempt.progress is not None]

    def mark(done: int, total: int, unit: str, /, *, is_durable: bool) -> None:
        claim.report_progress(done, total, unit)
        if is_durable:  # the next attempt must know that manifests may be missing
            claim.heartbeat(TaskProgress(done=done, total=total, unit=unit))
            claim.check_stop()

    def work() -> dict[str, Any]:
        held = lock_locations(rows, wish, fence=claim.check_stop)
        try:
            check_no_realm(store, rows, wish, fence=claim.check_stop)
            purge_table(wish, result, allowed=allowed_places(rows, wish), check=held.renew, mark=mark, begun=begun)
        except RefusedError:
            _let_go(held)
            raise
        _let_go(held)
        return result.as_plain()

    return run_recorded(store, claim, work, so_far=result.as_plain)


def _let_go(held: LocationLock) -> None:
    """Release the lock. What stays claimed is released by a collection after the grace."""
    try:
        held.unlock()
    except FencedError:
        raise
    except HeadwaterError as fault:
        _log.warning("the claims of a purge stay for a while", fault=str(fault))


def request_table_purge(store: Store, wish: PurgeRequest, *, realm: str, realm_key: int) -> SubmittedTask:
    """Submit the task. A waiting task for the same content gets the drops of both requests; a request never reduces what is deleted.

    returns       whether the task is a new one; to take it back, cancel it only while it carries these arguments
    raises        RefusedError for more drops than a task can carry; ConflictError when the active one is running
    """
    tasks, due = TaskQueue(store), Micros(store.clock.now() + first_look_after(store.settings))
    wish.check_size()
    for _ in range(_TRIES):
        submitted = tasks.submit_task(
            PURGE_TABLE,
            realm=realm,
            realm_key=realm_key,
            subject=str(wish.content_id),
            arguments=wish.arguments(),
            due=due,
        )
        if submitted.created:
            return submitted
        there = tasks.amend_task(submitted.id, lambda task: _joined(wish, task), due=due)
        if there.state is TaskState.WAITING:
            return submitted
        if there.is_active:
            break
    raise ConflictError(
        f"task {id_text(submitted.id)} is purging content {wish.content_id} of realm {realm!r} just now: try again when it has ended"
    )


def retry_reachable_only(tasks: TaskQueue, task_id: ObjectId) -> Task:
    """Requeue a failed purge of a table, limited to the files that can still be reached.

    raises        NotFoundError; RefusedError for a task of another kind, or one that has not failed
    """
    task = tasks.read_task(task_id).value
    if task.kind != PURGE_TABLE:
        raise RefusedError(f"task {id_text(task_id)} ({task}) is no purge of a table: retry it without --reachable-only")
    return tasks.retry_task(
        task_id, arguments=lambda ended: msgspec.structs.replace(PurgeRequest.from_task(ended), reachable_only=True).arguments()
    )


def _joined(wish: PurgeRequest, task: Task) -> dict[str, Any]:
    """The arguments of a task that serves this request and an earlier one for the same content."""
    joined = wish.joined(PurgeRequest.from_task(task))
    joined.check_size()
    return joined.arguments()
