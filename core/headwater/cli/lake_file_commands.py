"""``headwater files``: what nobody refers to in a catalog's lake, how much that is, and why a file is still there. Deletes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

import click

from headwater.api.locations import folder_location
from headwater.cli.cli_session import CliSession
from headwater.cli.command_address import Address, catalog_argument
from headwater.cli.command_options import detach_option, limit_option
from headwater.cli.local_run import run_or_detach
from headwater.console import ResultView, ViewField, prints, time_field
from headwater.jobs import REPORT_FILES, dry_file_report, run_file_report
from headwater.jobs.catalog_tasks import submit_catalog_task
from headwater.lake_files import (
    CODE_SENTENCES,
    FileReason,
    LakeFileExplanation,
    MarkedFile,
    choose_marks,
    explain_lake_file,
    read_last_report,
    summarize_report,
)

REPORT: ResultView[Mapping[str, Any]] = ResultView(
    "report of files",
    "reports of files",
    (
        ViewField("realm", "the realm's id"),
        ViewField("catalog", "the catalog"),
        ViewField("report", "its number; 0: a dry run before the first"),
        ViewField("liveAsOf", "what any commit held that was stored then, or made before, is live"),
        ViewField("listedFrom", "when the listings began"),
        ViewField("finished", "when it ended"),
        ViewField("reclaimableFiles", "files that nobody refers to and that may go one day"),
        ViewField("reclaimableBytes", "their bytes"),
        ViewField("deleteRequests", "what deleting them would take, a thousand at once"),
        ViewField("dueFiles", "of these, those whose grace and delay are over"),
        ViewField("dueBytes", "their bytes"),
        ViewField("files", "files and bytes by code", inside={".<code>.files": "files", ".<code>.bytes": "bytes"}),
        ViewField("outside", "live files in the catalog's locations that lie in no place that was listed"),
        ViewField("requests", "what the storage was asked for, by kind"),
        ViewField("tables", "the places with the most reclaimable bytes", inside={"[].table": "the table's key"}),
        ViewField("blockedPlaces", "places that yield nothing"),
        ViewField(
            "blocked", "the first of them", inside={"[].code": "the rule", "[].why": "the rule in words, and what to mend"}
        ),
        ViewField("plan", "what is due, in Parquet files that never change; void after a week"),
    ),
    named_by="realm/catalog",
)


def _referrers(explanation: LakeFileExplanation) -> list[dict[str, Any]]:
    return [
        {
            "realm": each.realm,
            "catalog": each.catalog,
            "table": each.key,
            "where": ", ".join(each.where) or "history",
            "snapshots": ", ".join(map(str, each.snapshots)),
            "metadata": each.metadata,
        }
        for each in explanation.referrers
    ]


def _tables(explanation: LakeFileExplanation) -> list[dict[str, Any]]:
    return [
        {
            "realm": each.realm,
            "catalog": each.catalog,
            "table": each.key,
            "where": ", ".join(each.where) or "history",
            "location": each.location,
            "dropped": time_field(each.dropped),
            "droppedBy": each.dropped_by,
        }
        for each in explanation.tables
    ]


def _unreferenced(explanation: LakeFileExplanation) -> list[dict[str, Any]]:
    return [{"code": each.code, "files": each.files, "bytes": each.size_bytes} for each in explanation.unreferenced]


EXPLAINED_FILE: ResultView[LakeFileExplanation] = ResultView(
    "explanation of a file",
    "explanations of files",
    (
        ViewField("url", "the file or folder"),
        ViewField("exists", "whether it is there now: a folder, whether something lies below it", "is_there"),
        ViewField("code", "the rule that holds for it"),
        ViewField("why", "the rule in words", "sentence"),
        ViewField("realm", "the realm in whose place it lies"),
        ViewField("catalog", "the catalog in whose place it lies"),
        ViewField("place", "the place: a table's, or a prefix of the catalog"),
        ViewField("table", "the key of the place's table, or of the folder's"),
        ViewField(
            "tables",
            "of a folder: the first twenty tables that lie there, around it or below it",
            _tables,
            inside={
                "[].where": "branches and tags that have it; otherwise only history does",
                "[].location": "what the table has claimed",
                "[].dropped": "when it was dropped from the default branch; null: it was not, or that was collected",
                "[].droppedBy": "who did",
            },
        ),
        ViewField(
            "unreferenced",
            "of a folder: files below it that nobody refers to, by the last report",
            _unreferenced,
            inside={"[].code": "the rule", "[].files": "how many", "[].bytes": "their size"},
        ),
        ViewField(
            "referrers",
            "who refers to it: the first twenty versions",
            _referrers,
            inside={
                "[].where": "branches and tags whose heads have this version; otherwise it is in history",
                "[].snapshots": "the table's snapshots that have the file",
            },
        ),
        ViewField("since", "since when nobody refers to it, by our own listings; of a folder: the earliest", form=time_field),
        ViewField("due", "the first time at which it may go; of a folder: the earliest", form=time_field),
        ViewField("report", "the number of the report that says so"),
    ),
)

MARKED_FILE: ResultView[MarkedFile] = ResultView(
    "file",
    "files",
    (
        ViewField("path", "where it is", header="FILE"),
        ViewField("code", "what is to be said of it", header="CODE"),
        ViewField("bytes", "its size", "size_bytes", "BYTES"),
        ViewField("modified", "its own time", form=time_field),
        ViewField(
            "since", "when our listings first had it as a file that nobody refers to", "first_listed", "SINCE", time_field
        ),
        ViewField(
            "due",
            "the first time at which it may go; null: it is only reported",
            lambda mark: mark.due or None,
            "DUE",
            time_field,
        ),
        ViewField("place", "the place in which it lies"),
    ),
)

files = click.Group("files", help="Tell what nobody refers to in a lake, and why a file is still there.")


@files.command(name="report")
@catalog_argument
@click.option("--run", "is_run", is_flag=True, help="Make a new report now; otherwise the last one is shown.")
@click.option("--dry-run", is_flag=True, help="Count now, and write nothing: no marks, no plan, no marker objects.")
@detach_option("With --run: leave the work to a worker.")
@limit_option(20)
@prints(REPORT)
def report_files_command(session: CliSession, address: Address, is_run: bool, dry_run: bool, detach: bool, limit: int) -> None:
    """Show which files of a catalog's lake nobody refers to, how much that is, and which places yield nothing, and why.

    No file of the lake is deleted or changed.
    """
    if dry_run and (is_run or detach):
        raise click.UsageError("--dry-run is done here and writes nothing: omit --run and --detach")
    if detach and not is_run:
        raise click.UsageError("--detach needs --run")
    with session.open_store() as store:
        if dry_run:
            with session.progress(f"dry run of the report of {address.without_ref}") as progress:
                counted = dry_file_report(store, address.realm, address.name, progress=progress)
            session.show(REPORT, summarize_report(counted, limit=limit))
            return
        if is_run:
            task = submit_catalog_task(store, REPORT_FILES, address.realm, address.name)
            if run_or_detach(session, store, task.id, run_file_report, detach=detach) is None:
                return
        session.show(REPORT, summarize_report(read_last_report(store, address.realm, address.name), limit=limit))


@files.command(name="list")
@catalog_argument
@click.option(
    "--code",
    "codes",
    metavar="CODE",
    multiple=True,
    type=click.Choice(sorted(reason.value for reason in FileReason)),
    help="Only files with it.",
)
@click.option("--place", metavar="URL", help="Only files in this place.")
@limit_option(100)
@prints(MARKED_FILE, many=True)
def list_files_command(session: CliSession, address: Address, codes: Sequence[str], place: str | None, limit: int) -> None:
    """List the files that nobody refers to, by the last report: in the order of places and paths."""
    with session.open_store() as store:
        read = read_last_report(store, address.realm, address.name)
        session.show_all(MARKED_FILE, list(islice(choose_marks(read.marks(), codes=codes, place=place), limit)))


@files.command(name="explain")
@click.argument("url", metavar="URL")
@prints(EXPLAINED_FILE)
def explain_lake_file_command(session: CliSession, url: str) -> None:
    """Tell who refers to a file, or since when nobody does, by which rule, and when it may go.

    Of a folder it tells whose tables lie there, around it or below it, and what the last report lists below it.
    """
    with session.open_store() as store:
        session.show(EXPLAINED_FILE, explain_lake_file(store, folder_location(url)))


@files.command(name="codes")
@click.pass_obj
def file_codes_command(session: CliSession) -> None:
    """Show every code of a file and of a place, and what it means."""
    for code, sentence in CODE_SENTENCES.items():
        session.say(f"{code:20}{sentence}")
