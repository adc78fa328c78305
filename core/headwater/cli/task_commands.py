"""``headwater task``: tasks that run, wait or have ended, one task with the story of its attempts, and figures by kind.

With --watch the list is a table that is redrawn, or lines of changes.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import click
from click.core import ParameterSource

from headwater.api.task_figures import TaskFiguresInfo, figures_by_kind
from headwater.cli.cli_session import CliSession, check_realm_known, identifier
from headwater.cli.command_options import ID, TIME, limit_option, live_names
from headwater.clock import Clock, Micros
from headwater.console import (
    DURATION,
    ResultView,
    ViewField,
    count_text,
    csv_text,
    duration_field,
    list_of,
    prints,
    time_field,
    yaml_text,
)
from headwater.errors import UnavailableError
from headwater.jobs import TASK_KINDS, retry_reachable_only
from headwater.outcome_text import outcome_sentence
from headwater.store import ObjectId, ReadableRows, Versioned, id_text
from headwater.tasks import (
    AttemptEnd,
    FollowUpTask,
    Task,
    TaskAttempt,
    TaskProgress,
    TaskQuery,
    TaskQueue,
    TaskState,
)
from headwater.terminal import is_terminal, progress_words

T = TypeVar("T")
UNTOUCHED_SECONDS = 60
"""Seconds that a due task may wait before the page advises to look at the workers."""


@dataclass(frozen=True, slots=True)
class TaskPage:
    """A task as read at one time."""

    task: Versioned[Task]
    now: Micros


def _progress(progress: TaskProgress | None) -> dict[str, Any] | None:
    return None if progress is None else {"done": progress.done, "total": progress.total, "unit": progress.unit}


def _attempt(attempt: TaskAttempt) -> dict[str, Any]:
    return {
        "number": attempt.number,
        "owner": attempt.owner,
        "started": time_field(attempt.started),
        "ended": time_field(attempt.ended),
        "outcome": attempt.outcome.value,
        "seconds": None if attempt.ended is None else (attempt.ended - attempt.started) / 1_000_000,
        "progress": _progress(attempt.progress),
        "error": attempt.error or None,
    }


def _follow_up(follow_up: FollowUpTask | None) -> dict[str, Any] | None:
    return None if follow_up is None else {"kind": follow_up.kind, "realm": follow_up.realm, "subject": follow_up.subject}


def next_step(row: Versioned[Task], now: Micros | None = None) -> str:
    """Returns one sentence on what happens next to a task.

    now           the time at which the sentence is read; None: it must hold at any time
    """
    task = row.value
    left = task.max_attempts - task.failures
    match task.state:
        case TaskState.WAITING:
            begins = f"attempt {task.attempt + 1} begins when a worker is free" + _when_due(task, now)
            return f"{begins}; {count_text(left, 'attempt')} may fail before the task is given up"
        case TaskState.RUNNING if task.stop_requested:
            return "its worker stops it at the next check, and then it is CANCELLED"
        case TaskState.RUNNING:
            return f"{task.owner} goes on; were it to fall silent, another worker takes over" + (
                "" if left > 1 else ", or the task is given up: it is its last attempt"
            )
        case TaskState.SUCCEEDED if task.follow_up is not None:
            return f"{task.follow_up.kind} of realm {task.follow_up.realm!r} follows, unless it was asked for already"
        case TaskState.SUCCEEDED:
            return "nothing: it is done"
    return f"nothing, until `headwater task retry {id_text(row.id)}`"


def _when_due(task: Task, now: Micros | None) -> str:
    if now is None or task.due > now:
        return f", not before {time_field(task.due)}"
    waited = (now - task.due) / 1_000_000
    if waited < UNTOUCHED_SECONDS:
        return ""
    return f": it is due for {duration_field(round(waited))}, so look whether a worker is there (`headwater worker`)"


TASK: ResultView[Versioned[Task]] = ResultView(
    "task",
    "tasks",
    (
        ViewField("id", "the task's id", header="TASK", form=identifier),
        ViewField("kind", "what is to be done", "value.kind", "KIND"),
        ViewField("realm", "the realm's id", "value.realm", "REALM"),
        ViewField(
            "realmKey",
            "the key that the realm had when the task was submitted",
            lambda t: identifier(t.value.realm_key or None),
        ),
        ViewField("subject", "what within the realm, such as a catalog", "value.subject", "SUBJECT"),
        ViewField("arguments", "names and ids", "value.arguments"),
        ViewField("state", "WAITING, RUNNING, SUCCEEDED, FAILED or CANCELLED", "value.state", "STATE"),
        ViewField("stopRequested", "whether it was asked to stop", "value.stop_requested"),
        ViewField("attempt", "number of the last attempt; 0: none yet", "value.attempt", "ATTEMPT"),
        ViewField("failures", "attempts that failed or were lost", "value.failures", "FAILURES"),
        ViewField("maxAttempts", "failures until it is FAILED", "value.max_attempts"),
        ViewField("owner", "who does it now", "value.owner"),
        ViewField(
            "progress",
            "how far it is; null: no progress reported yet, or it has ended",
            "value.current_progress",
            "PROGRESS",
            _progress,
            inside={".done": "so many", ".total": "of so many; null: not known yet", ".unit": "of these"},
        ),
        ViewField("next", "what comes next, for people to read", next_step),
        ViewField("created", "when it was submitted", "value.created", "CREATED", time_field),
        ViewField("after", "the task that it follows up; null: none", "value.after", form=identifier),
        ViewField("retried", "when a person let it wait again, after it had ended", "value.retried", form=time_field),
        ViewField("due", "not done before", "value.due", "DUE", time_field),
        ViewField("finished", "when it ended", "value.finished", "FINISHED", time_field),
        ViewField("error", "why the last attempt ended, unless it succeeded", lambda t: t.value.error or None),
        ViewField("outcome", "what came out, by kind of task", "value.outcome"),
        ViewField(
            "followUp",
            "the task that is submitted when this one has succeeded",
            "value.follow_up",
            form=_follow_up,
            inside={".kind": "its kind", ".realm": "its realm", ".subject": "its subject"},
        ),
        ViewField(
            "attempts",
            "the last attempts, oldest first",
            "value.attempts",
            form=list_of(_attempt),
            inside={
                "[].number": "1 for the first",
                "[].owner": "who made it",
                "[].started": "when it began",
                "[].ended": "when it ended; null: it goes on",
                "[].outcome": "RUNNING, SUCCEEDED, FAILED, LOST, HANDED_BACK, PUT_OFF or CANCELLED",
                "[].seconds": "how long it took; null: it goes on",
                "[].progress": "how far it was at its end; null: no progress was reported",
                "[].error": "why it ended, unless it succeeded",
            },
        ),
    ),
)


def story(page: TaskPage) -> list[dict[str, Any]]:
    """Returns the known history of a task, oldest first, and what happens next."""
    return [event for event in _events(page) if event]


def _events(page: TaskPage) -> Iterator[dict[str, Any]]:
    task = page.task.value
    follows = f"follows up {id_text(task.after)}" if task.after is not None else None
    yield _event(task.created, "submitted", why=follows)
    free = task.created
    attempts = task.attempts
    retried = task.retried
    if attempts and attempts[0].number > 1 and attempts[0].outcome is not AttemptEnd.PUT_OFF:
        yield _event(None, f"{count_text(attempts[0].number - 1, 'attempt')} before these, no longer kept")
    for attempt in attempts:
        if retried is not None and retried <= attempt.started:
            yield _event(retried, "let wait again by a person")
            free, retried = max(free, retried), None
        yield _attempt_event(attempt, waited=attempt.started - free, page=page)
        free = attempt.ended or page.now
    if retried is not None:
        yield _event(retried, "let wait again by a person")
    yield _ending(task)
    yield _event(None, "next", why=next_step(page.task, page.now))


def _attempt_event(attempt: TaskAttempt, *, waited: int, page: TaskPage) -> dict[str, Any]:
    goes_on = attempt.outcome is AttemptEnd.RUNNING
    took = ((page.now if goes_on else attempt.ended or attempt.started) - attempt.started) / 1_000_000
    progress = page.task.value.progress if goes_on else attempt.progress
    return _event(
        attempt.started,
        f"attempt {attempt.number} " + _SAID[attempt.outcome],
        waited=_short(max(waited, 0) / 1_000_000),
        took=_short(max(took, 0)),
        who=attempt.owner,
        progress=_progress_text(progress),
        why=attempt.error or None,
    )


def _ending(task: Task) -> dict[str, Any]:
    match task.state:
        case TaskState.FAILED if task.failures < task.max_attempts:
            return _event(task.finished, "given up: trying again would not have helped")
        case TaskState.FAILED:
            return _event(task.finished, f"given up after {count_text(task.failures, 'attempt')} that failed or were lost")
        case TaskState.CANCELLED:
            return _event(task.finished, "cancelled")
    return {}


def _event(at: Micros | None, what: str, **more: Any) -> dict[str, Any]:
    return {"time": time_field(at), "what": what} | {name: more.get(name) for name in _COLUMNS}


def _short(seconds: float) -> str | None:
    """A duration for people: milliseconds below ten seconds, seconds above."""
    return duration_field(round(seconds, 3) if seconds < 10 else round(seconds))


def _progress_text(progress: TaskProgress | None) -> str | None:
    if progress is None:
        return None
    return progress_words(progress.done, progress.total, progress.unit)


def _how_it_goes(seen: Versioned[Task]) -> str | None:
    task = seen.value
    if task.is_active:
        return _progress_text(task.progress)
    return outcome_sentence(task.kind, task.outcome or {}) or None


_COLUMNS = ("waited", "took", "who", "progress", "why")
_SAID = {
    AttemptEnd.RUNNING: "runs",
    AttemptEnd.SUCCEEDED: "succeeded",
    AttemptEnd.FAILED: "failed",
    AttemptEnd.LOST: "was lost",
    AttemptEnd.HANDED_BACK: "was handed back",
    AttemptEnd.PUT_OFF: "was put off",
    AttemptEnd.CANCELLED: "was cancelled",
}


def _on_page(field: ViewField[Versioned[Task]]) -> ViewField[TaskPage]:
    return ViewField(field.name, field.about, lambda page: field.read(page.task))


_IN_THE_STORY = ("next", "attempts", "error", "owner", "created", "finished", "after", "retried")

TASK_LINES: ResultView[Versioned[Task]] = ResultView(
    "task",
    "tasks",
    tuple(
        replace(field, source=_how_it_goes, form=lambda text: text) if field.name == "progress" else field
        for field in TASK.fields
    ),
)
"""The progress as text, for tables; of a task that has ended what came of it."""

TASK_PAGE: ResultView[TaskPage] = ResultView(
    "task page",
    "task pages",
    (
        *(_on_page(field) for field in TASK.fields if field.name not in _IN_THE_STORY),
        ViewField("story", "all that happened, oldest first", story),
    ),
)
"""The view of one task for people: its history replaces the fields that it includes."""

TASK_FIGURES: ResultView[TaskFiguresInfo] = ResultView(
    "task figures",
    "task figures",
    (
        ViewField("kind", "of these tasks", header="KIND"),
        ViewField("waiting", "active, and no worker runs them now", header="WAITING"),
        ViewField("running", "being done", header="RUNNING"),
        ViewField("due", "waiting though they are due", header="DUE"),
        ViewField(
            "oldestDueSeconds",
            "how long the one has waited that is due longest; null: none is due",
            "oldest_due_seconds",
            "OLDEST DUE",
        ),
        ViewField("unreadable", "tasks that are listed and cannot be read", header="UNREADABLE"),
        ViewField("retries", "failed or lost attempts of active tasks", header="RETRIES"),
        ViewField("deadLetters", "given up, and nothing has followed them", "dead_letters", "DEAD LETTERS"),
        ViewField(
            "meanSeconds",
            "mean duration of the last that succeeded, one a subject; null: none did",
            "mean_seconds",
            "MEAN SECONDS",
        ),
        ViewField("longestSeconds", "the longest of these durations", "longest_seconds", "LONGEST"),
    ),
)


def watch(
    session: CliSession,
    view: ResultView[T],
    look: Callable[[], Sequence[T]],
    *,
    clock: Clock,
    every_seconds: float,
    for_seconds: float | None,
) -> None:
    """Show rows and their changes until interrupted or until the time is over. Warn of an unavailable store, and wait for it."""
    ends = None if for_seconds is None else clock.monotonic() + for_seconds
    screen = _Screen(session, view)
    while True:
        try:
            screen.show(look())
        except UnavailableError as away:
            session.warn(str(away))
        if ends is not None and clock.monotonic() + every_seconds > ends:
            return
        clock.sleep(every_seconds)


class _Screen(Generic[T]):
    """The text that was shown last."""

    def __init__(self, session: CliSession, view: ResultView[T]) -> None:
        self._session = session
        self._view = view
        self._shown: dict[str, dict[str, Any]] | None = None

    def show(self, items: Sequence[T]) -> None:
        rows = list(map(self._view.data, items))
        named = {str(row[self._view.fields[0].name]): row for row in rows}
        if named == self._shown:
            return
        before, self._shown = self._shown or {}, named
        if self._session.is_text and is_terminal(sys.stdout):
            click.clear()
            click.echo("\n".join(self._view.columns(rows, self._session.layout)))
            return
        self._print([row for name, row in named.items() if before.get(name) != row], is_first=not before)

    def _print(self, changed: Sequence[dict[str, Any]], *, is_first: bool) -> None:
        session = self._session
        if session.quiet or session.output == "name":
            click.echo("\n".join(name for row in changed for name in self._view.names(row)))
        elif session.output == "csv":
            heads = [field.name for field in self._view.fields]
            click.echo(csv_text(changed, heads, has_heads=is_first and not session.no_headers), nl=False)
        elif session.output in ("json", "yaml"):
            for row in changed:
                is_json = session.output == "json"
                click.echo(json.dumps(row, ensure_ascii=False) if is_json else "---\n" + yaml_text(row).rstrip())
        elif changed:
            layout = session.layout if is_first else replace(session.layout, has_heads=False)
            click.echo("\n".join(self._view.columns(changed, layout, is_wide=session.output == "wide")))


task = click.Group("task", help="List, retry, cancel and run the tasks of a store.")
_task_argument = click.argument("task_id", metavar="TASK", type=ID, shell_complete=live_names("complete_tasks"))


@task.command(name="list")
@click.option("--state", type=click.Choice([state.value for state in TaskState]), help="Only tasks in this state.")
@click.option("--kind", type=click.Choice(TASK_KINDS), help="Only tasks of this kind.")
@click.option("--realm", help="Only tasks of this realm.", shell_complete=live_names("complete_realms"))
@click.option("--subject", help="Only tasks about this, within their realm.")
@click.option("--since", type=TIME, metavar="TIME", help="Only tasks submitted then or later; 2h is as long ago.")
@click.option("--older-than", type=DURATION, metavar="DURATION", help="Only tasks submitted longer ago, such as 7d.")
@limit_option(100)
@click.option(
    "--every",
    type=DURATION,
    metavar="DURATION",
    default="2s",
    show_default=True,
    help="With --watch: the interval between two looks.",
)
@click.option(
    "--for",
    "lasts",
    type=DURATION,
    metavar="DURATION",
    help="With --watch: end after this time; default is when interrupted.",
)
@click.option("--watch", "is_watching", is_flag=True, help="Keep watching, and show what changes.")
@prints(TASK, many=True)
def list_tasks_command(
    session: CliSession, /, limit: int, every: float, lasts: float | None, is_watching: bool, **filters: Any
) -> None:
    """List tasks: the active ones as they are due, then those that ended, the newest first.

    With --watch a terminal shows the table as it is now; elsewhere, and as JSON or YAML, each task is printed when it changes.
    """
    if not is_watching:
        _refuse_options(every="--every", lasts="--for")
    with session.open_store() as store:
        tasks = TaskQueue(store)

        def look() -> ReadableRows[Versioned[Task]]:
            return tasks.list_tasks(limit=limit, **_asked(filters, store.clock.now()))

        realm = filters["realm"]
        if realm is not None and not tasks.list_tasks(limit=1, realm=realm):
            check_realm_known(store, realm)

        view = TASK_LINES if session.is_text else TASK
        if is_watching:
            watch(session, view, look, clock=store.clock, every_seconds=every, for_seconds=lasts)
        else:
            listed = look()
            session.show_all(view, listed)
            session.warn_of(listed)


def _refuse_options(**options: str) -> None:
    """Refuse options of ``--watch`` that were given without it."""
    ctx = click.get_current_context()
    for name, option in options.items():
        if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"{option} goes with --watch: without it, the tasks are shown once", ctx)


def _asked(filters: dict[str, Any], now: Micros) -> TaskQuery:
    def ago(seconds: float | None) -> Micros | None:
        return None if seconds is None else Micros(now - round(seconds * 1_000_000))

    return TaskQuery(
        state=TaskState(filters["state"]) if filters["state"] else None,
        kind=filters["kind"],
        realm=filters["realm"],
        subject=filters["subject"],
        since=filters["since"],
        before=ago(filters["older_than"]),
    )


@task.command(name="figures")
@prints(TASK_FIGURES, many=True)
def task_figures_command(session: CliSession) -> None:
    """Show for each kind how many tasks wait, run, are late and were given up, and how long they take."""
    with session.open_store() as store:
        rows = figures_by_kind(TaskQueue(store).read_figures())
    session.show_all(TASK_FIGURES, rows)


@task.command(name="show")
@_task_argument
@prints(TASK)
def show_task_command(session: CliSession, task_id: ObjectId) -> None:
    """Show everything about one task: what it is, the story of its attempts, and what comes next."""
    with session.open_store() as store:
        page = TaskPage(TaskQueue(store).read_task(task_id), store.clock.now())
    if session.is_text:
        session.show(TASK_PAGE, page)
    else:
        session.show(TASK, page.task)


@task.command(name="retry")
@_task_argument
@click.option(
    "--reachable-only",
    is_flag=True,
    help="Of a purge of a table: purge only what can be reached. Files that only missing or unreadable manifests name are then never"
    " deleted.",
)
@prints(TASK)
def retry_task_command(session: CliSession, task_id: ObjectId, reachable_only: bool) -> None:
    """Retry a failed or cancelled task."""
    _steer(session, task_id, retry_reachable_only if reachable_only else TaskQueue.retry_task)


@task.command(name="cancel")
@_task_argument
@prints(TASK)
def cancel_task_command(session: CliSession, task_id: ObjectId) -> None:
    """Cancel a waiting task; ask the worker of a running one to stop."""
    _steer(session, task_id, TaskQueue.cancel_task)


@task.command(name="run-now")
@_task_argument
@prints(TASK)
def run_task_now_command(session: CliSession, task_id: ObjectId) -> None:
    """Make a waiting task due now."""
    _steer(session, task_id, TaskQueue.run_now)


def _now(row: Versioned[Task], now: Micros) -> str:
    return f"task {id_text(row.id)} ({row.value}) is {row.value.state}: {next_step(row, now)}"


def _steer(session: CliSession, task_id: ObjectId, step: Callable[[TaskQueue, ObjectId], Task]) -> None:
    with session.open_store() as store:
        tasks = TaskQueue(store)
        step(tasks, task_id)
        steered = tasks.read_task(task_id)
        session.show_done(TASK, steered, _now(steered, store.clock.now()))
