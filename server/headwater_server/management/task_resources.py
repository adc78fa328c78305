"""Tasks and runs of one realm as resources. They are kept for all realms in one place: only this realm's are shown.

A realm that was purged may have had the same id. Its tasks carry another key, or are older than this one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from headwater.access import Privilege
from headwater.clock import Micros, as_text
from headwater.errors import NotFoundError
from headwater.html_report import ImportGatherer, report_page
from headwater.jobs import IMPORT, Run, list_runs, read_report
from headwater.realms import Realm
from headwater.redaction import without_logins
from headwater.store import ObjectId, Versioned, id_of, id_text
from headwater.tasks import FollowUpTask, Task, TaskAttempt, TaskProgress, TaskQuery, TaskQueue, TaskState
from headwater_server.call import Answer, Call
from headwater_server.management.listed_pages import page_by_place
from headwater_server.management.managed_realm import ManagedRealm, realm_under_right
from headwater_server.management.realm_resources import time_or_none
from headwater_server.management.resource_shapes import (
    AttemptOfTask,
    FollowUp,
    ProgressOfTask,
    RunList,
    RunResource,
    RunsQuery,
    TaskList,
    TaskResource,
    TasksQuery,
    TaskSubmission,
)
from headwater_server.management.route_parts import CHANGE_ERRORS, READ_ERRORS, REALM_PATH
from headwater_server.route_table import Route

_TASKS_PATH, _RUNS_PATH = f"{REALM_PATH}/tasks", f"{REALM_PATH}/runs"


_HTML = "text/html; charset=utf-8"
_SANDBOXED = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox",
    "X-Content-Type-Options": "nosniff",
}
"""Of a page that stands for itself: it runs nothing and loads nothing, wherever it is shown."""
_ROWS_LIMIT = 200_000
"""Rows of an import that a page is made of."""


def task_routes() -> list[Route]:
    """Make the routes of tasks and runs."""
    return [
        Route(
            method="GET",
            template=_TASKS_PATH,
            handler=answer_tasks,
            name="listTasks",
            needs="TASK_READ on the realm",
            summary="List the tasks of a realm: the active ones as they are due, then those that ended.",
            query=TasksQuery,
            answers={200: TaskList},
            errors=READ_ERRORS,
        ),
        Route(
            method="POST",
            template=_TASKS_PATH,
            handler=answer_task_submission,
            name="submitTask",
            needs="TASK_MANAGE on the realm",
            summary="Ask for a task now; 200 with the one that is active already.",
            writes=True,
            body=TaskSubmission,
            answers={200: TaskResource, 201: TaskResource},
            errors=CHANGE_ERRORS,
        ),
        Route(
            method="GET",
            template=f"{_TASKS_PATH}/{{task}}",
            handler=answer_task,
            name="getTask",
            needs="TASK_READ on the realm",
            summary="Read a task of a realm.",
            answers={200: TaskResource},
            errors=READ_ERRORS,
        ),
        Route(
            method="POST",
            template=f"{_TASKS_PATH}/{{task}}/cancel",
            handler=answer_task_cancelling,
            name="cancelTask",
            needs="TASK_MANAGE on the realm",
            summary="Cancel a waiting task; ask the worker of a running one to stop.",
            writes=True,
            answers={200: TaskResource},
            errors=CHANGE_ERRORS,
        ),
        Route(
            method="POST",
            template=f"{_TASKS_PATH}/{{task}}/retry",
            handler=answer_task_retry,
            name="retryTask",
            needs="TASK_MANAGE on the realm",
            summary="Let a failed or cancelled task wait again, due now.",
            writes=True,
            answers={200: TaskResource},
            errors=CHANGE_ERRORS,
        ),
        Route(
            method="POST",
            template=f"{_TASKS_PATH}/{{task}}/run-now",
            handler=answer_task_run,
            name="runTaskNow",
            needs="TASK_MANAGE on the realm",
            summary="Let a waiting task be due now; a running one is left alone.",
            writes=True,
            answers={200: TaskResource},
            errors=CHANGE_ERRORS,
        ),
        Route(
            method="GET",
            template=_RUNS_PATH,
            handler=answer_runs,
            name="listRuns",
            needs="TASK_READ on the realm",
            summary="List what the tasks of a realm did, newest first.",
            query=RunsQuery,
            answers={200: RunList},
            errors=READ_ERRORS,
        ),
        Route(
            method="GET",
            template=f"{_RUNS_PATH}/{{run}}",
            handler=answer_run,
            name="getRun",
            needs="TASK_READ on the realm",
            summary="Read what one attempt of a task did.",
            answers={200: RunResource},
            errors=READ_ERRORS,
        ),
        Route(
            method="GET",
            template=f"{_RUNS_PATH}/{{run}}/report",
            handler=answer_run_report,
            name="getRunReport",
            needs="TASK_READ on the realm; for each table of an import also CATALOG_MANAGE_METADATA on its catalog",
            summary="Read what one attempt of a task did as a page of HTML with charts, which loads no other file.",
            answers={200: bytes},
            answer_type=_HTML,
            errors=READ_ERRORS,
        ),
    ]


def answer_tasks(call: Call[TasksQuery, None]) -> Answer:
    """List the tasks of a realm."""
    managed = realm_under_right(call, Privilege.TASK_READ)
    realm, state = managed.read_realm(), call.query.state
    asked = TaskQuery(realm=realm.id, kind=call.query.kind, state=None if state is None else TaskState(state))
    tasks = [task for task in TaskQueue(managed.store).list_tasks(**asked) if _is_task_of(realm, task.value)]
    page, token = page_by_place(tasks, call.query, name=lambda task: id_text(task.id))
    return Answer(body=TaskList(list(map(task_resource, page)), token))


def answer_task_submission(call: Call[None, TaskSubmission]) -> Answer:
    """Ask for a task, due now; one that is active already is answered as it is."""
    managed = realm_under_right(call, Privilege.TASK_MANAGE)
    realm, queue = managed.read_realm(), TaskQueue(managed.store)
    managed.rows.check_write()  # what is not ACTIVE is not served
    submitted = queue.submit_task(call.body.kind, realm=realm.id, realm_key=realm.key)
    queue.run_now(submitted.id)
    return Answer(201 if submitted.created else 200, task_resource(queue.read_task(submitted.id)))


def answer_task(call: Call[None, None]) -> Answer:
    """Read a task."""
    return Answer(body=task_resource(_read_task(realm_under_right(call, Privilege.TASK_READ), call.path["task"])))


def answer_task_cancelling(call: Call[None, None]) -> Answer:
    """Cancel a waiting task; ask the worker of a running one to stop."""
    managed = realm_under_right(call, Privilege.TASK_MANAGE)
    queue, task = TaskQueue(managed.store), _read_task(managed, call.path["task"])
    queue.cancel_task(task.id)
    return Answer(body=task_resource(queue.read_task(task.id)))


def answer_task_retry(call: Call[None, None]) -> Answer:
    """Let a failed or cancelled task wait again; raises ConflictError where another one is active in its place."""
    return _steered(call, TaskQueue.retry_task)


def answer_task_run(call: Call[None, None]) -> Answer:
    """Let a waiting task be due now."""
    return _steered(call, TaskQueue.run_now)


def answer_runs(call: Call[RunsQuery, None]) -> Answer:
    """List the runs of a realm's tasks."""
    managed = realm_under_right(call, Privilege.TASK_READ)
    runs = list(_runs(managed, kind=call.query.kind))
    page, token = page_by_place(runs, call.query, name=_run_id)
    return Answer(body=RunList(list(map(run_resource, page)), token))


