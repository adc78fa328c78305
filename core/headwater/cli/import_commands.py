"""``headwater import``: tables that lie in some storage already, put into a catalog; and what became of each of them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import click

from headwater.api.catalog_imports import SurveyInProcess, import_spec, load_spark_survey, submit_import
from headwater.api.import_reports import check_report_file, dry_import_into, find_import_run, write_report
from headwater.catalogs import ContentKey, ImportSpec
from headwater.cli.cli_session import CliSession
from headwater.cli.command_address import Address, catalog_argument
from headwater.cli.command_options import (
    FILE,
    ID,
    KEY,
    author_option,
    detach_option,
)
from headwater.cli.local_run import run_or_detach
from headwater.console import ResultView, ViewField, count_text, prints
from headwater.errors import RefusedError
from headwater.exits import FINDINGS
from headwater.iceberg.survey_outcomes import TOLERABLE
from headwater.jobs import IMPORT as IMPORT_TASK
from headwater.jobs import run_import
from headwater.outcome_text import has_findings, outcome_lines
from headwater.store import ObjectId

IMPORT: ResultView[Mapping[str, Any]] = ResultView(
    "import",
    "imports",
    (
        ViewField("dryRun", "nothing was written"),
        ViewField("surveyed", "table folders: imported + updated + unchanged + quarantined"),
        ViewField("imported", "tables that are new in the catalog"),
        ViewField("updated", "tables that were moved forward"),
        ViewField("unchanged", "tables that were there already"),
        ViewField("known", "of these, where the latest metadata is another one that the catalog knows or its clients wrote"),
        ViewField("gone", "tables of the catalog whose metadata is gone, and that stay"),
        ViewField("dropped", "the same, and dropped from the catalog"),
        ViewField("namespaces", "namespaces that were created"),
        ViewField("rules", "how many tables' latest metadata was chosen by which rule"),
        ViewField(
            "commits",
            "what it wrote on the default branch",
            inside={".total": "how many", ".shown[]": "hashes, oldest first: the last 100"},
        ),
        ViewField(
            "quarantined",
            "tables that were left out, because something about them is wrong",
            inside={
                ".total": "how many",
                ".codes": "how many for which reason",
                ".shown[].table": "the first of them: key",
                ".shown[].code": "one word for the reason",
                ".shown[].message": "the reason, and what to do",
            },
        ),
    ),
    named_by="",
)


@click.command(name="import")
@catalog_argument
@click.argument("locations", metavar="LOCATION...", nargs=-1, required=True)
@click.option(
    "--include", metavar="PATTERN", multiple=True, help="Only tables whose key matches, such as 'sales.*'; may be repeated."
)
@click.option("--exclude", metavar="PATTERN", multiple=True, help="No tables whose key matches; may be repeated.")
@click.option(
    "--mode",
    type=click.Choice(["once", "sync"]),
    default="once",
    show_default=True,
    help="A table that is there with other metadata: once reports it, sync moves it forward.",
)
@click.option(
    "--path",
    metavar="PATTERN",
    help="How a path below a LOCATION gives a key, such as '{namespace}.db/{table}'.",
)
@click.option("--namespace", metavar="KEY", type=KEY, help="Put this in front of every key, such as 'lake.raw'.")
@click.option(
    "--inventory", metavar="URL", help="A list of files (CSV, Parquet, S3 Inventory) to read instead of listing each LOCATION."
)
@click.option(
    "--verify",
    type=click.Choice(["metadata", "manifests", "files"]),
    default="metadata",
    show_default=True,
    help="How far down each table is looked at: manifests reads these, files sees that all files are there.",
)
@click.option(
    "--tolerate",
    metavar="CODE",
    multiple=True,
    type=click.Choice(sorted(code.value for code in TOLERABLE)),
    help="Import a table although it has this fault, because query engines read such tables anyway; may be repeated.",
)
@click.option(
    "--gone",
    type=click.Choice(["report", "drop"]),
    default="report",
    show_default=True,
    help="What to do with tables of the catalog whose metadata files are gone; drop needs --mode sync.",
)
@click.option(
    "--report",
    "file",
    metavar="FILE",
    type=FILE,
    help="Write what became of each table to a file, as import-report does: .parquet or .html.",
)
@click.option("--dry-run", is_flag=True, help="Show what would be imported, and write nothing.")
@author_option
@detach_option()
@click.option(
    "--spark",
    "on_spark",
    is_flag=True,
    help="Survey on Spark, however few the tables are: here, or with --detach in the worker. A worker chooses by itself otherwise.",
)
@prints(IMPORT)
def import_tables_command(
    session: CliSession,
    /,
    address: Address,
    locations: tuple[str, ...],
    file: Path | None,
    dry_run: bool,
    detach: bool,
    on_spark: bool,
    author: str | None,
    **fields: Any,
) -> int:
    """Find the Iceberg tables and views below each LOCATION (a URL or a folder), and put the sound ones on the default branch.

    Exit code 8 if a table was quarantined: the others are imported all the same.
    """
    if fields["gone"] == "drop" and fields["mode"] != "sync":
        raise click.UsageError("--gone drop needs --mode sync: an import once only brings tables in")
    key: ContentKey | None = fields.pop("namespace")
    spec = import_spec(locations, namespace=() if key is None else key.elements, **fields)
    if file is not None:
        _check_kind(file)
        if detach:
            raise click.UsageError("--report needs the result: ask for it by import-report when the worker is done")
    if dry_run and detach:
        raise click.UsageError("--dry-run is done here: omit --detach")
    if dry_run and on_spark:
        raise click.UsageError("--dry-run surveys in this process: omit --spark")
    survey = load_spark_survey(session.settings) if on_spark and not detach else SurveyInProcess()
    outcome: dict[str, Any] | None
    with session.open_store() as store:
        if dry_run:
            with session.progress(f"dry run of the import into {address.without_ref}") as progress:
                outcome = dry_import_into(store, address.realm, address.name, spec, file, progress=progress)
        else:
            task = submit_import(store, address.realm, address.name, spec, author=session.author(author), on_spark=on_spark)
            outcome = run_or_detach(session, store, task, partial(run_import, survey=survey), detach=detach)
            if outcome is None:
                return 0
            if file is not None:
                write_report(store, find_import_run(store, address.realm, address.name, task), file)
    session.show_done(IMPORT, outcome, *outcome_lines("import", outcome))
    if not outcome["surveyed"]:
        session.warn(
            f"no Iceberg table was found below {', '.join(spec.locations)}"
            + (
                f" by these patterns, which are held against whole keys{_beginning(spec)}"
                if spec.include or spec.exclude
                else ""
            )
        )
    return FINDINGS if has_findings(IMPORT_TASK, outcome) else 0


@click.command(name="import-report")
@catalog_argument
@click.argument("file", metavar="FILE", type=FILE)
@click.option("--task", metavar="ID", type=ID, help="The import of this task; default is the last one.")
@click.pass_obj
def import_report_command(session: CliSession, address: Address, file: Path, task: ObjectId | None) -> None:
    """Write what became of each table in the last import to FILE: a Parquet file (.parquet), or a page of HTML (.html).

    The Parquet file has a row for every table folder that was looked at. The page has numbers, pictures, and all tables that were
    left out, each with the reason. A file of that name is replaced.
    """
    _check_kind(file)
    with session.open_store() as store:
        rows = write_report(store, find_import_run(store, address.realm, address.name, task), file)
    session.say(f"report of {count_text(rows, 'table')} written to {file}")


def _beginning(spec: ImportSpec) -> str:
    return f", such as {ContentKey((*spec.namespace, 'table'))}" if spec.namespace else ""


def _check_kind(file: Path) -> None:
    try:
        check_report_file(file)
    except RefusedError as wrong:
        raise click.UsageError(str(wrong)) from wrong
