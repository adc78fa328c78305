"""Tasks of commands: run in this process, or left to a worker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headwater.cli.cli_session import CliSession
from headwater.cli.task_commands import TASK
from headwater.jobs.local_tasks import TaskAudience, run_task_here
from headwater.store import ObjectId, Store
from headwater.tasks import Task, TaskLease, TaskQueue


def run_or_detach(
    session: CliSession,
    store: Store,
    task_id: ObjectId,
    body: Callable[[Store, TaskLease], dict[str, Any]],
    *,
    detach: bool,
) -> dict[str, Any] | None:
    """Run a submitted task here, and return its outcome; or show it and leave it to a worker, and return None."""
    if detach:
        session.show(TASK, TaskQueue(store).read_task(task_id))
        return None
    return run_task_here(_audience(session), store, task_id, lambda claim: body(store, claim)).value.outcome or {}


def _audience(session: CliSession) -> TaskAudience:
    def observe(task: Task) -> None:
        progress = task.progress
        if progress is not None and session.is_interactive:
            of = f" of {progress.total}" if progress.total is not None else ""
            session.warn(f"{task}: {progress.done}{of} {progress.unit}".rstrip())

    return TaskAudience("command line", session.warn, observe)