def answer_run(call: Call[None, None]) -> Answer:
    """Read a run."""
    return Answer(body=run_resource(_read_run(realm_under_right(call, Privilege.TASK_READ), call.path["run"])))


def answer_run_report(call: Call[None, None]) -> Answer:
    """Read a run as a page; of an import with what became of each table, where that is kept."""
    managed = realm_under_right(call, Privilege.TASK_READ)
    run, now = _read_run(managed, call.path["run"]), managed.store.clock.now()
    page = _import_page(managed, run, now) if run.kind == IMPORT else None
    told = msgspec.structs.replace(run, error=_shown(run.error), notes=tuple(_shown(list(run.notes))))
    text = page or report_page([told], store=f"realm {managed.id}", now=now)
    return Answer(body=text.encode(), headers=_SANDBOXED, media_type=_HTML)


def _import_page(managed: ManagedRealm, run: Run, now: Micros) -> str | None:
    """The page of an import; None where its rows are not kept any more, are more than a page should have, or name tables that the caller
    may know nothing of.
    """
    catalog = run.subject.partition("/")[0]
    definition = managed.catalogs.find_catalog(catalog)
    if run.task is None or definition is None or not managed.is_allowed(Privilege.CATALOG_MANAGE_METADATA, definition):
        return None
    gatherer = ImportGatherer()
    try:
        for number, row in enumerate(read_report(managed.store, run.task, run.attempt)):
            if number == _ROWS_LIMIT:
                return None
            gatherer.add(msgspec.structs.replace(row, message=_shown(row.message)))
    except NotFoundError:
        return None
    about = [f"realm {managed.id}", f"import of {as_text(run.started)}"]
    return gatherer.render_page(catalog, about, now=now)


