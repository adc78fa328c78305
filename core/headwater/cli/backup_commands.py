"""``headwater realm export``, ``import`` and ``restore``: a realm as an archive file, and a realm's earlier states."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from headwater.api.realm_archives import submit_realm_export, submit_realm_load
from headwater.api.realm_tasks import submit_restoration
from headwater.backup import read_archive_manifest
from headwater.cli.cli_session import CliSession
from headwater.cli.command_address import RESTORED_SCOPE, Address, address_argument
from headwater.cli.command_options import (
    AIM,
    FILE,
    TIME,
    author_option,
    confirm_option,
    detach_option,
    realm_argument,
)
from headwater.cli.local_run import run_or_detach
from headwater.clock import Micros
from headwater.console import DURATION, ResultView, ViewField, count_text, prints
from headwater.errors import RefusedError
from headwater.exits import FINDINGS
from headwater.jobs import RESTORE, run_export, run_load, run_restore
from headwater.outcome_text import has_findings, outcome_lines
from headwater.realms import RealmRegistry
from headwater.restore import RestoreAction, RestoreRequest, plan_restoration, read_restore_target
from headwater.store import checked_realm_id

_HELD: tuple[ViewField[dict[str, Any]], ...] = (
    ViewField("references", "references that it has"),
    ViewField("objects", "objects that it has"),
    ViewField("types", "the same by type", inside={".<type>": "objects of this type"}),
    ViewField("objectBytes", "bytes of these objects as they lie in a store"),
    ViewField("digest", "of all that; equal for equal realms, whatever their ids and wherever they lie"),
)

ARCHIVE: ResultView[dict[str, Any]] = ResultView(
    "archive",
    "archives",
    (
        ViewField("file", "where it was written to"),
        ViewField("realm", "the realm's id"),
        ViewField("asOf", "the moment that it shows"),
        ViewField(
            "importableFrom",
            "the first time at which it can be imported; null: now. It lies ahead where a clock was ahead",
            lambda outcome: outcome.get("importableFrom"),
        ),
        *_HELD,
        ViewField("fileBytes", "size of the file"),
    ),
)

LOADED: ResultView[dict[str, Any]] = ResultView(
    "imported realm",
    "imported realms",
    (
        ViewField("realm", "the realm that was made"),
        ViewField("state", "ACTIVE or INACTIVE"),
        ViewField("file", "the archive"),
        ViewField("exportedRealm", "the realm that it was made of"),
        ViewField("asOf", "the moment that it shows"),
        *_HELD,
    ),
)


def _sum(what: str) -> Callable[[Mapping[str, Any]], int]:
    return lambda step: sum(counts[what] for counts in step["changes"].values())


RESTORATION: ResultView[Mapping[str, Any]] = ResultView(
    "step of a restoration",
    "steps",
    (
        ViewField("reference", "a branch or tag, a catalog, or a reference of the realm", header="REFERENCE"),
        ViewField(
            "act",
            "restore: a commit on top · revive: it comes back · move: a tag is put where it was · update: a catalog's definition"
            " · delete: it was made later · keep: so, and it stays · lose: it cannot come back",
            header="ACT",
        ),
        ViewField("target", "the commit whose state is wanted; null: it held nothing", header="TARGET"),
        ViewField("put", "keys that come back", _sum("put"), "PUT"),
        ViewField("changed", "keys that change", _sum("changed"), "CHANGED"),
        ViewField("removed", "keys that go", _sum("removed"), "REMOVED"),
        ViewField("changes", "the same by type of content, or by index"),
        ViewField("commit", "the new commit; null: none, or not yet"),
        ViewField("note", "why, where that is not plain", header="NOTE"),
    ),
)


@click.command(name="export")
@realm_argument
@click.argument("file", metavar="FILE", type=FILE)
@click.option(
    "--as-of",
    metavar="TIME",
    type=TIME,
    help="The moment that is wanted, in UTC unless it names a zone. Default: now; where the realm is written to all the time, the"
    " newest that can be read at once, which is as old as a commit may take and clocks may differ.",
)
@click.option("--wait", is_flag=True, help="Wait until the moment can be read; without --as-of, the moment is now.")
@click.option(
    "--hold",
    metavar="DURATION",
    type=DURATION,
    help="Keep what the archive names, in the store and in the lake, for so long after the export began, such as 30d.",
)
@detach_option("Leave the work to a worker, which writes FILE on its own machine.")
@prints(ARCHIVE)
def export_realm_command(
    session: CliSession, realm_id: str, file: Path, as_of: Micros | None, wait: bool, hold: float | None, detach: bool
) -> None:
    """Export a realm as it was at one moment to a new FILE. Writers of the realm are not stopped.

    The file holds the realm's content without its history, and hashes of its credentials: only its owner can read it.
    """
    with session.open_store() as store:
        task = submit_realm_export(
            store, realm_id, file, warn=session.warn, as_of=as_of, wait=wait, hold_seconds=hold, detach=detach
        )
        outcome = run_or_detach(session, store, task, run_export, detach=detach)
    if outcome is not None:
        session.show_done(ARCHIVE, outcome, *outcome_lines("export", outcome))


@click.command(name="import")
@click.argument("file", metavar="FILE", type=FILE)
@realm_argument
@click.option("--inactive", is_flag=True, help="Leave the new realm INACTIVE; `headwater realm activate` lets it serve users.")
@detach_option("Leave the work to a worker, which reads FILE on its own machine.")
@prints(LOADED)
def import_realm_command(session: CliSession, file: Path, realm_id: str, inactive: bool, detach: bool) -> None:
    """Create a realm from an archive. After an interruption, run the same command to continue.

    The archive is checked as a whole before the realm is made, and the realm is read back before it serves anybody.
    """
    checked_realm_id(realm_id)
    if not detach:
        read_archive_manifest(file)
    with session.create_store() as store:
        task = submit_realm_load(store, file, realm_id, is_active=not inactive, detach=detach)
        outcome = run_or_detach(session, store, task, run_load, detach=detach)
    if outcome is not None:
        session.show_done(LOADED, outcome, *outcome_lines("load", outcome))


@click.command(name="restore")
@address_argument(RESTORED_SCOPE)
@click.argument("reference", metavar="[REFERENCE]", required=False, default="")
@click.option(
    "--to",
    "aim",
    metavar="COMMIT|TIME",
    type=AIM,
    required=True,
    help="A time such as 2026-05-28T20:26:40Z, or 90m for as long ago; for a branch or tag also a commit, or"
    " main~1 for the one before main's head now.",
)
@click.option("--prune", is_flag=True, help="Delete branches, tags and catalogs that were made later.")
@click.option("--dry-run", is_flag=True, help="Show the plan, and write nothing.")
@confirm_option("REALM")
@author_option
@detach_option()
@prints(RESTORATION, many=True)
def restore_command(
    session: CliSession,
    /,
    address: Address,
    reference: str,
    aim: str,
    prune: bool,
    dry_run: bool,
    confirm: str | None,
    detach: bool,
    author: str | None,
) -> int:
    """Restore a realm, a catalog of it, or a branch or tag such as acme/lake@main to an earlier state.

    REFERENCE is one of the realm's own references, such as grants; without it, all that the address names is restored.

    History is kept: the restore adds a new commit to each reference. Exit code 8 if a table stays away because others have its
    files by now.
    """
    if dry_run and detach:
        raise click.UsageError("--dry-run is done here: omit --detach")
    realm_id, reference = address.realm, _reference(address, reference)
    with session.open_store() as store:
        realms = RealmRegistry(store)
        realm = realms.read_realm(realm_id)
        rows = realms.open_realm(realm_id)
        target = read_restore_target(rows, reference, aim)
        request = RestoreRequest(reference=reference, aim=target, prune=prune, author=session.author(author))
        plan = plan_restoration(rows, request)
        if dry_run or not plan.is_needed or confirm != realm_id:
            _show(session, [step.as_plain() for step in plan.steps])
            if not dry_run and confirm not in (None, realm_id):
                raise RefusedError(f"nothing was restored: --confirm {confirm} does not repeat the id of realm {realm_id!r}")
            if not plan.is_needed:
                session.say("nothing is to be restored")
            elif not dry_run:
                raise RefusedError(f"nothing was restored: repeat the realm's id with --confirm {realm_id} to go ahead")
            return 0
        outcome = run_or_detach(session, store, submit_restoration(store, realm, request), run_restore, detach=detach)
    if outcome is None:
        return 0
    session.show_changes(RESTORATION, _needed(outcome["steps"]), *_restored_lines(realm_id, outcome["steps"]))
    for sentence in (*outcome["stayedAway"], *outcome["notes"]):
        session.warn(sentence)
    return FINDINGS if has_findings(RESTORE, outcome) else 0


def _reference(address: Address, reference: str) -> str:
    """What is restored, as a restoration names it: ``lake/main``, a catalog, a reference of the realm; empty for the whole realm."""
    if "/" in reference and not address.name:
        catalog, _, ref = reference.partition("/")
        raise click.UsageError(f"a branch or tag is part of the address: write {address.realm}/{catalog}@{ref}")
    if reference and address.name:
        raise click.UsageError(f"the address names what is restored: omit {reference}, or the catalog")
    return reference or address.name + ("" if address.ref is None else f"/{address.ref}")


def _show(session: CliSession, steps: Sequence[Mapping[str, Any]]) -> None:
    session.show_all(RESTORATION, _needed(steps))


def _needed(steps: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [step for step in steps if step["act"] != RestoreAction.NOTHING]


def _restored_lines(realm_id: str, steps: Sequence[Mapping[str, Any]]) -> list[str]:
    needed = _needed(steps)
    told = [f"{step['reference']}: {step['act']}" + (f", {step['note']}" if step["note"] else "") for step in needed]
    return [f"{count_text(len(needed), 'reference')} of realm {realm_id} restored", *(f"  {line}" for line in told)]
