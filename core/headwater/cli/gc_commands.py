"""``headwater gc``: collections of garbage, and explanations of why an object is kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from headwater.catalogs import Catalog
from headwater.cli.cli_session import CliSession
from headwater.cli.command_address import Address, realm_address_argument, scope_ref_argument
from headwater.cli.command_options import ID, detach_option
from headwater.cli.local_run import run_or_detach
from headwater.cli.run_commands import alias_of, list_runs_command, report_runs_command
from headwater.console import ResultView, ViewField, prints, time_after
from headwater.errors import NotFoundError
from headwater.fsck.explanation import Explanation, explain
from headwater.gc import check_collectable, collect_realm
from headwater.jobs import COLLECT, run_collection
from headwater.outcome_text import outcome_lines
from headwater.realms import RealmRegistry
from headwater.store import ObjectId, Store, confirm_clock, id_text
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


for name, command in (("log", list_runs_command), ("report", report_runs_command)):
    gc.add_command(alias_of(command), name)


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
