"""The work of a task of the kind `purge-table`, and how it is asked for.

The task is submitted first, and the table dropped then: who dies in between leaves a task that finds the table in its catalog.

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
from headwater.maintenance.purging_tables.deleting import PurgedTable, purge_table
from headwater.maintenance.purging_tables.gating import Hold, check_no_realm, hold, places_of
from headwater.maintenance.purging_tables.requests import Wish, first_look_after
from headwater.maintenance.work.kinds import PURGE_TABLE
from headwater.maintenance.work.run_record import open_active_realm, recorded
from headwater.store import ObjectId, Store, id_text
from headwater.tasks import Claim, Progress, Submitted, Task, Tasks, TaskState

__all__ = ["ask_for_purge", "retry_reachable", "run_purge_table"]

_TRIES = 20
_log = structlog.get_logger()


def run_purge_table(store: Store, claim: Claim) -> dict[str, Any]:
    """Delete the files of a dropped table, when no kept commit holds it.

    arguments     as of ``Wish``
    raises        NotYetError while a kept commit may hold it, and while the realm is INACTIVE
    """
    rows = open_active_realm(store, claim.task)
    wish = Wish.of(claim.task)
    result = PurgedTable(table=f"{wish.catalog}/{wish.drops[-1].key}")
    begun = [attempt.progress.unit for attempt in claim.task.attempts[:-1] if attempt.progress is not None]

    def mark(done: int, total: int, unit: str, /, *, is_durable: bool) -> None:
        claim.report(done, total, unit)
        if is_durable:  # the next attempt has to know that manifests may be missing
            claim.heartbeat(Progress(done=done, total=total, unit=unit))
            claim.check()

    def work() -> dict[str, Any]:
        held = hold(rows, wish, fence=claim.check)
        try:
            check_no_realm(store, rows, wish, fence=claim.check)
            purge_table(wish, result, allowed=places_of(rows, wish), check=held.check, mark=mark, begun=begun)
        except RefusedError:
            _let_go(held)
            raise
        _let_go(held)
        return result.as_plain()

    return recorded(store, claim, work, so_far=result.as_plain)


def _let_go(held: Hold) -> None:
    """What stays claimed is released by a collection after the grace."""
    try:
        held.release()
    except FencedError:
        raise
    except HeadwaterError as fault:
        _log.warning("the claims of a purge stay for a while", fault=str(fault))


def ask_for_purge(store: Store, wish: Wish, *, realm: str, realm_key: int) -> Submitted:
    """Submit the task. A waiting one for the same content carries the drops of both from now on; nothing is ever asked for less.

    returns       whether the task is a new one; who takes that back cancels it only while it carries these arguments
    raises        RefusedError for more drops than a task can carry; ConflictError when the active one is at work just now
    """
    tasks, due = Tasks(store), Micros(store.clock.now() + first_look_after(store.settings))
    wish.check_size()
    for _ in range(_TRIES):
        submitted = tasks.submit(
            PURGE_TABLE,
            realm=realm,
            realm_key=realm_key,
            subject=str(wish.content_id),
            arguments=wish.arguments(),
            due=due,
        )
        if submitted.created:
            return submitted
        there = tasks.amend(submitted.id, lambda task: _joined(wish, task), due=due)
        if there.state is TaskState.WAITING:
            return submitted
        if there.is_active:
            break
    raise ConflictError(
        f"task {id_text(submitted.id)} is purging content {wish.content_id} of realm {realm!r} just now: try again when it has ended"
    )


def retry_reachable(tasks: Tasks, task_id: ObjectId) -> Task:
    """Let a purge of a table that has ended wait again, for what can be reached alone.

    raises        MissingError; RefusedError for a task of another kind, or one that has not failed
    """
    task = tasks.read(task_id).value
    if task.kind != PURGE_TABLE:
        raise RefusedError(f"task {id_text(task_id)} ({task}) is no purge of a table: retry it without --reachable-only")
    return tasks.retry(
        task_id, arguments=lambda ended: msgspec.structs.replace(Wish.of(ended), reachable_only=True).arguments()
    )


def _joined(wish: Wish, task: Task) -> dict[str, Any]:
    """What a task is to carry that was asked for an earlier wish, of the same content."""
    joined = wish.joined(Wish.of(task))
    joined.check_size()
    return joined.arguments()
