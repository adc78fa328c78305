"""``headwater realm restore``: what was, again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

from headwater.cli.authors import author_option, person
from headwater.cli.failures import FINDINGS
from headwater.cli.options import AIM, confirm_option, prints
from headwater.cli.restoration_reports import RESTORATION
from headwater.cli.running import run_task
from headwater.cli.session import Session
from headwater.cli.views import TASK
from headwater.errors import RefusedError
from headwater.maintenance import RESTORE, run_restore
from headwater.maintenance.restoring import Act, Aim, Request, plan_restoration
from headwater.realms import Realm, Realms
from headwater.store import ObjectId, Store, id_text
from headwater.tasks import Tasks

__all__ = ["restore"]


@click.command(name="restore")
@click.argument("realm_id", metavar="REALM")
@click.argument("reference", metavar="[REFERENCE]", required=False, default="")
@click.option(
    "--to",
    "aim",
    metavar="COMMIT|TIME",
    type=AIM,
    required=True,
    help="A commit (of one reference), a time such as 2026-05-28T20:26:40Z, or 90m for as long ago.",
)
@click.option("--prune", is_flag=True, help="Delete branches, tags and catalogs that were made later.")
@click.option("--dry-run", is_flag=True, help="Show the plan, and write nothing.")
@confirm_option("REALM")
@author_option
@click.option("--detach", is_flag=True, help="Leave the work to a worker instead of doing it here.")
@prints(RESTORATION, many=True)
@click.pass_context
def restore(
    ctx: click.Context,
    realm_id: str,
    reference: str,
    aim: str,
    prune: bool,
    dry_run: bool,
    confirm: str | None,
    detach: bool,
    author: str | None,
) -> None:
    """Let a realm hold again what it held: REFERENCE is a branch or tag such as lake/main, a catalog, or a reference such as grants;
    without it, the whole realm.

    History goes on: it is a new commit on each reference. Exit code 8 if a table stays away because others have its files by now.
    """
    session = ctx.ensure_object(Session)
    if dry_run and detach:
        raise click.UsageError("--dry-run is done here: omit --detach")
    with session.open_store() as store:
        realms = Realms(store)
        found = realms.read(realm_id)
        request = Request(reference=reference, aim=Aim.parse(aim, store.clock.now()), prune=prune, author=author or person())
        plan = plan_restoration(realms.open(realm_id), request)
        if dry_run or not plan.is_needed or confirm != realm_id:
            _show(session, [step.as_plain() for step in plan.steps])
            if not dry_run and confirm not in (None, realm_id):
                raise RefusedError(f"nothing was restored: --confirm {confirm} does not repeat the id of realm {realm_id!r}")
            if not plan.is_needed:
                session.say("nothing is to be restored")
            elif not dry_run:
                raise RefusedError(f"nothing was restored: repeat the realm's id with --confirm {realm_id} to go ahead")
            return
        task = _submit(store, found, request)
        if detach:
            session.show(TASK, Tasks(store).read(task))
            return
        outcome = run_task(session, store, task, lambda claim: run_restore(store, claim)).value.outcome or {}
    _show(session, outcome["steps"])
    for sentence in (*outcome["stayedAway"], *outcome["notes"]):
        session.warn(sentence)
    ctx.exit(FINDINGS if outcome["conflicts"] else 0)


def _submit(store: Store, realm: Realm, request: Request) -> ObjectId:
    tasks, arguments = Tasks(store), request.arguments()
    submitted = tasks.submit(RESTORE, realm=realm.id, realm_key=realm.key, subject=request.reference, arguments=arguments)
    task = tasks.read(submitted.id).value
    if not request.is_same(task.arguments):
        raise RefusedError(
            f"task {id_text(submitted.id)} ({task}) is under way with {task.arguments}: wait for it, or cancel it"
        )
    return submitted.id


def _show(session: Session, steps: Sequence[Mapping[str, Any]]) -> None:
    session.show_all(RESTORATION, [step for step in steps if step["act"] != Act.NOTHING])
