"""Tasks: what is to be done, is being done or was done, and how it is run in the process that asks for it."""

from __future__ import annotations

from typing import Any

from headwater.api.api_values import RunInfo, TaskInfo, told_id
from headwater.api.store_session import StoreSession
from headwater.api.task_work import TaskBody, load_task_body
from headwater.api.work_progress import Observe, WorkProgress
from headwater.jobs import list_runs, retry_reachable_only
from headwater.jobs.local_tasks import TaskAudience, run_task_here
from headwater.store import ObjectId, id_of
from headwater.tasks import TaskQueue


class TaskClient:
    """One task of a store, by its id of 16 hex digits. Nothing is read before a method is called."""

    def __init__(self, session: StoreSession, task_id: str) -> None:
        self._session = session
        self._id = id_of(task_id)
        self.id = task_id

    def info(self) -> TaskInfo:
        """Read the task; raises NotFoundError where there is none, or it was forgotten."""
        return TaskInfo.of(TaskQueue(self._session.store).read_task(self._id))

    def runs(self) -> list[RunInfo]:
        """The runs of its attempts that are on record, newest first: what each counted."""
        return [RunInfo.of(run) for run in self._session.told(list_runs(self._session.store)) if run.task == self._id]

    def retry(self, *, reachable_only: bool = False) -> TaskInfo:
        """Have a failed or cancelled task done again; raises RefusedError for any other.

        reachable_only  of a purge of a table: purge only what can be reached. Files that only missing or unreadable manifests name are
                        then never deleted
        """
        tasks = TaskQueue(self._session.store)
        if reachable_only:
            retry_reachable_only(tasks, self._id)
        else:
            tasks.retry_task(self._id)
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

        raises        what its work raises; what ``progress`` raises, after the task was handed back; RefusedError for a kind of a later
                      release, and for one that failed elsewhere
        """
        body = load_task_body(self.info().kind, self._session.store.settings)
        run_here(self._session, self._id, body, progress=progress)
        return self.info()

    def __repr__(self) -> str:
        return f"TaskClient({self.id})"


def run_here(session: StoreSession, task_id: ObjectId, body: TaskBody, *, progress: Observe | None) -> dict[str, Any]:
    """Run a submitted task in this process, and return its outcome; raises what its work raises."""
    task = TaskQueue(session.store).read_task(task_id).value
    told = WorkProgress(progress, kind=task.kind, realm=task.realm, subject=task.subject)
    audience = TaskAudience("Python program", session.warn, progress=told.callback)
    ended = run_task_here(audience, session.store, task_id, lambda claim: body(session.store, claim))
    try:
        told.end(ended.value.progress)
    except Exception as fault:  # noqa: BLE001  the work is done, and its outcome is what was asked for
        session.warn(f"what was told of its progress raised {type(fault).__name__}: {fault}; the work was done by then")
    return ended.value.outcome or {}


def run_or_leave(
    session: StoreSession, task_id: ObjectId, body: TaskBody, *, detach: bool, progress: Observe | None
) -> dict[str, Any]:
    """Run a submitted task in this process, and return its outcome; or leave it to a worker, and return its id, as ``task``."""
    return {"task": told_id(task_id)} if detach else run_here(session, task_id, body, progress=progress)
