"""``headwater realm export`` and ``headwater realm import``: a realm as a file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from headwater.cli.archive_reports import ARCHIVE, LOADED
from headwater.cli.options import TIME, prints
from headwater.cli.running import run_task
from headwater.cli.session import Session
from headwater.cli.views import TASK
from headwater.clock import Micros, as_text
from headwater.errors import RefusedError
from headwater.maintenance.archives import check_head, check_importable, check_order, is_swept, readable_from
from headwater.maintenance.work import EXPORT, LOAD, run_export, run_load
from headwater.maintenance.work.archive_tasks import place_arguments
from headwater.realms import Realm, Realms
from headwater.store import Store, checked_realm_id, id_text
from headwater.tasks import Submitted, Tasks

__all__ = ["export_", "import_"]


_FILE = click.Path(dir_okay=False, path_type=Path)
_SWEEP_SECONDS = 600


@click.command(name="export")
@click.argument("realm_id", metavar="REALM")
@click.argument("file", metavar="FILE", type=_FILE)
@click.option(
    "--as-of",
    metavar="TIME",
    type=TIME,
    help="The moment that is wanted, in UTC unless it names a zone. Default: the newest that can be read at once,"
    " which is as old as a commit may take and clocks may differ.",
)
@click.option("--wait", is_flag=True, help="Wait until the moment can be read; without --as-of, the moment is now.")
@click.option("--detach", is_flag=True, help="Leave the work to a worker, which writes FILE on its own machine.")
@prints(ARCHIVE)
@click.pass_obj
def export_(session: Session, realm_id: str, file: Path, as_of: Micros | None, wait: bool, detach: bool) -> None:
    """Write a realm as it was at one moment to a new FILE, while it goes on being written to.

    The file holds the realm's content without its history, and hashes of its credentials: only its owner can read it.
    """
    with session.open_store() as store:
        realm = Realms(store).read(realm_id)
        time = store.clock.now() if wait and as_of is None else as_of
        due = _ready(session, store, time, wait=wait, detach=detach)
        if due is None:
            check_order(store, realm_id, time)
        if file.exists() and not detach:
            raise RefusedError(f"there is a file {str(file)!r} already: nothing is overwritten, name another one")
        if not detach:
            _await_sweep(session, store, realm, time)
        arguments = place_arguments(file, is_here=not detach) | ({} if time is None else {"asOf": time})
        submitted = Tasks(store).submit(
            EXPORT, realm=realm.id, realm_key=realm.key, subject=arguments["file"], arguments=arguments, due=due
        )
        _check_same(store, submitted, arguments)
        if detach:
            session.show(TASK, Tasks(store).read(submitted.id))
            return
        ended = run_task(session, store, submitted.id, lambda claim: run_export(store, claim))
        session.show(ARCHIVE, ended.value.outcome or {})


@click.command(name="import")
@click.argument("file", metavar="FILE", type=_FILE)
@click.argument("realm_id", metavar="REALM")
@click.option("--inactive", is_flag=True, help="Leave the new realm INACTIVE; `headwater realm activate` lets it serve users.")
@click.option("--detach", is_flag=True, help="Leave the work to a worker, which reads FILE on its own machine.")
@prints(LOADED)
@click.pass_obj
def import_(session: Session, file: Path, realm_id: str, inactive: bool, detach: bool) -> None:
    """Make a new realm of an archive. Interrupted, the same command goes on where it was.

    The archive is checked as a whole before the realm is made, and the realm is read back before it serves anybody.
    """
    checked_realm_id(realm_id)
    if not detach:
        check_head(file)
    with session.create_store() as store:
        arguments = place_arguments(file, is_here=not detach) | {"inactive": inactive}
        if not any(seen.value.is_active for seen in Tasks(store).list(kind=LOAD, realm=realm_id)):
            check_importable(Realms(store).find(realm_id))  # an import under way may be further than that
        submitted = Tasks(store).submit(LOAD, realm=realm_id, arguments=arguments)
        _check_same(store, submitted, arguments)
        if detach:
            session.show(TASK, Tasks(store).read(submitted.id))
            return
        ended = run_task(session, store, submitted.id, lambda claim: run_load(store, claim))
        session.show(LOADED, ended.value.outcome or {})


def _ready(session: Session, store: Store, time: Micros | None, *, wait: bool, detach: bool) -> Micros | None:
    """Wait until a moment can be read; where a worker is to wait, say until when."""
    if time is None or not wait:
        return None
    ready = readable_from(time, store.settings)
    if detach:
        return ready
    if store.clock.now() < ready:
        session.warn(f"waiting until {as_text(ready + 999_999)}, when {as_text(time)} can be read")
    while (left := ready - store.clock.now()) >= 0:
        store.clock.sleep(left / 1_000_000 + 0.001)
    return None


def _await_sweep(session: Session, store: Store, realm: Realm, time: Micros | None) -> None:
    """Wait while a collection sweeps, for nothing can be pinned: not for ever, and only as long as the moment can still be told."""
    rows = store.rows(realm.id, realm.key)
    if not is_swept(rows):
        return
    session.warn(
        f"realm {realm.id!r} is being swept, and nothing can be pinned: waiting for its end, 10 minutes at most"
        f" (if it was interrupted, `headwater gc run {realm.id}` ends it)"
    )
    until = store.clock.now() + _SWEEP_SECONDS * 1_000_000
    if time is not None:
        until = min(until, time + round((store.settings.reader_grace_seconds - 1) * 1_000_000))
    while store.clock.now() < until and is_swept(rows):
        store.clock.sleep(1)


def _check_same(store: Store, submitted: Submitted, arguments: Mapping[str, Any]) -> None:
    """A task that is under way already must be the one that was asked for."""
    task = Tasks(store).read(submitted.id).value
    if task.arguments | {"host": ""} != {**arguments, "host": ""}:
        raise RefusedError(
            f"task {id_text(submitted.id)} ({task}) is under way with {task.arguments}: wait for it, or cancel it"
        )