def task_resource(seen: Versioned[Task]) -> TaskResource:
    task = seen.value
    return TaskResource(
        id=id_text(seen.id),
        kind=task.kind,
        subject=task.subject,
        arguments=_shown(task.arguments),
        state=task.state.value,
        stop_requested=task.stop_requested,
        attempt=task.attempt,
        failures=task.failures,
        max_attempts=task.max_attempts,
        owner=task.owner,
        progress=_progress(task.current_progress),
        created=as_text(task.created),
        due=as_text(task.due),
        finished=time_or_none(task.finished),
        retried=time_or_none(task.retried),
        after=None if task.after is None else id_text(task.after),
        error=_shown(task.error) or None,
        outcome=_shown(task.outcome),
        follow_up=_follow_up(task.follow_up),
        attempts=list(map(_attempt, task.attempts)),
    )


def run_resource(run: Run) -> RunResource:
    return RunResource(
        id=_run_id(run),
        kind=run.kind,
        subject=run.subject,
        started=as_text(run.started),
        finished=as_text(run.finished),
        seconds=round((run.finished - run.started) / 1_000_000, 1),
        error=_shown(run.error),
        counts=_shown(run.counts),
        notes=_shown(list(run.notes)),
        task=None if run.task is None else id_text(run.task),
        attempt=run.attempt,
    )


def _read_task(managed: ManagedRealm, text: str) -> Versioned[Task]:
    """A task of the realm; raises NotFoundError in the same words for another realm's and for none."""
    missing = NotFoundError(f"realm {managed.id!r} has no task {text[:200]!r}")
    realm, task_id = managed.read_realm(), id_of(text)
    try:
        task = TaskQueue(managed.store).read_task(task_id)
    except NotFoundError:
        raise missing from None
    if not _is_task_of(realm, task.value):
        raise missing
    return task


def _steered(call: Call[None, None], step: Callable[[TaskQueue, ObjectId], Task]) -> Answer:
    managed = realm_under_right(call, Privilege.TASK_MANAGE)
    queue, task = TaskQueue(managed.store), _read_task(managed, call.path["task"])
    step(queue, task.id)
    return Answer(body=task_resource(queue.read_task(task.id)))


def _read_run(managed: ManagedRealm, wanted: str) -> Run:
    run = next((run for run in _runs(managed) if _run_id(run) == wanted), None)
    if run is None:
        raise NotFoundError(f"realm {managed.id!r} has no run {wanted[:200]!r}: only the last ones of a store are kept")
    return run


def _is_task_of(realm: Realm, task: Task) -> bool:
    is_of_this_key = task.realm_key == realm.key if task.realm_key else task.created >= realm.created
    return task.realm == realm.id and is_of_this_key


def _runs(managed: ManagedRealm, *, kind: str | None = None) -> Iterator[Run]:
    realm = managed.read_realm()
    return (run for run in list_runs(managed.store, realm=realm.id, kind=kind) if run.started >= realm.created)


def _run_id(run: Run) -> str:
    return f"{id_text(run.task or ObjectId(run.started))}-{run.attempt}"


def _attempt(attempt: TaskAttempt) -> AttemptOfTask:
    return AttemptOfTask(
        number=attempt.number,
        owner=attempt.owner,
        started=as_text(attempt.started),
        ended=time_or_none(attempt.ended),
        outcome=attempt.outcome.value,
        progress=_progress(attempt.progress),
        error=_shown(attempt.error) or None,
    )


def _progress(progress: TaskProgress | None) -> ProgressOfTask | None:
    return None if progress is None else ProgressOfTask(progress.done, progress.total, progress.unit)


def _follow_up(follow_up: FollowUpTask | None) -> FollowUp | None:
    return None if follow_up is None else FollowUp(follow_up.kind, follow_up.subject)


def _shown(value: Any) -> Any:
    """Plain data without the logins that people wrote into its URLs."""
    if isinstance(value, str):
        return without_logins(value)
    if isinstance(value, dict):
        return {name: _shown(inner) for name, inner in value.items()}
    return [_shown(inner) for inner in value] if isinstance(value, list | tuple) else value
