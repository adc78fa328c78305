"""``headwater snapshots``: the snapshots of a table, and their expiry by policies or as asked once. Deletes no file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click
import msgspec

from headwater.catalogs import ContentKey
from headwater.cli.cli_session import CliSession, opened_catalog
from headwater.cli.command_address import Address, catalog_argument, catalog_ref_argument
from headwater.cli.command_options import KEY, TIME, author_option, detach_option
from headwater.cli.local_run import run_or_detach
from headwater.clock import Micros
from headwater.console import ResultView, ViewField, prints, time_field
from headwater.errors import NotFoundError, RefusedError
from headwater.expiry import dry_expiry, read_expiry_request, run_expiry, submit_expiry
from headwater.iceberg.metadata_json import snapshots_with_refs
from headwater.outcome_text import outcome_lines

EXPIRY: ResultView[Mapping[str, Any]] = ResultView(
    "expiry",
    "expiries",
    (
        ViewField("realm", "the realm's id"),
        ViewField("catalog", "the catalog"),
        ViewField("dryRun", "nothing was written"),
        ViewField("branches", "branches whose tables were passed"),
        ViewField("unchanged", "tables that were not read: they are as they were, and nothing of them is due"),
        ViewField("looked", "tables whose metadata was read"),
        ViewField("inherited", "tables that a branch has as it got them from the default branch, where they expire"),
        ViewField("guests", "tables that another system may write: adopt them with `headwater table adopt`"),
        ViewField("refused", "tables that were left alone, by reason: GcDisabled, Encrypted, FormatTooNew"),
        ViewField("unreadable", "tables whose metadata could not be read"),
        ViewField("changed", "tables that got a version without what expired"),
        ViewField("snapshots", "snapshots that went"),
        ViewField("refs", "branches and tags of tables that went"),
        ViewField("logEntries", "entries of snapshot logs that went"),
        ViewField("logFiles", "entries of metadata logs that went by a policy"),
        ViewField("statistics", "statistics files of expired snapshots that are no longer named"),
        ViewField("commits", "commits that were made"),
        ViewField("conflicts", "how often another commit to a table was faster"),
        ViewField("left", "of these tables, those that are left to the next run"),
        ViewField("notes", "what a person should know"),
    ),
    named_by="realm/catalog",
)


def _snapshot_time(snapshot: Mapping[str, Any]) -> Micros:
    return Micros(1000 * int(snapshot["timestamp-ms"]))


SNAPSHOT: ResultView[Mapping[str, Any]] = ResultView(
    "snapshot",
    "snapshots",
    (
        ViewField("snapshotId", "its id", lambda each: each["snapshot-id"], "SNAPSHOT"),
        ViewField("parentId", "the snapshot before it; null: none", lambda each: each.get("parent-snapshot-id"), "PARENT"),
        ViewField("time", "when it was made", _snapshot_time, "TIME", time_field),
        ViewField("operation", "what it did", lambda each: (each.get("summary") or {}).get("operation"), "OPERATION"),
        ViewField("refs", "the table's branches and tags on it", lambda each: each["refs"], "REFS"),
    ),
)

snapshots = click.Group("snapshots", help="List the snapshots of tables, and expire them. No file is deleted.")


@snapshots.command(name="expire")
@catalog_argument
@click.option("--branch", metavar="PATTERN", default="*", help="Only on branches with such a name, such as etl/*.")
@click.option("--table", "tables", metavar="KEY", type=KEY, multiple=True, help="Only this table; may be repeated.")
@click.option(
    "--older-than",
    type=TIME,
    metavar="TIME",
    help="Expire what is older, whatever policies and properties of tables say; 7d is as long ago. Limits of a branch or tag stand before.",
)
@click.option(
    "--retain-last",
    type=click.IntRange(min=1),
    metavar="COUNT",
    help="Keep so many snapshots of each branch of a table, whatever policies and properties of tables say.",
)
@click.option("--dry-run", is_flag=True, help="Count what would go, and write nothing.")
@author_option
@detach_option()
@prints(EXPIRY)
def expire_snapshots_command(
    session: CliSession,
    address: Address,
    branch: str,
    tables: tuple[ContentKey, ...],
    older_than: Micros | None,
    retain_last: int | None,
    dry_run: bool,
    author: str | None,
    detach: bool,
) -> None:
    """Commit metadata without the snapshots, branches and tags of tables that policies let go. Guests are left alone."""
    if dry_run and detach:
        raise click.UsageError("--dry-run is done here: omit --detach")
    keys = tuple(key.elements for key in tables)
    with session.open_store() as store:
        request = read_expiry_request(
            store,
            address.realm,
            address.name,
            branches=branch,
            keys=keys,
            older_than=older_than,
            keep=retain_last,
            author=session.author(author),
        )
        if dry_run:
            with session.progress(f"dry run of the expiry of {address.without_ref}") as progress:
                planned = dry_expiry(store, address.realm, request, progress=progress).as_plain()
            session.show(EXPIRY, planned)
            return
        task_id = submit_expiry(store, address.realm, request).id
        outcome = run_or_detach(session, store, task_id, run_expiry, detach=detach)
    if outcome is not None:
        session.show_done(EXPIRY, outcome, *outcome_lines("expire-snapshots", outcome))


@snapshots.command(name="list")
@catalog_ref_argument
@click.argument("key", metavar="KEY", type=KEY)
@prints(SNAPSHOT, many=True)
def list_snapshots_command(session: CliSession, address: Address, key: ContentKey) -> None:
    """List the snapshots of a table, oldest first, each with the table's branches and tags on it."""
    with opened_catalog(session, address) as catalog:
        text = catalog.metadata(address.ref, key)
        content = None if text is not None else catalog.get_content(address.ref, key)
    if text is None:
        if content is None:
            raise NotFoundError(f"there is no {key} in catalog {address.name!r}")
        raise RefusedError(f"the metadata of {key} is not stored in catalog {address.name!r}, only in its file")
    session.show_all(SNAPSHOT, list(snapshots_with_refs(msgspec.json.decode(text))))
