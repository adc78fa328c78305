"""``headwater file-table ingest``, ``query``, ``split`` and ``compact``: the rows of file tables, in this process by pyarrow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headwater.api.file_table_rows import load_file_work, read_parquet_rows
from headwater.api.locations import folder_location
from headwater.cli.cli_session import CliSession, opened_file_table
from headwater.cli.command_address import Address, file_table_argument
from headwater.cli.command_options import FILE
from headwater.console import ResultView, ViewField, count_text, prints, result_options
from headwater.durability import replacing
from headwater.exits import FINDINGS
from headwater.files import FileTable, RowKeyRange, TrackedFile
from headwater.files.compaction import CompactionReport, CompactionRules, CompactionStrategy, compact_table
from headwater.files.ingestion import ingest_rows
from headwater.files.leaf_splits import SplitPlan, plan_splits, split_large_leaves
from headwater.files.row_query import query_rows
from headwater.text_tables import text_table

if TYPE_CHECKING:
    import pyarrow as pa

_spark_option = click.option("--spark", "on_spark", is_flag=True, help="Do it on Spark, with the master of the settings.")

INGESTED_FILE: ResultView[TrackedFile] = ResultView(
    "ingested file",
    "new files",
    (
        ViewField("file", "the file that was written", "filename", "FILE"),
        ViewField("rows", "its rows", header="ROWS"),
        ViewField("partitions", "how many partitions refer to it", lambda file: len(file.references), "PARTITIONS"),
    ),
)


@click.command(name="ingest")
@file_table_argument
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@click.option(
    "--request",
    metavar="NAME",
    default="",
    help="A name for this ingest, such as the day of its data: the same ingest, asked for again, then does nothing.",
)
@_spark_option
@prints(INGESTED_FILE, many=True)
def ingest_command(session: CliSession, address: Address, files: tuple[str, ...], request: str, on_spark: bool) -> None:
    """Add the rows of Parquet files (URLs or paths), in any order, to a file table. All or none are added.

    With --spark it prints a sentence instead of the new files.
    """
    locations = [folder_location(file) for file in files]
    if on_spark:
        load_file_work(session.settings).ingest_files(address.realm, address.name, locations, request=request)
        session.say(f"the rows of {count_text(len(files), 'file')} are in file table {address.name!r}")
        return
    with opened_file_table(session, address) as (_, table):
        ingested = ingest_rows(table, read_parquet_rows(locations), request=request)
    rows = sum(file.rows for file in ingested)
    told = f"{count_text(rows, 'row')} are in file table {address.without_ref}, in {count_text(len(ingested), 'new file')}"
    session.show_changes(INGESTED_FILE, ingested, *([told] if ingested else []))
    if request and not ingested:
        session.warn(f"the ingest {request!r} was done before: nothing was added")


@click.command(name="query")
@file_table_argument
@click.option("--key", metavar="KEY", help="Only rows of this key (binary ones in hex).")
@click.option("--from", "low", metavar="KEY", help="Only rows from this key on.")
@click.option("--to", "high", metavar="KEY", help="Only rows below this key.")
@click.option("--column", "columns", metavar="NAME", multiple=True, help="Only this column; may be repeated.")
@click.option(
    "--limit", metavar="COUNT", type=click.IntRange(min=1), default=100, show_default=True, help="At most so many rows."
)
@click.option("--into", "file", metavar="FILE", type=FILE, help="Write all rows to a Parquet file instead.")
@result_options
@click.pass_obj
def query_command(
    session: CliSession,
    address: Address,
    key: str | None,
    low: str | None,
    high: str | None,
    columns: tuple[str, ...],
    limit: int,
    file: Path | None,
) -> None:
    """Print rows of a file table by their key, sorted, as of one moment."""
    with opened_file_table(session, address) as (_, table):
        rows = query_rows(table, _range(table, key, low, high), columns=columns)
    if file is not None:
        _write_parquet(file, rows)
        session.say(f"{count_text(rows.num_rows, 'row')} written to {file}")
        return
    shown = [{name: _plain(value) for name, value in row.items()} for row in rows.slice(0, limit).to_pylist()]
    heads = list(rows.column_names)
    cells = [[row[head] for head in heads] for row in shown]
    session.print_result(shown, lambda: text_table(heads, cells, layout=session.layout) if shown else [])
    if rows.num_rows > limit:
        session.warn(f"{rows.num_rows - limit} more rows: raise --limit, or write all of them to a file with --into")


def _range(table: FileTable, key: str | None, low: str | None, high: str | None) -> RowKeyRange:
    if key is not None and (low is not None or high is not None):
        raise click.UsageError("--key names one key: omit --from and --to")
    key_type = table.definition.key_type

    def encoded(text: str | None) -> bytes | None:
        return None if text is None else key_type.encode_key(key_type.parse_key(text))

    if key is not None:
        wanted = key_type.encode_key(key_type.parse_key(key))
        return RowKeyRange(wanted, wanted + b"\0")
    return RowKeyRange(encoded(low), encoded(high))


def _plain(value: Any) -> Any:
    """A value as JSON can hold it: bytes in hex, times and decimals as text."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _write_parquet(file: Path, rows: pa.Table) -> None:
    from pyarrow import parquet

    with replacing(file) as part:
        parquet.write_table(rows, part, compression="zstd")


