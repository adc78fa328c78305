"""``headwater realm``: the life cycle of realms, from creation to deletion."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import click

from headwater.catalogs import Catalogs
from headwater.cli.backup_commands import export_realm_command, import_realm_command, restore_command
from headwater.cli.cli_session import CliSession
from headwater.cli.command_options import DURATION, confirm_option, prints, properties_option
from headwater.cli.credentials_commands import (
    check_place,
    ensure_credentials,
    reset_credentials_command,
    rotate_credentials_command,
)
from headwater.cli.local_run import run_task_here
from headwater.cli.result_views import PURGE_PLAN, REALM, PurgePlan, RealmRow
from headwater.cli.task_views import TASK
from headwater.errors import RefusedError, SwapConflictError
from headwater.jobs import PURGE, run_purge
from headwater.realms import (
    Credentials,
    Realm,
    RealmRegistry,
    RealmState,
    bootstrap,
    check_bootstrap,
    find_root,
    hash_credentials,
    hold_until,
    verify_secret,
)
from headwater.reconcile import release_realm
from headwater.store import Store, checked_realm_id
from headwater.tasks import TaskQueue

FRESH = (RealmState.CREATED, RealmState.INITIALIZING)


@click.group(name="realm")
def realm() -> None:
    """List, create, move and delete realms."""


realm.add_command(export_realm_command)
realm.add_command(import_realm_command)
realm.add_command(restore_command)
realm.add_command(rotate_credentials_command)
realm.add_command(reset_credentials_command)


@realm.command(name="list")
@prints(REALM, many=True)
@click.pass_obj
def list_realms_command(session: CliSession) -> None:
    """List all realms."""
    with session.open_store() as store:
        listed = RealmRegistry(store).list_realms()
        rows = [_row(store, found) for found in listed]
    session.show_all(REALM, rows)
    session.warn_of(listed)


@realm.command(name="show")
@click.argument("realm_id", metavar="REALM")
@prints(REALM)
@click.pass_obj
def show_realm_command(session: CliSession, realm_id: str) -> None:
    """Show everything about one realm."""
    with session.open_store() as store:
        session.show(REALM, _row(store, RealmRegistry(store).read_realm(realm_id)))


@realm.command(name="create")
@click.argument("realm_id", metavar="REALM")
@click.option(
    "--credentials",
    "file",
    metavar="FILE",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="New file for the root credentials, readable by you only. They are shown nowhere else.",
)
@click.option(
    "--purge-hold", type=DURATION, metavar="DURATION", help="Wait between INACTIVE and PURGING; default is the setting."
)
@properties_option
@prints(REALM)
@click.pass_obj
def create_realm_command(
    session: CliSession, realm_id: str, file: Path, purge_hold: float | None, properties: dict[str, str]
) -> None:
    """Create a realm and bootstrap it. After an interruption, run the same command to continue.

    The root credentials are reserved for the server. Nothing checks them yet: anyone who has the store's URL is its administrator.
    """
    checked_realm_id(realm_id)
    with session.create_store(lambda: check_place(file)) as store:
        realms = RealmRegistry(store)
        found = realms.find_realm(realm_id)
        if found is None:
            check_place(file)
            found = realms.create_realm(realm_id, properties=properties, purge_hold_seconds=purge_hold)
        check_bootstrap(found)
        if found.state not in FRESH or found.manager is not None:
            raise SwapConflictError(f"there is a realm {realm_id!r} already; it is {found.state}")
        credentials = ensure_credentials(file, found).credentials
        active = bootstrap(realms, realm_id, hash_credentials(credentials))
        _check_root(realms, active, credentials)
        session.show(REALM, _row(store, active))


@realm.command(name="activate")
@click.argument("realm_id", metavar="REALM")
@prints(REALM)
@click.pass_obj
def activate_realm_command(session: CliSession, realm_id: str) -> None:
    """Activate an INACTIVE realm, so that it serves its users again."""
    _switch(session, realm_id, RealmState.INACTIVE, to=RealmState.ACTIVE)


@realm.command(name="deactivate")
@click.argument("realm_id", metavar="REALM")
@prints(REALM)
@click.pass_obj
def deactivate_realm_command(session: CliSession, realm_id: str) -> None:
    """Deactivate an ACTIVE realm: it serves no users, and loses nothing."""
    _switch(session, realm_id, RealmState.ACTIVE, to=RealmState.INACTIVE)


@realm.command(name="release")
@click.argument("realm_id", metavar="REALM")
@prints(REALM)
@click.pass_obj
def release_realm_command(session: CliSession, realm_id: str) -> None:
    """Clear the owner of a realm, so that any resource may adopt it. Nothing in the realm changes."""
    with session.open_store() as store:
        session.show(REALM, _row(store, release_realm(store, realm_id)))


@realm.command(name="purge")
@click.argument("realm_id", metavar="REALM")
@confirm_option("REALM")
@click.option("--detach", is_flag=True, help="Leave the work to a worker instead of doing it here.")
@prints(REALM)
@click.pass_obj
def purge_realm_command(session: CliSession, realm_id: str, confirm: str | None, detach: bool) -> None:
    """Delete everything in a realm that was INACTIVE for its hold. There is no way back."""
    with session.open_store() as store:
        realms = RealmRegistry(store)
        found = realms.read_realm(realm_id)
        if found.state is RealmState.PURGED and realms.is_realm_empty(found):
            raise RefusedError(f"realm {realm_id!r} is PURGED already; `headwater realm delete {realm_id}` deletes its entry")
        is_confirmed = _is_confirmed(session, store, found, confirm)
        if found.state is RealmState.ACTIVE:
            raise RefusedError(
                f"nothing was purged: realm {realm_id!r} is ACTIVE and serves users; `headwater realm deactivate {realm_id}` first,"
                f" and after its hold purge it with --confirm {realm_id}"
            )
        if not is_confirmed:
            raise RefusedError(f"nothing was purged: repeat the realm's id with --confirm {realm_id} to go ahead")
        if found.state is not RealmState.PURGING:
            found = realms.move_realm(found, RealmState.PURGING)
        _cancel_other_work(store, found)
        submitted = TaskQueue(store).submit_task(PURGE, realm=found.id, realm_key=found.key)
        if detach:
            session.show(TASK, TaskQueue(store).read_task(submitted.id))
            return
        run_task_here(session, store, submitted.id, lambda claim: run_purge(store, claim))
        session.show(REALM, _row(store, realms.read_realm(realm_id)))


@realm.command(name="delete")
@click.argument("realm_id", metavar="REALM")
@confirm_option("REALM")
@prints(PURGE_PLAN)
@click.pass_obj
def delete_realm_command(session: CliSession, realm_id: str, confirm: str | None) -> None:
    """Delete the entry of a PURGED realm, so that its id can be used again."""
    with session.open_store() as store:
        realms = RealmRegistry(store)
        found = realms.read_realm(realm_id)
        if found.state is not RealmState.PURGED:
            raise RefusedError(
                f"realm {realm_id!r} is {found.state}: only a PURGED realm can be deleted; `headwater realm purge` comes first"
            )
        if not _is_confirmed(session, store, found, confirm):
            raise RefusedError(f"nothing was deleted: repeat the realm's id with --confirm {realm_id} to go ahead")
        realms.remove_realm(found)
        session.say(f"realm {realm_id} is deleted")


def _cancel_other_work(store: Store, found: Realm) -> None:
    """Cancel the other tasks of a realm that is deleted: they are useless, and would block equal tasks of a later realm of that id."""
    tasks = TaskQueue(store)
    for seen in tasks.list_tasks(realm=found.id):
        if seen.value.is_active and seen.value.kind != PURGE:
            with suppress(RefusedError):  # it has ended meanwhile
                tasks.cancel_task(seen.id)


def _is_confirmed(session: CliSession, store: Store, found: Realm, confirm: str | None) -> bool:
    """Whether the realm's id was repeated; otherwise the plan is shown."""
    if confirm == found.id:
        return True
    session.show(
        PURGE_PLAN, PurgePlan(found, hold_until(found, store.settings, store.clock.now()), _catalog_names(store, found))
    )
    return False


