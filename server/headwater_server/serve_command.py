"""The command `headwater serve`, which this package adds to the command line."""

from __future__ import annotations

from importlib.metadata import version
from typing import Protocol

import click

from headwater.clock import SystemClock
from headwater.console import ParsedType
from headwater.errors import RefusedError
from headwater.logs import LEVELS, log_to_stderr
from headwater.realms import RealmRegistry
from headwater.settings import Settings
from headwater.store import Store
from headwater_server.call import ServedStore
from headwater_server.iceberg_rest import iceberg_table
from headwater_server.server_application import ServerApplication
from headwater_server.server_process import ListenAddress, serve_application


class ServingSession(Protocol):
    """What the command needs of the session of the command line."""

    @property
    def settings(self) -> Settings: ...
    def open_store(self) -> Store: ...


ADDRESS = ParsedType("address", ListenAddress.parse)


@click.command(name="serve")
@click.option(
    "--listen", type=ADDRESS, metavar="ADDRESS", help="Address and port; default is the setting HEADWATER_SERVER_LISTEN."
)
@click.option("--realm", "realms", multiple=True, metavar="REALM", help="Serve this realm alone; may be repeated.")
@click.option("--log-level", type=click.Choice(list(LEVELS)), default="info", show_default=True, help="What is logged.")
@click.pass_obj
def serve_command(session: ServingSession, listen: ListenAddress | None, realms: tuple[str, ...], log_level: str) -> int:
    """Serve the catalogs of the store to engines, by Iceberg's REST protocol, until SIGTERM.

    Clients use the address with /iceberg behind it, and REALM/CATALOG or REALM/CATALOG@BRANCH as their warehouse.

    Running requests end after SIGTERM, and new changes are answered 503. Exit code: 0, or 7 if requests had to be cut short.
    """
    settings = session.settings
    address = listen or _set_address(settings)
    address.check_loopback()
    log_to_stderr(settings, package="headwater_server", level=LEVELS[log_level])
    with session.open_store() as store:
        for realm in realms:
            RealmRegistry(store).read_realm(realm)
        application = ServerApplication(
            ServedStore(store, realms=frozenset(realms)),
            [iceberg_table()],
            settings=settings,
            clock=SystemClock(),
            version=version("headwater"),
        )
        return serve_application(application, address.listen(), settings=settings, tell=_tell_url)


def _set_address(settings: Settings) -> ListenAddress:
    """The address that the settings name; UsageError for a text that is none."""
    try:
        return ListenAddress.parse(settings.server_listen)
    except RefusedError as wrong:
        raise click.UsageError(f"HEADWATER_SERVER_LISTEN: {wrong}") from wrong


def _tell_url(url: str) -> None:
    click.echo(f"serving {url}/iceberg")
