"""``headwater runs``: the records of what maintenance did, listed, shown and drawn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from headwater.cli.cli_session import CliSession, check_realm_known, identifier
from headwater.cli.command_options import FILE, ID, TIME, limit_option
from headwater.clock import Micros
from headwater.console import ResultView, ViewField, count_text, option_group, prints, time_field
from headwater.durability import replacing
from headwater.errors import NotFoundError
from headwater.html_report import report_page
from headwater.jobs.task_runs import TASK_KINDS, Run, list_runs
from headwater.store import ObjectId, ReadableRows, Store, id_text


def _seconds(run: Run) -> float:
    return round((run.finished - run.started) / 1_000_000, 1)


def _result(run: Run) -> str:
    """Returns one line for a run: its error, or its counts that are not zero."""
    if run.error:
        return run.error
    counts = {
        name: value for name, value in run.counts.items() if isinstance(value, int) and not isinstance(value, bool) and value
    }
    quarantined = run.counts.get("quarantined")
    if isinstance(quarantined, Mapping) and quarantined.get("total"):
        counts["quarantined"] = quarantined["total"]
    return ", ".join(f"{name} {value}" for name, value in counts.items()) or "nothing to do"


_KINDS = f"{', '.join(TASK_KINDS[:-1])} or {TASK_KINDS[-1]}"

RUN: ResultView[Run] = ResultView(
    "run",
    "runs",
    (
        ViewField("started", "when it began", header="STARTED", form=time_field),
        ViewField("finished", "when it ended", form=time_field),
        ViewField("kind", _KINDS, header="KIND"),
        ViewField("realm", "the realm's id", header="REALM"),
        ViewField("subject", "what within the realm, such as a catalog", header="SUBJECT"),
        ViewField("seconds", "how long it took", _seconds, "SECONDS"),
        ViewField("result", "the error, or the counts that are not zero", _result, "RESULT"),
        ViewField("error", "empty when it did what it was for"),
        ViewField("counts", "all that it counted, as its task's outcome has it"),
        ViewField("notes", "what a person should know", form=list),
        ViewField("task", "the task's id", form=identifier),
        ViewField("attempt", "of the task"),
    ),
    named_by="task",
)


@dataclass(frozen=True, slots=True)
class RunType:
    """The rows of one object type that one run counted."""

    run: Run
    type: str
    kept: Mapping[str, int]
    garbage: int
    deleted: int
    deleted_bytes: int

    @property
    def scanned(self) -> int:
        return sum(self.kept.values()) + self.garbage


def types_of(runs: Sequence[Run]) -> list[RunType]:
    """Returns the object types that runs counted, the most rows first."""
    return [counted for run in runs for counted in sorted(_types_of(run), key=lambda t: (-t.scanned, t.type))]


def _types_of(run: Run) -> Iterator[RunType]:
    deleted = run.counts.get("deletedTypes") or {}
    for name, reasons in (run.counts.get("types") or {}).items():
        if not isinstance(reasons, Mapping):
            return  # an archive counts objects by type, and gives no reasons
        gone = deleted.get(name) or {}
        kept = {reason: rows for reason, rows in reasons.items() if reason != "garbage"}
        yield RunType(run, name, kept, reasons.get("garbage", 0), gone.get("rows", 0), gone.get("bytes", 0))


RUN_TYPE: ResultView[RunType] = ResultView(
    "type of a run",
    "types",
    (
        ViewField("started", "when the run began", "run.started", "STARTED", time_field),
        ViewField("realm", "the realm's id", "run.realm", "REALM"),
        ViewField("type", "the type of object", header="TYPE"),
        ViewField("scanned", "rows", header="SCANNED"),
        ViewField("kept", "rows, by reason", header="KEPT"),
        ViewField("garbage", "rows that nothing keeps", header="GARBAGE"),
        ViewField("deleted", "rows of which it is certain that they went", header="DELETED"),
        ViewField("deletedBytes", "at least so many bytes", header="BYTES"),
    ),
    named_by="type",
)

runs = click.Group("runs", help="List, show and draw what maintenance did: a record of each run of a task.")


_filter_options = option_group(
    click.option("--realm", metavar="REALM", help="Only runs on this realm."),
    click.option("--kind", type=click.Choice(TASK_KINDS), help="Only runs of this kind."),
    click.option("--since", type=TIME, metavar="TIME", help="Only runs that began then or later; 7d is as long ago."),
    click.option("--failed", is_flag=True, help="Only runs that failed."),
)


@runs.command(name="list")
@_filter_options
@limit_option(50)
@click.option("--types", is_flag=True, help="A line for each type of object that a run counted, instead of one for each run.")
@prints(RUN, many=True)
def list_runs_command(session: CliSession, /, limit: int, types: bool, **filters: Any) -> None:
    """List the last runs of maintenance, newest first, with what each did."""
    with session.open_store() as store:
        found = _runs(store, **filters)
    if types:
        session.show_all(RUN_TYPE, types_of(found[:limit]))
    else:
        session.show_all(RUN, found[:limit])
    session.warn_of(found)


@runs.command(name="report")
@click.argument("file", metavar="FILE", type=FILE)
@_filter_options
@click.pass_obj
def report_runs_command(session: CliSession, /, file: Path, **filters: Any) -> None:
    """Write the last runs of maintenance to FILE, as one page of HTML with charts, which loads no other file.

    It shows for each realm what was kept and why, garbage and deletions, types and durations, and every run in a table. A file of
    that name is replaced.
    """
    with session.open_store() as store:
        found, now = _runs(store, **filters), store.clock.now()
        page = report_page(found, store=store.url, now=now)
    session.warn_of(found)
    with replacing(file) as part:
        part.write_text(page, encoding="utf-8")
    session.say(f"report of {count_text(len(found), 'run')} written to {file}")


@runs.command(name="show")
@click.argument("task_id", metavar="TASK", type=ID)
@click.option(
    "--attempt", metavar="NUMBER", type=click.IntRange(min=1), help="The run of this attempt; default is the last one."
)
@prints(RUN)
def show_run_command(session: CliSession, task_id: ObjectId, attempt: int | None) -> None:
    """Show all that the run of a task counted, by the task's id."""
    with session.open_store() as store:
        found = list_runs(store)
        run = next((run for run in found if run.task == task_id and attempt in (None, run.attempt)), None)
    session.warn_of(found)
    if run is None:
        which = "" if attempt is None else f" by attempt {attempt}"
        raise NotFoundError(
            f"no run of task {id_text(task_id)}{which} is on record: `headwater runs list` lists those that are"
        )
    session.show(RUN, run)


def alias_of(command: click.Command) -> click.Command:
    """The command under its former name: it works, and no help lists it."""
    former = copy(command)
    former.hidden = True
    return former


def _runs(store: Store, *, realm: str | None, kind: str | None, since: Micros | None, failed: bool) -> ReadableRows[Run]:
    runs = list_runs(store, kind=kind, realm=realm)
    if realm is not None and not runs:
        check_realm_known(store, realm)
    return ReadableRows((run for run in runs if run.started >= (since or 0) and (run.error or not failed)), runs.unreadable)