def _catalog_names(store: Store, found: Realm) -> list[str]:
    if found.state not in (RealmState.ACTIVE, RealmState.INACTIVE):
        return []  # not filled yet, or half of it is gone
    return [definition.name for definition in Catalogs(store.rows(found.id, found.key)).list_catalogs()]


def _switch(session: CliSession, realm_id: str, source: RealmState, *, to: RealmState) -> None:
    with session.open_store() as store:
        realms = RealmRegistry(store)
        found = realms.read_realm(realm_id)
        if found.state not in (source, to):
            raise RefusedError(f"realm {realm_id!r} is {found.state}: only one that is {source} becomes {to}")
        session.show(REALM, _row(store, realms.move_realm(found, to)))


def _check_root(realms: RealmRegistry, found: Realm, credentials: Credentials) -> None:
    root = find_root(realms, found.id)
    if root is None or not verify_secret(root.credentials, credentials):
        client = root.credentials.client_id if root else "unknown"
        raise RefusedError(
            f"realm {found.id!r} was bootstrapped with other credentials than the file's: those of client {client}; "
            f"where nobody has those, `headwater realm reset-credentials {found.id} --credentials OTHER_FILE` makes new ones"
        )


def _row(store: Store, found: Realm) -> RealmRow:
    return RealmRow(found, hold_until(found, store.settings, store.clock.now()))
