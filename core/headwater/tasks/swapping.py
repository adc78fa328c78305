"""Compare-and-swap of one task object, with an outcome that is known."""

from __future__ import annotations

from collections.abc import Callable

from headwater.errors import BeatenError, UnavailableError, UnknownOutcomeError
from headwater.store import ObjectId, RealmStore, Versioned
from headwater.tasks.task import Task

__all__ = ["change_task", "swap_task"]


def swap_task(rows: RealmStore, seen: Versioned[Task], new: Task, *, is_mine: Callable[[Task], bool]) -> Versioned[Task]:
    """Swap the task that was seen for the new one.

    The database may have taken the swap and not told. It is then repeated until refused, and the object tells whose swap won.

    is_mine       whether a task shows that this swap was applied, also when others have changed it since
    raises        BeatenError when another swap was applied; UnknownOutcomeError when the commit time-out ends first
    """
    unclear: UnknownOutcomeError | None = None
    ends = rows.clock.monotonic() + rows.settings.commit_timeout_seconds
    wait = rows.settings.commit_backoff_seconds
    while True:
        try:
            return rows.update(seen, new)
        except UnknownOutcomeError as error:
            unclear = error
        except BeatenError:
            if unclear is None:
                raise
            found = _find(rows, seen.id)
            if found is not None:
                if is_mine(found.value):
                    return found
                raise
        except UnavailableError:
            if unclear is None:
                raise
        if rows.clock.monotonic() > ends:
            raise unclear
        rows.clock.sleep(wait)
        wait = min(wait * 2, rows.settings.commit_backoff_limit_seconds)


def change_task(rows: RealmStore, task_id: ObjectId, change: Callable[[Versioned[Task]], Task]) -> Versioned[Task]:
    """Apply ``change`` to the task as it is, again after every lost or unclear swap: it must do nothing the second time.

    raises        MissingError; UnknownOutcomeError when the commit time-out ends first
    """
    unclear: UnknownOutcomeError | None = None
    ends = rows.clock.monotonic() + rows.settings.commit_timeout_seconds
    while True:
        try:
            seen = rows.read_versioned(task_id, Task)
            new = change(seen)
            return seen if new == seen.value else rows.update(seen, new)
        except (BeatenError, UnknownOutcomeError, UnavailableError) as fault:
            if isinstance(fault, UnknownOutcomeError):
                unclear = fault
            elif isinstance(fault, UnavailableError) and unclear is None:
                raise
            if rows.clock.monotonic() > ends:
                raise unclear or fault from None
        rows.clock.sleep(rows.settings.commit_backoff_seconds)


def _find(rows: RealmStore, task_id: ObjectId) -> Versioned[Task] | None:
    """The task as it is now; None when the database does not answer."""
    try:
        return rows.read_versioned(task_id, Task)
    except UnavailableError:
        return None
