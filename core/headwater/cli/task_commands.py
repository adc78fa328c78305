"""``headwater task``: tasks that run, wait or have ended, with --watch as a table that is redrawn, or as lines of changes."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import click
from click.core import ParameterSource

from headwater.cli.cli_session import CliSession, ResultView
from headwater.cli.command_options import ID, TIME, limit_option, prints
from headwater.cli.task_views import TASK, TASK_FIGURES, TASK_LINES, TASK_PAGE, TaskPage, figure_rows
from headwater.clock import Clock, Micros
from headwater.console import DURATION, yaml_text
from headwater.errors import UnavailableError
from headwater.jobs import retry_reachable_only
from headwater.store import ObjectId, ReadableRows, Versioned
from headwater.tasks import Task, TaskQuery, TaskQueue, TaskState

T = TypeVar("T")


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
        if self._session.output == "table" and sys.stdout.isatty():
            click.clear()
            click.echo("\n".join(self._view.columns(rows)))
            return
        self._print([row for name, row in named.items() if before.get(name) != row], is_first=not before)

    def _print(self, changed: Sequence[dict[str, Any]], *, is_first: bool) -> None:
        for row in changed if self._session.output != "table" else ():
            is_json = self._session.output == "json"
            click.echo(json.dumps(row, ensure_ascii=False) if is_json else "---\n" + yaml_text(row).rstrip())
        if self._session.output == "table" and (changed or is_first):
            lines = self._view.columns(changed)
            click.echo("\n".join(lines if is_first else lines[1:]))


task = click.Group("task", help="List, retry, cancel and run the tasks of a store.")
_task_argument = click.argument("task_id", metavar="TASK", type=ID)


@dataclass(frozen=True, slots=True)
class _Watching:
    """The value of ``--watch`` and its two options."""

    every_seconds: float
    for_seconds: float | None


def _read_watch(ctx: click.Context, parameter: click.Parameter, is_on: bool) -> _Watching | None:
    """Combine ``--watch`` and its two options into one value."""
    every, lasts = ctx.params.pop("every"), ctx.params.pop("lasts")
    if is_on:
        return _Watching(every, lasts)
    for name, option in (("every", "--every"), ("lasts", "--for")):
        if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"{option} goes with --watch: without it, the tasks are shown once", ctx)
    return None


@task.command(name="list")
@click.option("--state", type=click.Choice([state.value for state in TaskState]), help="Only tasks in this state.")
@click.option("--kind", help="Only tasks of this kind.")
@click.option("--realm", help="Only tasks of this realm.")
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
    is_eager=True,
    help="With --watch: the interval between two looks.",
)
@click.option(
    "--for",
    "lasts",
    type=DURATION,
    metavar="DURATION",
    is_eager=True,
    help="With --watch: end after this time; default is when interrupted.",
)
@click.option("--watch", "watching", is_flag=True, callback=_read_watch, help="Keep watching, and show what changes.")
@prints(TASK, many=True)
def list_tasks_command(session: CliSession, /, limit: int, watching: _Watching | None, **filters: Any) -> None:
    """List tasks: the active ones as they are due, then those that ended, the newest first.

    With --watch a terminal shows the table as it is now; elsewhere, and as JSON or YAML, each task is printed when it changes.
    """
    with session.open_store() as store:
        tasks = TaskQueue(store)

        def look() -> ReadableRows[Versioned[Task]]:
            return tasks.list_tasks(limit=limit, **_asked(filters, store.clock.now()))

        view = TASK_LINES if session.output == "table" else TASK
        if watching is None:
            listed = look()
            session.show_all(view, listed)
            session.warn_of(listed)
        else:
            every, lasts = watching.every_seconds, watching.for_seconds
            watch(session, view, look, clock=store.clock, every_seconds=every, for_seconds=lasts)


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
        rows = figure_rows(TaskQueue(store).read_figures())
    session.show_all(TASK_FIGURES, rows)


@task.command(name="show")
@_task_argument
@prints(TASK)
def show_task_command(session: CliSession, task_id: ObjectId) -> None:
    """Show everything about one task: what it is, the story of its attempts, and what comes next."""
    with session.open_store() as store:
        page = TaskPage(TaskQueue(store).read_task(task_id), store.clock.now())
    if session.output == "table":
        session.show(TASK_PAGE, page)
    else:
        session.show(TASK, page.seen)


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


def _steer(session: CliSession, task_id: ObjectId, step: Callable[[TaskQueue, ObjectId], Task]) -> None:
    with session.open_store() as store:
        tasks = TaskQueue(store)
        step(tasks, task_id)
        session.show(TASK, tasks.read_task(task_id))
