"""Tasks: what is to be done, is being done or was done, and how it is run in the process that asks for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from headwater.api.api_values import TaskInfo, TaskProgressInfo, progress_of
from headwater.api.store_session import StoreSession
from headwater.errors import RefusedError
from headwater.expiry import run_expiry
from headwater.jobs import (
    COLLECT,
    EXPIRE_SNAPSHOTS,
    EXPORT,
    LOAD,
    PURGE,
    REPORT_FILES,
    RESTORE,
    run_collection,
    run_export,
    run_file_report,
    run_load,
    run_purge,
    run_restore,
)
from headwater.jobs.local_tasks import TaskAudience, run_task_here
from headwater.store import ObjectId, Store, id_of
from headwater.tasks import Task, TaskLease, TaskQueue

Observe = Callable[[TaskProgressInfo], None]
"""Called now and then with how far a task has come."""
TaskBody = Callable[[Store, TaskLease], dict[str, Any]]

BODIES: Mapping[str, TaskBody] = {
    COLLECT: run_collection,
    EXPIRE_SNAPSHOTS: run_expiry,
    EXPORT: run_export,
    LOAD: run_load,
    PURGE: run_purge,
    REPORT_FILES: run_file_report,
    RESTORE: run_restore,
}
"""The kinds of tasks that ``TaskClient.run`` runs; workers run all kinds."""


class TaskClient:
    """One task of a store, by its id of 16 hex digits. Nothing is read before a method is called."""

    def __init__(self, session: StoreSession, task_id: str) -> None:
        self._session = session
        self._id = id_of(task_id)
        self.id = task_id

    def info(self) -> TaskInfo:
        """Read the task; raises NotFoundError where there is none, or it was forgotten."""
        return TaskInfo.of(TaskQueue(self._session.store).read_task(self._id))

    def retry(self) -> TaskInfo:
        """Have a failed or cancelled task done again; raises RefusedError for any other."""
        TaskQueue(self._session.store).retry_task(self._id)
        return self.info()

    def cancel(self) -> TaskInfo:
        """Cancel a waiting task, or ask the worker of a running one to stop; raises RefusedError for one that has ended."""
        TaskQueue(self._session.store).cancel_task(self._id)
        return self.info()

    def run_now(self) -> TaskInfo:
        """Make a waiting task due now, for a worker to take."""
        TaskQueue(self._session.store).run_now(self._id)
        return self.info()

    def run(self, *, progress: Observe | None = None) -> TaskInfo:
        """Do the task in this process, as a worker would, or wait for the worker that has it; returns it when it has ended.

        raises        what its work raises; RefusedError for a kind that only workers do, and for one that failed elsewhere
        """
        kind = self.info().kind
        if kind not in BODIES:
            raise RefusedError(f"a task of kind {kind!r} is done by workers only: start `headwater worker`, or `headwater up`")
        run_here(self._session, self._id, BODIES[kind], progress=progress)
        return self.info()


def run_here(session: StoreSession, task_id: ObjectId, body: TaskBody, *, progress: Observe | None) -> dict[str, Any]:
    """Run a submitted task in this process, and return its outcome; raises what its work raises."""

    def observe(task: Task) -> None:
        made = progress_of(task)
        if progress is not None and made is not None:
            progress(made)

    audience = TaskAudience("Python program", session.warn, observe)
    ended = run_task_here(audience, session.store, task_id, lambda claim: body(session.store, claim))
    observe(ended.value)
    return ended.value.outcome or {}
