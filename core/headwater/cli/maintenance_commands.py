"""``headwater maintenance``: the stop switch for what changes or looks at the lake's files by policy."""

from __future__ import annotations

import click

from headwater.cli.cli_session import CliSession
from headwater.cli.command_address import STORE_SCOPE, Address, address_argument
from headwater.cli.command_options import author_option
from headwater.console import ResultView, ViewField, prints, time_field
from headwater.policies import (
    MaintenanceStop,
    StopScope,
    find_stops_around,
    list_stops,
    read_scope,
    resume_maintenance,
    stop_maintenance,
)
from headwater.store import Store

STOP: ResultView[MaintenanceStop] = ResultView(
    "stop of maintenance",
    "stops of maintenance",
    (
        ViewField("scope", "the store, a realm or a catalog", header="SCOPE", form=str),
        ViewField("realm", "the realm's id; null: the store", lambda stop: stop.scope.realm or None),
        ViewField("catalog", "the catalog; null: all of the realm or store", lambda stop: stop.scope.catalog or None),
        ViewField("by", "who stopped it", header="BY"),
        ViewField("at", "since when", header="SINCE", form=time_field),
        ViewField("why", "what that person said", header="WHY"),
    ),
)

maintenance = click.Group("maintenance", help="Stop expiry of snapshots and reports of files, and resume them.")
store_scope_argument = address_argument(STORE_SCOPE, required=False)


def _read(store: Store, address: Address | None) -> StopScope:
    return StopScope() if address is None else read_scope(store, address.realm, address.name)


@maintenance.command(name="stop")
@store_scope_argument
@click.option("--reason", metavar="TEXT", default="", help="Why, for whoever finds it stopped.")
@author_option
@prints(STOP)
def stop_maintenance_command(session: CliSession, address: Address | None, reason: str, author: str | None) -> None:
    """Stop it for the store, a realm or a catalog. What runs stops before its next batch, and goes on once it is resumed."""
    with session.open_store() as store:
        wanted = _read(store, address)
        before = {str(stop.scope) for stop in find_stops_around(store, wanted)}
        stopped = stop_maintenance(store, wanted, by=session.author(author), why=reason)
        already = " already" if str(wanted) in before else ""
        session.show_done(STOP, stopped, f"maintenance of {wanted} is stopped{already}")


@maintenance.command(name="resume")
@store_scope_argument
@prints(STOP, many=True)
def resume_maintenance_command(session: CliSession, address: Address | None) -> None:
    """End a stop, and list those that hold for it still: a catalog waits as long as its realm or the store is stopped."""
    with session.open_store() as store:
        wanted = _read(store, address)
        ended = resume_maintenance(store, wanted)
        session.say(f"maintenance of {wanted} is resumed" if ended else f"maintenance of {wanted} was not stopped")
        session.show_all(STOP, find_stops_around(store, wanted))


@maintenance.command(name="status")
@store_scope_argument
@prints(STOP, many=True)
def maintenance_status_command(session: CliSession, address: Address | None) -> None:
    """List what is stopped: all of the store, or what holds for a realm or catalog. Nothing is listed where nothing is stopped."""
    with session.open_store() as store:
        session.show_all(STOP, find_stops_around(store, _read(store, address)) if address else list_stops(store))
