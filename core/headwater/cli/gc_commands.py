"""``headwater gc``: collections of garbage, their log and report, and explanations of why an object is kept."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from headwater.catalogs import Catalog
from headwater.cli.cli_session import CliSession
from headwater.cli.command_options import ID_OR_REF, TIME, prints
from headwater.cli.html_report import report_page
from headwater.cli.local_run import run_task_here
from headwater.cli.output_files import replacing
from headwater.cli.report_views import COLLECTION, EXPLANATION, RUN, RUN_TYPE, types_of
from headwater.cli.task_views import TASK
from headwater.clock import Micros
from headwater.errors import NotFoundError
from headwater.fsck.explanation import explain
from headwater.gc import check_collectable, collect_realm
from headwater.jobs import COLLECT, run_collection
from headwater.jobs.run_record import Run, list_runs
from headwater.realms import RealmRegistry
from headwater.store import ObjectId, ReadableRows, Store, confirm_clock
from headwater.tasks import TaskQueue

F = TypeVar("F", bound=Callable[..., Any])


@click.group(name="gc")
def gc() -> None:
    """Collect garbage, and show what is kept and why."""


@gc.command(name="run")
@click.argument("realm_id", metavar="REALM")
@click.option("--dry-run", is_flag=True, help="Show what would be deleted, and delete nothing.")
@click.option("--detach", is_flag=True, help="Leave the work to a worker instead of doing it here.")
@click.option(
    "--clock-is-right",
    is_flag=True,
    help="Confirm that this machine's clock is right. Needed when nobody wrote to the store for weeks and a collection waits for that"
    " reason.",
)
@prints(COLLECTION)
@click.pass_obj
def run_gc_command(session: CliSession, realm_id: str, dry_run: bool, detach: bool, clock_is_right: bool) -> None:
    """Collect the garbage of a realm, or of ::system::, now."""
    if dry_run and clock_is_right:
        raise click.UsageError("--dry-run deletes nothing, and needs no --clock-is-right")
    if dry_run and detach:
        raise click.UsageError("--dry-run is done here: omit --detach")
    with session.open_store() as store:
        if dry_run:
            session.show(COLLECTION, collect_realm(store, realm_id, dry_run=True).as_plain())
            return
        realm_key = check_collectable(store, realm_id)
        if clock_is_right:
            confirm_clock(store)
        submitted = TaskQueue(store).submit_task(COLLECT, realm=realm_id, realm_key=realm_key)
        if detach:
            TaskQueue(store).run_now(submitted.id)
            session.show(TASK, TaskQueue(store).read_task(submitted.id))
            return
        ended = run_task_here(session, store, submitted.id, lambda claim: run_collection(store, claim))
        session.show(COLLECTION, ended.value.outcome or {})


def _chosen(function: F) -> F:
    """Add the options that filter the records of runs."""
    for option in (
        click.option("--failed", is_flag=True, help="Only runs that failed."),
        click.option("--since", type=TIME, metavar="TIME", help="Only runs that began then or later; 7d is as long ago."),
        click.option(
            "--kind", metavar="KIND", help="Only runs of this kind: gc, purge, purge-table, import, export, load or restore."
        ),
        click.option("--realm", metavar="REALM", help="Only runs on this realm."),
    ):
        function = option(function)
    return function


@gc.command(name="log")
@_chosen
@click.option("--limit", metavar="COUNT", type=click.IntRange(min=1), default=50, show_default=True, help="At most so many.")
@click.option("--types", is_flag=True, help="A line for each type of object that a run counted, instead of one for each run.")
@prints(RUN, many=True)
@click.pass_obj
def gc_log_command(session: CliSession, /, limit: int, types: bool, **chosen: Any) -> None:
    """List the last runs of maintenance, newest first, with what each did."""
    with session.open_store() as store:
        found = _runs(store, **chosen)
    runs = found[:limit]
    if types:
        session.show_all(RUN_TYPE, types_of(runs))
    else:
        session.show_all(RUN, runs)
    session.warn_of(found)


@gc.command(name="report")
@click.argument("file", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path))
@_chosen
@click.pass_obj
def gc_report_command(session: CliSession, /, file: Path, **chosen: Any) -> None:
    """Write the last runs of maintenance to FILE, as one page of HTML with charts, which loads no other file.

    It shows for each realm what was kept and why, garbage and deletions, types and durations, and every run in a table. A file of
    that name is replaced.
    """
    with session.open_store() as store:
        runs, now = _runs(store, **chosen), store.clock.now()
        page = report_page(runs, store=store.url, now=now)
    session.warn_of(runs)
    with replacing(file) as part:
        part.write_text(page, encoding="utf-8")
    session.say(f"report of {len(runs)} {'run' if len(runs) == 1 else 'runs'} written to {file}")


@gc.command(name="explain")
@click.argument("realm_id", metavar="REALM")
@click.argument("wanted", metavar="ID|CATALOG/REF", type=ID_OR_REF)
@prints(EXPLANATION)
@click.pass_obj
def explain_command(session: CliSession, realm_id: str, wanted: ObjectId | str) -> None:
    """Tell why an object is kept, or when it goes: any object by its ID, or a commit such as lake/main or lake/main~2."""
    with session.open_store() as store:
        object_id = _commit(store, realm_id, wanted) if isinstance(wanted, str) else wanted
        session.show(EXPLANATION, explain(store, realm_id, object_id))


def _commit(store: Store, realm_id: str, wanted: str) -> ObjectId:
    """The commit that CATALOG/REF leads to. Raises NotFoundError for no such catalog or reference, and where it has no commit yet."""
    name, _, ref = wanted.partition("/")
    catalog = Catalog.open(RealmRegistry(store).open_realm(realm_id), name)
    head = catalog.resolve(ref)
    if head is None:
        raise NotFoundError(f"{ref!r} of {catalog.label} has no commit yet")
    return head.id


def _runs(store: Store, *, realm: str | None, kind: str | None, since: Micros | None, failed: bool) -> ReadableRows[Run]:
    runs = list_runs(store, kind=kind, realm=realm)
    return ReadableRows((run for run in runs if run.started >= (since or 0) and (run.error or not failed)), runs.unreadable)
