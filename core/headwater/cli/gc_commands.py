"""``headwater gc``: collections of garbage, their log and report, and explanations of why an object is kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from headwater.catalogs import Catalog
from headwater.cli.cli_session import CliSession, check_realm_known, identifier
from headwater.cli.command_address import Address, realm_address_argument, scope_ref_argument
from headwater.cli.command_options import ID, NEW_FILE, TIME, detach_option, limit_option, live_names
from headwater.cli.html_report import report_page
from headwater.cli.local_run import run_or_detach
from headwater.clock import Micros
from headwater.console import ResultView, ViewField, count_text, option_group, prints, time_after, time_field
from headwater.durability import replacing
from headwater.errors import NotFoundError
from headwater.fsck.explanation import Explanation, explain
from headwater.gc import check_collectable, collect_realm
from headwater.jobs import COLLECT, TASK_KINDS, run_collection
from headwater.jobs.task_runs import Run, list_runs
from headwater.outcome_text import outcome_lines
from headwater.realms import RealmRegistry
from headwater.store import ObjectId, ReadableRows, Store, confirm_clock, id_text
from headwater.tasks import TaskQueue

COLLECTION: ResultView[Mapping[str, Any]] = ResultView(
    "collection",
    "collections",
    (
        ViewField("realm", "the realm's id"),
        ViewField("dryRun", "nothing was deleted"),
        ViewField("writerCutoff", "rows younger than this were not touched"),
        ViewField("readerCutoff", "what was HEAD after this stays"),
        ViewField("references", "living references that were read"),
        ViewField("scanned", "rows"),
        ViewField("kept", "rows, by reason: head, grace, retention, record, filter, young, fixed, unknown type"),
        ViewField("garbage", "rows that nothing keeps"),
        ViewField("garbageBytes", "their bytes"),
        ViewField("leftoverParts", "of the garbage: parts that an interrupted rewriting left of an object"),
        ViewField("deleted", "rows that the database confirmed gone"),
        ViewField("deletedBytes", "at least so many bytes"),
        ViewField("types", "rows by object type and reason"),
        ViewField("garbageTypes", "garbage by object type: rows and bytes"),
        ViewField("deletedTypes", "of the deleted rows, those whose type is certain: rows and bytes"),
        ViewField("tombstonesRemoved", "deleted references that nobody can read from any more"),
        ViewField("claimsReleased", "uuids and locations of tables that are gone"),
        ViewField("pinsReleased", "pins of tasks that have ended"),
        ViewField("lateRowsDeleted", "rows that late writers left under purged keys"),
        ViewField("marks", "objects that were marked"),
        ViewField("filterBytes", "size of the filter; 0: the marks were exact"),
        ViewField("filterFpp", "share of the garbage that the filter keeps by mistake"),
        ViewField("seconds", "by phase: note, mark, plan, raise, save, sweep, and of the sweep delete"),
        ViewField("resumed", "how often an interrupted sweep was gone on with"),
        ViewField("notes", "what a person should know"),
    ),
)


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

EXPLANATION: ResultView[Explanation] = ResultView(
    "explanation",
    "explanations",
    (
        ViewField("realm", "the realm's id"),
        ViewField("id", "the object's id", "object_id"),
        ViewField("type", "the object's type"),
        ViewField("kept", "whether a collection that starts now would keep it", "is_kept"),
        ViewField(
            "why", "head, grace, retention, record, young, fixed or unknown type; null: it is garbage", lambda e: e.why or None
        ),
        ViewField("reason", "why, or when it goes", "sentence"),
        ViewField("goes", "the first time at which a collection deletes it; null: unknown", form=time_after),
        ViewField("chain", "type and id, from the commit that keeps it down to the object", form=list),
        ViewField("path", "the same in words, from the reference on: commits, indexes, keys", form=list),
    ),
    named_by="id",
)

gc = click.Group("gc", help="Collect garbage, and show what is kept and why.")


@gc.command(name="run")
@realm_address_argument
@click.option("--dry-run", is_flag=True, help="Show what would be deleted, and delete nothing.")
@detach_option()
@click.option(
    "--clock-is-right",
    is_flag=True,
    help="Confirm that this machine's clock is right. Needed when nobody wrote to the store for weeks and a collection waits for that"
    " reason.",
)
@prints(COLLECTION)
def run_gc_command(session: CliSession, realm_id: str, dry_run: bool, detach: bool, clock_is_right: bool) -> None:
    """Collect the garbage of a realm, or of ::system::, now."""
    if dry_run and clock_is_right:
        raise click.UsageError("--dry-run deletes nothing, and needs no --clock-is-right")
    if dry_run and detach:
        raise click.UsageError("--dry-run is done here: omit --detach")
    with session.open_store() as store:
        if dry_run:
            with session.progress(f"dry run of gc of realm {realm_id!r}") as progress:
                planned = collect_realm(store, realm_id, dry_run=True, progress=progress).as_plain()
            session.show(COLLECTION, planned)
            return
        realm_key = check_collectable(store, realm_id)
        if clock_is_right:
            confirm_clock(store)
        submitted = TaskQueue(store).submit_task(COLLECT, realm=realm_id, realm_key=realm_key)
        if detach:
            TaskQueue(store).run_now(submitted.id)
        outcome = run_or_detach(session, store, submitted.id, run_collection, detach=detach)
    if outcome is not None:
        session.show_done(COLLECTION, outcome, *outcome_lines("gc", outcome))


_filter_options = option_group(
    click.option("--realm", metavar="REALM", help="Only runs on this realm.", shell_complete=live_names("complete_realms")),
    click.option("--kind", type=click.Choice(TASK_KINDS), help="Only runs of this kind."),
    click.option("--since", type=TIME, metavar="TIME", help="Only runs that began then or later; 7d is as long ago."),
    click.option("--failed", is_flag=True, help="Only runs that failed."),
)


@gc.command(name="log")
@_filter_options
@limit_option(50)
@click.option("--types", is_flag=True, help="A line for each type of object that a run counted, instead of one for each run.")
@prints(RUN, many=True)
def gc_log_command(session: CliSession, /, limit: int, types: bool, **filters: Any) -> None:
    """List the last runs of maintenance, newest first, with what each did."""
    with session.open_store() as store:
        runs = _runs(store, **filters)
    if types:
        session.show_all(RUN_TYPE, types_of(runs[:limit]))
    else:
        session.show_all(RUN, runs[:limit])
    session.warn_of(runs)


@gc.command(name="report")
@click.argument("file", metavar="FILE", type=NEW_FILE)
@_filter_options
@click.pass_obj
def gc_report_command(session: CliSession, /, file: Path, **filters: Any) -> None:
    """Write the last runs of maintenance to FILE, as one page of HTML with charts, which loads no other file.

    It shows for each realm what was kept and why, garbage and deletions, types and durations, and every run in a table. A file of
    that name is replaced.
    """
    with session.open_store() as store:
        runs, now = _runs(store, **filters), store.clock.now()
        page = report_page(runs, store=store.url, now=now)
    session.warn_of(runs)
    with replacing(file) as part:
        part.write_text(page, encoding="utf-8")
    session.say(f"report of {count_text(len(runs), 'run')} written to {file}")


@gc.command(name="explain")
@scope_ref_argument
@click.argument("object_id", metavar="[ID]", type=ID, required=False)
@prints(EXPLANATION)
def explain_command(session: CliSession, address: Address, object_id: ObjectId | None) -> None:
    """Tell why an object is kept, or when it goes: a commit such as acme/lake@main or acme/lake@main~2, or any object of a realm by ID."""
    if object_id is None and not address.name:
        raise click.UsageError(f"say which object of realm {address.realm}: by its ID, or as {address.realm}/CATALOG@REF")
    if object_id is not None and address.name:
        raise click.UsageError(f"an ID goes with a realm, whose objects have one: write {address.realm} {id_text(object_id)}")
    with session.open_store() as store:
        session.show(EXPLANATION, explain(store, address.realm, object_id or _commit(store, address)))


def _commit(store: Store, address: Address) -> ObjectId:
    """The commit that an address leads to. Raises NotFoundError for no such catalog or reference, and where it has no commit yet."""
    catalog = Catalog.open(RealmRegistry(store).open_realm(address.realm), address.name)
    head = catalog.resolve(address.ref)
    if head is None:
        raise NotFoundError(f"{address.ref or catalog.definition.default_branch!r} of {catalog.label} has no commit yet")
    return head.id


def _runs(store: Store, *, realm: str | None, kind: str | None, since: Micros | None, failed: bool) -> ReadableRows[Run]:
    runs = list_runs(store, kind=kind, realm=realm)
    if realm is not None and not runs:
        check_realm_known(store, realm)
    return ReadableRows((run for run in runs if run.started >= (since or 0) and (run.error or not failed)), runs.unreadable)
