"""``headwater task``: what is being done, what waits, and what became of it."""

from __future__ import annotations

from collections.abc import Callable

import click

from headwater.cli.options import ID, prints
from headwater.cli.session import Session
from headwater.cli.views import TASK
from headwater.store import ObjectId
from headwater.tasks import Task, Tasks, TaskState

__all__ = ["task"]


@click.group()
def task() -> None:
    """Look at the work of a store, and steer it."""


@task.command(name="list")
@click.option("--state", type=click.Choice([state.value for state in TaskState]), help="Only tasks in this state.")
@click.option("--kind", help="Only tasks of this kind.")
@click.option("--realm", help="Only tasks of this realm.")
@click.option("--limit", metavar="COUNT", type=click.IntRange(min=1), default=100, show_default=True, help="At most so many.")
@prints(TASK, many=True)
@click.pass_obj
def list_(session: Session, state: str | None, kind: str | None, realm: str | None, limit: int) -> None:
    """List tasks: the active ones as they are due, then those that ended, the newest first."""
    with session.open_store() as store:
        found = Tasks(store).list(state=TaskState(state) if state else None, kind=kind, realm=realm, limit=limit)
    session.show_all(TASK, found)


@task.command()
@click.argument("task_id", metavar="TASK", type=ID)
@prints(TASK)
@click.pass_obj
def show(session: Session, task_id: ObjectId) -> None:
    """Show everything about one task, with the story of its attempts."""
    with session.open_store() as store:
        session.show(TASK, Tasks(store).read(task_id))


@task.command()
@click.argument("task_id", metavar="TASK", type=ID)
@prints(TASK)
@click.pass_obj
def retry(session: Session, task_id: ObjectId) -> None:
    """Let a failed or cancelled task wait again."""
    _steer(session, task_id, Tasks.retry)


@task.command()
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
