"""``headwater realm``: the life cycle of realms, from creation to deletion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import click

from headwater.api.credentials_files import Place, check_place
from headwater.api.realm_tasks import make_realm, submit_purge, switch_realm
from headwater.catalogs import Catalogs
from headwater.cli.backup_commands import export_realm_command, import_realm_command, restore_command
from headwater.cli.cli_session import CliSession, identifier
from headwater.cli.command_options import confirm_option, detach_option, properties_option, realm_argument
from headwater.cli.credentials_commands import (
    credentials_option,
    reset_credentials_command,
    rotate_credentials_command,
    show_with_credentials,
    told_place,
)
from headwater.cli.local_run import run_or_detach
from headwater.cli.manager_fields import manager_field
from headwater.clock import Micros
from headwater.console import DURATION, ResultView, ViewField, duration_field, prints, time_after, time_field
from headwater.errors import RefusedError
from headwater.files import list_file_tables
from headwater.jobs import run_purge
from headwater.outcome_text import outcome_lines
from headwater.realms import (
    HistoryRetention,
    MaintenanceSchedule,
    Realm,
    RealmRegistry,
    RealmState,
    hold_until,
)
from headwater.reconcile import release_realm
from headwater.store import Store, checked_realm_id


@dataclass(frozen=True, slots=True)
class RealmRow:
    """A realm with the end of its hold."""

    realm: Realm
    held_until: Micros | None


def _retention(retention: HistoryRetention) -> dict[str, Any]:
    return {
        "content": {"age": duration_field(retention.content_age_seconds), "commits": retention.content_commits},
        "references": {"commits": retention.reference_commits},
        "patterns": [
            {"pattern": kept.pattern, "commits": kept.commits, "age": duration_field(kept.age_seconds)}
            for kept in retention.references
        ],
    }


def _maintenance(maintenance: MaintenanceSchedule) -> dict[str, Any]:
    return {"schedule": maintenance.schedule or None, "timeZone": maintenance.time_zone, "suspend": maintenance.suspend}


REALM: ResultView[RealmRow] = ResultView(
    "realm",
    "realms",
    (
        ViewField("id", "what users call the realm", "realm.id", "REALM"),
        ViewField("state", "where it stands in its life", "realm.state", "STATE"),
        ViewField("key", "the number that its rows carry", "realm.key", form=identifier),
        ViewField("created", "when it was created", "realm.created", "CREATED", time_field),
        ViewField("updated", "when its definition was last changed", "realm.updated", "UPDATED", time_field),
        ViewField(
            "entered", "when each state was last entered", lambda r: {s: time_field(t) for s, t in r.realm.entered.items()}
        ),
        ViewField("heldUntil", "an INACTIVE realm cannot be purged before", header="HELD UNTIL", form=time_after),
        ViewField("deletionPolicy", "Retain or Purge, when its resource is deleted", "realm.deletion_policy", "DELETION"),
        ViewField("deletionProtection", "it cannot be purged", "realm.deletion_protection", "PROTECTED"),
        ViewField("driftPolicy", "Correct or Report", "realm.drift_policy"),
        ViewField(
            "purgeHold",
            "wait between INACTIVE and PURGING; null is the setting",
            "realm.purge_hold_seconds",
            form=duration_field,
        ),
        ViewField(
            "retention",
            "history that it keeps; null is the setting",
            "realm.retention",
            form=_retention,
            inside={
                ".content.age": "of content, at least so long",
                ".content.commits": "of content, at least so many commits",
                ".references.commits": "of other references, so many commits",
                ".patterns": "exceptions by the name of the reference: the first that matches decides",
            },
        ),
        ViewField(
            "maintenance",
            "when it is maintained",
            "realm.maintenance",
            form=_maintenance,
            inside={
                ".schedule": "a cron expression; null is weekly, spread by realm",
                ".timeZone": "that the schedule is meant in",
                ".suspend": "nothing is done by itself",
            },
        ),
        ViewField("properties", "free names and values", "realm.properties"),
        manager_field("realm.manager"),
    ),
)


@dataclass(frozen=True, slots=True)
class PurgePlan:
    """The rows that a purge would delete."""

    realm: Realm
    held_until: Micros | None
    catalogs: list[str]
    file_tables: list[str]


PURGE_PLAN: ResultView[PurgePlan] = ResultView(
    "purge plan",
    "purge plans",
    (
        ViewField("id", "the realm", "realm.id"),
        ViewField("state", "where it stands in its life", "realm.state"),
        ViewField("heldUntil", "it cannot be purged before", form=time_after),
        ViewField("deletionProtection", "it cannot be purged", "realm.deletion_protection"),
        ViewField("catalogs", "everything in these goes"),
        ViewField("fileTables", "these go with their files, but for the files of imported ones"),
    ),
)

realm = click.Group("realm", help="List, create, move and delete realms.")

for _command in (
    export_realm_command,
    import_realm_command,
    restore_command,
    rotate_credentials_command,
    reset_credentials_command,
):
    realm.add_command(_command)


@realm.command(name="list")
@prints(REALM, many=True)
def list_realms_command(session: CliSession) -> None:
    """List all realms."""
    with session.open_store() as store:
        listed = RealmRegistry(store).list_realms()
        rows = [_row(store, target) for target in listed]
    session.show_all(REALM, rows)
    session.warn_of(listed)


@realm.command(name="show")
@realm_argument
@prints(REALM)
def show_realm_command(session: CliSession, realm_id: str) -> None:
    """Show everything about one realm."""
    with session.open_store() as store:
        session.show(REALM, _row(store, RealmRegistry(store).read_realm(realm_id)))


@realm.command(name="create")
@realm_argument
@credentials_option
@click.option(
    "--purge-hold", type=DURATION, metavar="DURATION", help="Wait between INACTIVE and PURGING; default is the setting."
)
@properties_option
@prints(REALM)
def create_realm_command(
    session: CliSession, realm_id: str, place: Place, purge_hold: float | None, properties: dict[str, str]
) -> None:
    """Create a realm and bootstrap it. After an interruption, run the same command to continue.

    With `--credentials -` those of the call that succeeded hold; if none of them do, reset them.

    A server that asks who calls opens the management of the realm to the root credentials. Anyone who has the store's URL needs none.
    """
    checked_realm_id(realm_id)
    with session.create_store(lambda: check_place(place)) as store:
        realms = RealmRegistry(store)
        active = make_realm(realms, realm_id, place, properties=properties, purge_hold_seconds=purge_hold)
        told = f"realm {realm_id} is {active.state}; its root credentials are {told_place(place)}"
        show_with_credentials(session, REALM, _row(store, active), told, place)


@realm.command(name="activate")
@realm_argument
@prints(REALM)
def activate_realm_command(session: CliSession, realm_id: str) -> None:
    """Activate an INACTIVE realm, so that it serves its users again."""
    _switch(session, realm_id, RealmState.INACTIVE, to=RealmState.ACTIVE)


@realm.command(name="deactivate")
@realm_argument
@prints(REALM)
def deactivate_realm_command(session: CliSession, realm_id: str) -> None:
    """Deactivate an ACTIVE realm: it serves no users, and loses nothing."""
    _switch(session, realm_id, RealmState.ACTIVE, to=RealmState.INACTIVE)


@realm.command(name="release")
@realm_argument
@prints(REALM)
def release_realm_command(session: CliSession, realm_id: str) -> None:
    """Clear the owner of a realm, so that any resource may adopt it. Nothing in the realm changes."""
    with session.open_store() as store:
        released = release_realm(store, realm_id)
        session.show_done(REALM, _row(store, released), f"realm {realm_id} is released: any resource may adopt it")


@realm.command(name="purge")
@realm_argument
@confirm_option("REALM")
@detach_option()
@prints(REALM)
def purge_realm_command(session: CliSession, realm_id: str, confirm: str | None, detach: bool) -> None:
    """Delete everything in a realm that was INACTIVE for its hold. There is no way back."""
    with session.open_store() as store:
        realms = RealmRegistry(store)
        target = realms.read_realm(realm_id)
        if target.state is RealmState.PURGED and realms.is_realm_empty(target):
            raise RefusedError(f"realm {realm_id!r} is PURGED already; `headwater realm delete {realm_id}` deletes its entry")
        is_confirmed = _is_confirmed(session, store, target, confirm)
        if target.state is RealmState.ACTIVE:
            raise RefusedError(
                f"nothing was purged: realm {realm_id!r} is ACTIVE and serves users; `headwater realm deactivate {realm_id}` first,"
                f" and after its hold purge it with --confirm {realm_id}"
            )
        if not is_confirmed:
            raise RefusedError(f"nothing was purged: repeat the realm's id with --confirm {realm_id} to go ahead")
        outcome = run_or_detach(session, store, submit_purge(store, target), run_purge, detach=detach)
        if outcome is not None:
            gone = realms.read_realm(realm_id)
            session.show_done(REALM, _row(store, gone), f"realm {realm_id} is {gone.state}", *outcome_lines("purge", outcome))


@realm.command(name="delete")
@realm_argument
@confirm_option("REALM")
@prints(PURGE_PLAN)
def delete_realm_command(session: CliSession, realm_id: str, confirm: str | None) -> None:
    """Delete the entry of a PURGED realm, so that its id can be used again."""
    with session.open_store() as store:
        realms = RealmRegistry(store)
        target = realms.read_realm(realm_id)
        if target.state is not RealmState.PURGED:
            raise RefusedError(
                f"realm {realm_id!r} is {target.state}: only a PURGED realm can be deleted; `headwater realm purge` comes first"
            )
        if not _is_confirmed(session, store, target, confirm):
            raise RefusedError(f"nothing was deleted: repeat the realm's id with --confirm {realm_id} to go ahead")
        realms.remove_realm(target)
        session.say(f"realm {realm_id} is deleted")


def _is_confirmed(session: CliSession, store: Store, target: Realm, confirm: str | None) -> bool:
    """Whether the realm's id was repeated; otherwise the plan is shown."""
    if confirm == target.id:
        return True
    held = hold_until(target, store.settings, store.clock.now())
    session.show(PURGE_PLAN, PurgePlan(target, held, _catalog_names(store, target), _file_table_names(store, target)))
    return False


def _catalog_names(store: Store, target: Realm) -> list[str]:
    if target.state not in (RealmState.ACTIVE, RealmState.INACTIVE):
        return []  # not filled yet, or half of it is gone
    return [definition.name for definition in Catalogs(store.rows(target.id, target.key)).list_catalogs()]


def _file_table_names(store: Store, target: Realm) -> list[str]:
    if target.state not in (RealmState.ACTIVE, RealmState.INACTIVE):
        return []
    return [definition.name for definition in list_file_tables(store.rows(target.id, target.key))]


def _switch(session: CliSession, realm_id: str, source: RealmState, *, to: RealmState) -> None:
    with session.open_store() as store:
        moved = switch_realm(RealmRegistry(store), realm_id, source, to=to)
        session.show_done(REALM, _row(store, moved), f"realm {realm_id} is {moved.state}")


def _row(store: Store, target: Realm) -> RealmRow:
    return RealmRow(target, hold_until(target, store.settings, store.clock.now()))
