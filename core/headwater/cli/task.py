"""``headwater task``: what is being done, what waits, and what became of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import click
from click.core import ParameterSource

from headwater.cli.options import DURATION, ID, TIME, prints
from headwater.cli.session import Session
from headwater.cli.stories import TASK, TASK_FIGURES, TASK_LINES, TASK_PAGE, Page, figure_rows
from headwater.cli.watching import watch
from headwater.clock import Micros
from headwater.maintenance import retry_reachable
from headwater.store import ObjectId, ReadableRows, Versioned
from headwater.tasks import Asked, Task, Tasks, TaskState

__all__ = ["task"]


@click.group(name="task")
def task() -> None:
    """Look at the work of a store, and steer it."""


@dataclass(frozen=True, slots=True)
class _Watching:
    """``--watch``, and how."""

    every_seconds: float
    for_seconds: float | None


def _read_watch(ctx: click.Context, parameter: click.Parameter, is_on: bool) -> _Watching | None:
    """Reads its own two options, so that the command gets one value."""
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
@click.option("--limit", metavar="COUNT", type=click.IntRange(min=1), default=100, show_default=True, help="At most so many.")
@click.option(
    "--every",
    type=DURATION,
    metavar="DURATION",
    default="2s",
    show_default=True,
    is_eager=True,
    help="With --watch: look so often.",
)
@click.option(
    "--for",
    "lasts",
    type=DURATION,
    metavar="DURATION",
    is_eager=True,
    help="With --watch: end after this time; default is when interrupted.",
)
@click.option("--watch", "watching", is_flag=True, callback=_read_watch, help="Stay, and show what changes.")
@prints(TASK, many=True)
@click.pass_obj
def list_(session: Session, /, limit: int, watching: _Watching | None, **filters: Any) -> None:
    """List tasks: the active ones as they are due, then those that ended, the newest first.

    With --watch a terminal shows the table as it is now; elsewhere, and as JSON or YAML, each task is printed when it changes.
    """
    with session.open_store() as store:
        tasks = Tasks(store)

        def look() -> ReadableRows[Versioned[Task]]:
            return tasks.list(limit=limit, **_asked(filters, store.clock.now()))

        view = TASK_LINES if session.output == "table" else TASK
        if watching is None:
            found = look()
            session.show_all(view, found)
            session.warn_of(found)
        else:
            every, lasts = watching.every_seconds, watching.for_seconds
            watch(session, view, look, clock=store.clock, every_seconds=every, for_seconds=lasts)


def _asked(filters: dict[str, Any], now: Micros) -> Asked:
    def ago(seconds: float | None) -> Micros | None:
        return None if seconds is None else Micros(now - round(seconds * 1_000_000))

    return Asked(
        state=TaskState(filters["state"]) if filters["state"] else None,
        kind=filters["kind"],
        realm=filters["realm"],
        subject=filters["subject"],
        since=filters["since"],
        before=ago(filters["older_than"]),
    )


@task.command(name="figures")
@prints(TASK_FIGURES, many=True)
@click.pass_obj
def figures(session: Session) -> None:
    """Show for each kind how many tasks wait, run, are late and were given up, and how long they take."""
    with session.open_store() as store:
        rows = figure_rows(Tasks(store).figures())
    session.show_all(TASK_FIGURES, rows)


@task.command(name="show")
@click.argument("task_id", metavar="TASK", type=ID)
@prints(TASK)
@click.pass_obj
def show(session: Session, task_id: ObjectId) -> None:
    """Show everything about one task: what it is, the story of its attempts, and what comes next."""
    with session.open_store() as store:
        seen, now = Tasks(store).read(task_id), store.clock.now()
    if session.output == "table":
        session.show(TASK_PAGE, Page(seen, now))
    else:
        session.show(TASK, seen)


@task.command(name="retry")
@click.argument("task_id", metavar="TASK", type=ID)
@click.option(
    "--reachable-only",
    is_flag=True,
    help="Of a purge of a table: purge only what can be reached. Files that only missing or unreadable manifests name are then never"
    " deleted.",
)
@prints(TASK)
@click.pass_obj
def retry(session: Session, task_id: ObjectId, reachable_only: bool) -> None:
    """Let a failed or cancelled task wait again."""
    _steer(session, task_id, retry_reachable if reachable_only else Tasks.retry)


@task.command(name="cancel")
@click.argument("task_id", metavar="TASK", type=ID)
@prints(TASK)
@click.pass_obj
def cancel(session: Session, task_id: ObjectId) -> None:
    """Cancel a waiting task; ask the worker of a running one to stop."""
    _steer(session, task_id, Tasks.cancel)


@task.command(name="run-now")
@click.argument("task_id", metavar="TASK", type=ID)
@prints(TASK)
@click.pass_obj
def run_now(session: Session, task_id: ObjectId) -> None:
    """Let a waiting task be due now."""
    _steer(session, task_id, Tasks.run_now)


def _steer(session: Session, task_id: ObjectId, step: Callable[[Tasks, ObjectId], Task]) -> None:
    with session.open_store() as store:
        tasks = Tasks(store)
        step(tasks, task_id)
        session.show(TASK, tasks.read(task_id))