def _leaves(plan: Mapping[str, Any]) -> list[dict[str, Any]]:
    split: SplitPlan = plan["plan"]
    key_type = plan["table"].definition.key_type
    shown = []
    for leaf, rows in sorted(split.rows.items()):
        points = [point for partition, point in sorted(split.points.items()) if partition.startswith(leaf)]
        keys = [key_type.decode_key(point) for point in sorted(points)]
        shown.append({"leaf": leaf, "rows": rows, "points": [_plain(key) for key in keys], "unsplit": split.unsplit.get(leaf)})
    return shown


SPLIT: ResultView[Mapping[str, Any]] = ResultView(
    "split of a file table",
    "splits",
    (
        ViewField("dryRun", "nothing was split"),
        ViewField(
            "large",
            "the leaves that have too many rows",
            _leaves,
            inside={
                "[].leaf": "its path from the root r",
                "[].rows": "about how many",
                "[].points": "the keys at which it is split",
                "[].unsplit": "why it cannot be split; null: it can",
            },
        ),
        ViewField("leaves", "leaves of the tree now"),
        ViewField("treeNumber", "number of the newest change of the tree"),
    ),
    named_by="",
)


@click.command(name="split")
@file_table_argument
@click.option(
    "--leaf-rows",
    metavar="COUNT",
    type=click.IntRange(min=1),
    help="Split leaves with more rows than this; default is the setting.",
)
@click.option("--dry-run", is_flag=True, help="Show where leaves would be split, and split none.")
@prints(SPLIT)
def split_command(session: CliSession, address: Address, leaf_rows: int | None, dry_run: bool) -> None:
    """Split large leaves at keys that divide their rows evenly. No file is rewritten; partitions are never joined again."""
    leaf_rows = leaf_rows or session.settings.files_leaf_rows
    with opened_file_table(session, address) as (_, table):
        if dry_run:
            plan, tree = plan_splits(table, leaf_rows=leaf_rows), table.read_tree()
        else:
            plan, tree = split_large_leaves(table, leaf_rows=leaf_rows)
        figures = {"leaves": len(tree.leaf_ids()), "treeNumber": tree.number}
        result = {"dryRun": dry_run, "plan": plan, "table": table, **figures}
        if dry_run:
            session.show(SPLIT, result)
        else:
            session.show_done(SPLIT, result, f"file table {address.without_ref} has {figures['leaves']} leaves")


def _reasons(pairs: Sequence[tuple[str, str]]) -> list[dict[str, str]]:
    return [{"job": job, "reason": reason} for job, reason in pairs]


COMPACTION: ResultView[CompactionReport] = ResultView(
    "compaction of a file table",
    "compactions",
    (
        ViewField("applied", "jobs that replaced several files of a leaf by one", lambda report: len(report.applied)),
        ViewField("rows", "rows that these jobs wrote"),
        ViewField(
            "refused",
            "jobs that came too late; nothing is lost",
            lambda report: _reasons(report.refused),
            inside={"[].job": "its id", "[].reason": "why"},
        ),
        ViewField(
            "failed",
            "jobs that could not be executed; their files stay assigned, and a later compaction tries again",
            lambda report: _reasons(report.failed),
            inside={"[].job": "its id", "[].reason": "why"},
        ),
    ),
    named_by="",
)


@click.command(name="compact")
@file_table_argument
@click.option(
    "--strategy",
    type=click.Choice([strategy.value for strategy in CompactionStrategy]),
    default=CompactionStrategy.SIZE_RATIO.value,
    show_default=True,
    help="Which files of a leaf: those of similar size, the smallest in full batches, or all.",
)
@click.option("--batch", metavar="COUNT", type=click.IntRange(min=2), help="Files of one job, at most; default is the setting.")
@_spark_option
@prints(COMPACTION)
def compact_command(session: CliSession, address: Address, strategy: str, batch: int | None, on_spark: bool) -> int:
    """Merge files of each leaf into one, here or on Spark. Files that were merged are deleted by a later collection.

    Exit code 8 if a job failed.
    """
    settings = session.settings
    rules = CompactionRules(strategy=CompactionStrategy(strategy), batch=batch or settings.files_compaction_batch)
    with opened_file_table(session, address) as (_, table):
        table.check_writable()
        if not on_spark:
            report = compact_table(table, rules, lease_seconds=settings.files_compaction_lease_seconds)
    if on_spark:
        report = load_file_work(settings).compact_table(address.realm, address.name, rules)
    told = (
        f"{count_text(len(report.applied), 'job')} of file table {address.without_ref} applied, {len(report.refused)} refused"
    )
    failed = [f"{len(report.failed)} failed: {report.failed[0][1]}"] if report.failed else []
    session.show_done(COMPACTION, report, told, *failed)
    return FINDINGS if report.failed else 0
