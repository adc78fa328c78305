"""``headwater file-table``: file tables, their files, and why a file is there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click

from headwater.api.file_table_creation import make_file_table
from headwater.api.file_table_export import export_file_table
from headwater.api.file_table_report import FileTableReport, report_file_table
from headwater.api.locations import folder_location
from headwater.cli.cli_session import CliSession, opened_file_table
from headwater.cli.command_address import Address, file_table_argument, realm_address_argument
from headwater.cli.command_options import (
    FILE,
    confirm_option,
    detach_option,
    read_pairs,
)
from headwater.cli.file_row_commands import compact_command, ingest_command, query_command, split_command
from headwater.cli.local_run import run_or_detach
from headwater.console import ResultView, ViewField, count_text, prints, time_after, time_field
from headwater.errors import RefusedError
from headwater.exits import FINDINGS
from headwater.files import (
    FileReference,
    FileTableDefinition,
    list_file_tables,
)
from headwater.files.data_folder import DataFolder
from headwater.files.file_adoption import adopt_table
from headwater.files.file_collection import FileExplanation, explain_file
from headwater.jobs import COLLECT_FILES, plan_file_collection, run_file_collection, submit_file_collection
from headwater.outcome_text import has_findings, outcome_lines
from headwater.purge import FileTablePurge
from headwater.realms import RealmRegistry
from headwater.tasks import TaskQueue


@dataclass(frozen=True, slots=True)
class FileTableRow:
    """A file table of a realm."""

    realm: str
    definition: FileTableDefinition


def _columns(row: FileTableRow) -> list[dict[str, Any]]:
    return [{"name": each.name, "type": each.type, "nullable": each.nullable} for each in row.definition.columns]


_DEFINITION: tuple[ViewField[Any], ...] = (
    ViewField("realm", "the realm's id", header="REALM"),
    ViewField("name", "unique in its realm", "definition.name", "TABLE"),
    ViewField("id", "never used again, also not by a later table of the same name", "definition.id"),
    ViewField("state", "CREATING, ACTIVE, READ_ONLY or DELETING", "definition.state", "STATE"),
    ViewField("keyColumn", "the column whose ranges are the partitions", "definition.key_column", "KEY"),
    ViewField("sortColumns", "by which rows of equal key are sorted", "definition.sort_columns"),
    ViewField(
        "columns",
        "all columns",
        _columns,
        inside={"[].name": "the column", "[].type": "by Spark's name", "[].nullable": "whether it may be null"},
    ),
    ViewField("location", "the folder of this table alone", "definition.location", "LOCATION"),
    ViewField("created", "when it was created", "definition.created", "CREATED", time_field),
)

FILE_TABLE: ResultView[FileTableRow] = ResultView("file table", "file tables", _DEFINITION, "realm/name")


def _of_jobs(report: FileTableReport) -> list[dict[str, Any]]:
    return [{"job": job, "references": count, "since": time_field(since)} for job, count, since in report.jobs]


def _unreferenced(report: FileTableReport) -> list[dict[str, Any]]:
    return [{"file": file.filename, "marked": time_field(file.updated)} for file in report.unreferenced]


FILE_TABLE_REPORT: ResultView[FileTableReport] = ResultView(
    "report of a file table",
    "reports",
    (
        *_DEFINITION,
        ViewField("rows", "rows by the references: exact, or nearly so while some are estimates"),
        ViewField("estimated", "references whose number of rows is an estimate"),
        ViewField("files", "files with references"),
        ViewField("references", "references of partitions to files"),
        ViewField("leaves", "partitions of the tree that take new rows"),
        ViewField("depth", "splits between the root and the deepest leaf"),
        ViewField("treeNumber", "number of the newest change of the tree"),
        ViewField("above", "references of partitions that were split: files of these are read by several leaves"),
        ViewField(
            "partitions",
            "the partitions with the most files",
            inside={"[].partition": "its path from the root r", "[].files": "how many", "[].rows": "rows by its references"},
        ),
        ViewField(
            "jobs",
            "jobs that references are assigned to, the oldest first",
            _of_jobs,
            inside={"[].job": "its id", "[].references": "how many", "[].since": "when the first was assigned"},
        ),
        ViewField("unreferencedFiles", "files without references", "unreferenced_files"),
        ViewField(
            "unreferenced",
            "the first of them by name; the collection deletes them",
            _unreferenced,
            inside={"[].file": "the file", "[].marked": "when a collection found it without references; null: not yet"},
        ),
        ViewField("oldestFile", "when the oldest file with references was written, by its name", form=time_field),
        ViewField("newestFile", "when the newest one was", form=time_field),
        ViewField("lastCollection", "when the last collection that did something ended", form=time_field),
        ViewField("nextCollection", "when the next one is due; null: none is scheduled", form=time_after),
        ViewField("conflicts", "errors of the database by their SQLSTATE, as this process counted them"),
    ),
    named_by="realm/name",
)

FILE_COLLECTION: ResultView[Mapping[str, Any]] = ResultView(
    "collection of files",
    "collections",
    (
        ViewField("dryRun", "nothing was changed"),
        ViewField("listed", "entries of the table's folder"),
        ViewField("unknown", "of these, those whose names are not of data files: left alone"),
        ViewField("young", "of these, files that nobody tracks yet, and whose writer may still be at work"),
        ViewField("strays", "of these, older ones: they are tracked from now on, without references"),
        ViewField("marked", "files without references that were marked, strays included"),
        ViewField("deleted", "files that were deleted; of a plan: that would be"),
        ViewField("missing", "files that were gone already"),
        ViewField("failed", "files that could not be deleted: the next collection tries again"),
        ViewField("waiting", "files without references whose delay is not over"),
        ViewField("postponed", "files that may go, but are more than one collection deletes"),
        ViewField("outside", "files that may go, but lie outside of the table's folder: left alone"),
        ViewField("outcomes", "outcomes of old requests that were deleted"),
        ViewField("failures", "the first failed files", inside={"[].file": "the file", "[].reason": "what the storage said"}),
        ViewField("jobs", "jobs that have had references for long, without an outcome"),
        ViewField("notes", "what a person should know"),
    ),
    named_by="",
)


def _references(explanation: FileExplanation) -> list[dict[str, Any]]:
    return [_reference(reference) for reference in explanation.references]


def _reference(reference: FileReference) -> dict[str, Any]:
    return {
        "partition": reference.partition,
        "rows": reference.rows,
        "job": reference.job,
        "updated": time_field(reference.updated),
    }


FILE_EXPLANATION: ResultView[FileExplanation] = ResultView(
    "explanation of a file",
    "explanations",
    (
        ViewField("file", "the file", "filename"),
        ViewField("state", "referenced, unreferenced, marked, stray, young or unknown name"),
        ViewField("reason", "why it is there, and what happens next", "sentence"),
        ViewField("since", "since when", form=time_field),
        ViewField("goes", "the first time at which a collection may delete it; null: not known", form=time_after),
        ViewField(
            "references",
            "who refers to it",
            _references,
            inside={
                "[].partition": "its path from the root r",
                "[].rows": "rows of the file in that partition",
                "[].job": "the job that replaces this reference; null: none",
                "[].updated": "when the reference was last changed",
            },
        ),
    ),
)


FILE_TABLE_DELETION: ResultView[Mapping[str, Any]] = ResultView(
    "deletion of a file table",
    "deletions",
    (
        ViewField("tables", "tables that are deleted: also what an adoption was about to put in its place"),
        ViewField("files", "data files that are deleted"),
        ViewField("missing", "of its files, those that were gone already"),
        ViewField("kept", "its files that stay: they lie outside of its folder, or belong to another store"),
        ViewField("unknown", "what else lies in its folder: it stays"),
        ViewField("rows", "rows of references and files that are deleted, and, not counted by a plan, of outcomes"),
        ViewField(
            "failures", "files that could not be deleted", inside={"[].file": "the file", "[].reason": "what the storage said"}
        ),
    ),
    named_by="",
)

ADOPTION: ResultView[Mapping[str, Any]] = ResultView(
    "adoption of a file table",
    "adoptions",
    (
        ViewField("table", "the name, which the new table has from now on"),
        ViewField("id", "the new table's id"),
        ViewField("location", "its folder"),
        ViewField("files", "all files that it has"),
        ViewField("copied", "files that this call copied"),
        ViewField("bytes", "their size"),
    ),
)

file_table = click.Group("file-table", help="Tables of sorted Parquet files: create, fill, query, compact and collect them.")

for _command in (compact_command, ingest_command, query_command, split_command):
    file_table.add_command(_command)


@file_table.command(name="list")
@realm_address_argument
@prints(FILE_TABLE, many=True)
def list_file_tables_command(session: CliSession, realm_id: str) -> None:
    """List the file tables of a realm."""
    with session.open_store() as store:
        listed = list_file_tables(RealmRegistry(store).open_realm(realm_id))
        session.show_all(FILE_TABLE, [FileTableRow(realm_id, definition) for definition in listed])
        session.warn_of(listed)


@file_table.command(name="create")
@file_table_argument
@click.option("--location", metavar="URL", required=True, help="A folder; the table gets one of its own in there.")
@click.option(
    "--column",
    "columns",
    metavar="NAME=TYPE",
    multiple=True,
    required=True,
    callback=read_pairs,
    help="A column and its type by Spark's name, such as amount=double; may be repeated.",
)
@click.option("--key", metavar="NAME", required=True, help="The key: a column of type int, long, string or binary.")
@click.option("--sort", metavar="NAME", multiple=True, help="Rows of equal key are sorted by this; may be repeated.")
@click.option(
    "--split-point",
    "split_points",
    metavar="KEY",
    multiple=True,
    help="Begin with a partition for each range between these keys (binary ones in hex); may be repeated.",
)
@prints(FILE_TABLE)
def create_file_table_command(
    session: CliSession,
    address: Address,
    location: str,
    columns: Sequence[tuple[str, str]],
    **fields: Any,
) -> None:
    """Create a file table. After an interruption, run the same command to complete it."""
    with session.open_store() as store:
        rows = RealmRegistry(store).open_realm(address.realm)
        definition = make_file_table(store, rows, address.name, location=location, columns=columns, **fields)
        session.show_done(
            FILE_TABLE, FileTableRow(address.realm, definition), f"file table {address.without_ref} is {definition.state}"
        )


@file_table.command(name="show")
@file_table_argument
@click.option(
    "--unreferenced",
    "limit",
    metavar="COUNT",
    type=click.IntRange(min=0),
    default=10,
    show_default=True,
    help="Show at most so many files without references, and so many partitions and jobs.",
)
@prints(FILE_TABLE_REPORT)
def show_file_table_command(session: CliSession, address: Address, limit: int) -> None:
    """Show everything about one file table: rows, files, references, jobs, and what waits for collection."""
    with opened_file_table(session, address) as (store, table):
        session.show(FILE_TABLE_REPORT, report_file_table(store, table, limit=limit))


@file_table.command(name="collect")
@file_table_argument
@click.option("--dry-run", is_flag=True, help="Show what would be marked and deleted, and change nothing.")
@detach_option()
@prints(FILE_COLLECTION)
def collect_files_command(session: CliSession, address: Address, dry_run: bool, detach: bool) -> int:
    """Mark files that nobody refers to, and delete those that were marked longer ago than the delay.

    Exit code 8 if a file could not be deleted.
    """
    if dry_run and detach:
        raise click.UsageError("--dry-run is done here: omit --detach")
    outcome: Mapping[str, Any] | None
    with opened_file_table(session, address) as (store, table):
        if dry_run:
            with session.progress(f"dry run of the collection of {address.without_ref}") as progress:
                outcome = plan_file_collection(store, table, progress=progress).as_plain()
        else:
            table.check_writable()
            submitted = submit_file_collection(store, RealmRegistry(store).read_realm(address.realm), address.name)
            if detach:
                TaskQueue(store).run_now(submitted.id)
            body = partial(run_file_collection, is_idle_recorded=True)
            outcome = run_or_detach(session, store, submitted.id, body, detach=detach)
    if outcome is None:
        return 0
    if dry_run:
        session.show(FILE_COLLECTION, outcome)
    else:
        session.show_done(FILE_COLLECTION, outcome, *outcome_lines("file-gc", outcome))
    return FINDINGS if has_findings(COLLECT_FILES, outcome) else 0


@file_table.command(name="explain")
@file_table_argument
@click.argument("file", metavar="FILE")
@prints(FILE_EXPLANATION)
def explain_file_command(session: CliSession, address: Address, file: str) -> None:
    """Tell who refers to FILE (its location, or its name alone); or since when nobody does, and when it may go."""
    with opened_file_table(session, address) as (store, table):
        folder = DataFolder(table.definition.data_folder)
        session.show(FILE_EXPLANATION, explain_file(store, table.references, folder, file))


@file_table.command(name="export")
@file_table_argument
@click.argument("file", metavar="FILE", type=FILE)
@click.pass_obj
def export_file_table_command(session: CliSession, address: Address, file: Path) -> None:
    """Write all references of one moment, and the partition tree, to FILE: JSON lines (.jsonl) or Parquet (.parquet).

    A file of that name is replaced. The rows of the table are not exported.
    """
    if file.suffix not in (".jsonl", ".parquet"):
        raise click.UsageError(f"{file} ends neither in .jsonl nor in .parquet")
    with opened_file_table(session, address) as (_, table):
        references = export_file_table(table, file)
    session.say(f"{count_text(references, 'reference')} of file table {address.name!r} written to {file}")


@file_table.command(name="adopt")
@file_table_argument
@click.option("--location", metavar="URL", required=True, help="A folder; the table gets one of its own in there.")
@prints(ADOPTION)
def adopt_file_table_command(session: CliSession, address: Address, location: str) -> None:
    """Copy the files of an imported, read-only file table into a folder of its own, and make the table writable.

    After an interruption, the same command goes on.
    """
    with session.open_store() as store:
        rows = RealmRegistry(store).open_realm(address.realm)
        with session.progress(f"adoption of file table {address.without_ref}") as progress:
            adopted = adopt_table(store, rows, address.name, location=folder_location(location), progress=progress).as_plain()
        session.show_done(ADOPTION, adopted, f"file table {address.without_ref} is adopted, in {adopted['location']}")


@file_table.command(name="delete")
@file_table_argument
@confirm_option("REALM/TABLE")
@prints(FILE_TABLE_DELETION)
def delete_file_table_command(session: CliSession, address: Address, confirm: str | None) -> None:
    """Delete a file table with all its files. There is no way back.

    After an interruption the same command goes on, and so does a worker.
    """
    with session.open_store() as store:
        rows, wanted = RealmRegistry(store).open_realm(address.realm), address.without_ref
        if confirm != wanted:
            session.show(FILE_TABLE_DELETION, FileTablePurge(store, rows).plan_table(address.name).as_plain())
            raise RefusedError(f"nothing was deleted: repeat realm and table with --confirm {wanted} to go ahead")
        with session.progress(f"deletion of file table {wanted}") as progress:
            deleted = FileTablePurge(store, rows, progress=progress).delete_table(address.name).as_plain()
        session.show_done(
            FILE_TABLE_DELETION,
            deleted,
            f"file table {wanted} is deleted, with {count_text(deleted['files'], 'data file')}",
        )
