"""``headwater gc``: collecting garbage, what became of it, and why something is still there."""

from __future__ import annotations

import click

from headwater.cli.options import ID, prints
from headwater.cli.reports import COLLECTION, EXPLANATION, RUN
from headwater.cli.running import run_task
from headwater.cli.session import Session
from headwater.cli.views import TASK
from headwater.maintenance import COLLECT, collect, explain, list_runs, run_collection
from headwater.realms import Realms
from headwater.store import SYSTEM_REALM, ObjectId, Store
from headwater.tasks import Tasks

__all__ = ["gc"]


@click.group()
def gc() -> None:
    """Collect garbage, and tell what is kept and why."""


@gc.command()
@click.argument("realm_id", metavar="REALM")
@click.option("--dry-run", is_flag=True, help="Show what would be deleted, and delete nothing.")
@click.option("--detach", is_flag=True, help="Leave the work to a worker instead of doing it here.")
@prints(COLLECTION)
@click.pass_obj
def run(session: Session, realm_id: str, dry_run: bool, detach: bool) -> None:
    """Collect the garbage of a realm, or of ::system::, now."""
    with session.open_store() as store:
        if dry_run:
            session.show(COLLECTION, collect(store, realm_id, dry_run=True).as_plain())
            return
        submitted = Tasks(store).submit(COLLECT, realm=realm_id, realm_key=_key(store, realm_id))
        if detach:
            Tasks(store).run_now(submitted.id)
            session.show(TASK, Tasks(store).read(submitted.id))
            return
        ended = run_task(session, store, submitted.id, lambda claim: run_collection(store, claim))
        session.show(COLLECTION, ended.value.outcome or {})


@gc.command()
@click.option("--realm", metavar="REALM", help="Only runs on this realm.")
@click.option("--kind", metavar="KIND", help="Only runs of this kind: gc, purge or import.")
@click.option("--limit", metavar="COUNT", type=click.IntRange(min=1), default=50, show_default=True, help="At most so many.")
@prints(RUN, many=True)
@click.pass_obj
def log(session: Session, realm: str | None, kind: str | None, limit: int) -> None:
    """List the last runs of maintenance, newest first, with what each did."""
    with session.open_store() as store:
        session.show_all(RUN, list_runs(store, kind=kind, realm=realm, limit=limit))


@gc.command(name="explain")
@click.argument("realm_id", metavar="REALM")
@click.argument("object_id", metavar="ID", type=ID)
@prints(EXPLANATION)
@click.pass_obj
def explain_(session: Session, realm_id: str, object_id: ObjectId) -> None:
    """Tell why an object is kept, or when it goes."""
    with session.open_store() as store:
        session.show(EXPLANATION, explain(store, realm_id, object_id))


def _key(store: Store, realm_id: str) -> int:
    return 0 if realm_id == SYSTEM_REALM else Realms(store).read(realm_id).key
