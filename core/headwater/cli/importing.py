"""``headwater import``: tables that lie in some storage already, put into a catalog."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import click
import msgspec

from headwater.catalogs import Catalogs, ImportSpec
from headwater.catalogs.iceberg import survey_in_process
from headwater.cli.failures import FINDINGS
from headwater.cli.options import prints
from headwater.cli.reports import IMPORT
from headwater.cli.running import run_task
from headwater.cli.session import Session
from headwater.cli.views import TASK
from headwater.maintenance import IMPORT as IMPORT_TASK
from headwater.maintenance import dry_import, run_import
from headwater.realms import Realms
from headwater.store import Store
from headwater.tasks import Claim, Tasks

__all__ = ["import_"]

BY_HAND = "by hand"


@click.command(name="import")
@click.argument("realm_id", metavar="REALM")
@click.argument("name", metavar="CATALOG")
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
@click.option("--dry-run", is_flag=True, help="Show what would be imported, and write nothing.")
@click.option("--detach", is_flag=True, help="Leave the work to a worker instead of doing it here.")
@prints(IMPORT)
@click.pass_context
def import_(
    ctx: click.Context,
    realm_id: str,
    name: str,
    locations: tuple[str, ...],
    include: tuple[str, ...],
    exclude: tuple[str, ...],
    mode: Literal["once", "sync"],
    dry_run: bool,
    detach: bool,
) -> None:
    """Find the Iceberg tables below each LOCATION (a URL or a folder), and put the sound ones on the default branch.

    Exit code 8 if a table was quarantined: the others are imported all the same.
    """
    session = ctx.ensure_object(Session)
    spec = ImportSpec(name=BY_HAND, locations=tuple(map(_url, locations)), mode=mode, include=include, exclude=exclude)
    with session.open_store() as store:
        if dry_run:
            outcome: dict[str, Any] = dry_import(store, realm_id, name, spec).outcome()
        else:
            realm = Realms(store).read(realm_id)
            definition = Catalogs(Realms(store).open(realm_id)).read(name)
            submitted = Tasks(store).submit(
                IMPORT_TASK,
                realm=realm.id,
                realm_key=realm.key,
                subject=f"{name}/{BY_HAND}/{spec.digest()[:8]}",
                arguments={
                    "catalog": name,
                    "catalogId": definition.id,
                    "spec": msgspec.json.decode(msgspec.json.encode(spec)),
                },
            )
            if detach:
                session.show(TASK, Tasks(store).read(submitted.id))
                return
            outcome = run_task(session, store, submitted.id, lambda claim: _do(store, claim)).value.outcome or {}
    session.show(IMPORT, outcome)
    if not outcome["surveyed"]:
        session.warn(
            f"no Iceberg table was found below {', '.join(spec.locations)}"
            + (" by these patterns" if include or exclude else "")
        )
    ctx.exit(FINDINGS if outcome["quarantined"]["total"] else 0)


def _do(store: Store, claim: Claim) -> dict[str, Any]:
    return run_import(
        store, claim, survey=lambda scope, progress: survey_in_process(scope, progress=progress), engine="process (by hand)"
    )


def _url(location: str) -> str:
    """A URL as it is; a folder as the URL of its absolute path."""
    return location if "://" in location else Path(location).absolute().as_uri()
