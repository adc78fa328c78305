"""Tasks of commands: run in this process, or left to a worker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headwater.cli.cli_session import CliSession
from headwater.cli.task_commands import TASK
from headwater.jobs.local_tasks import TaskAudience, run_task_here
from headwater.store import ObjectId, Store, id_text
from headwater.tasks import TaskLease, TaskQueue


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
        task = TaskQueue(store).read_task(task_id)
        session.show_done(TASK, task, f"task {id_text(task_id)} ({task.value}) is left to a worker")
        return None
    title = str(TaskQueue(store).read_task(task_id).value)
    with session.progress(title) as progress:
        audience = TaskAudience("command line", session.warn, progress=progress)
        return run_task_here(audience, store, task_id, lambda claim: body(store, claim)).value.outcome or {}
