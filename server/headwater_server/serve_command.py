"""The command `headwater serve`, which this package adds to the command line."""

from __future__ import annotations

import json
from functools import partial
from importlib.metadata import version
from typing import Protocol

import click

from headwater.clock import SystemClock
from headwater.console import ParsedType
from headwater.errors import RefusedError
from headwater.iceberg import StorageFile
from headwater.logs import LEVELS, log_to_stderr
from headwater.realms import RealmRegistry
from headwater.settings import Settings
from headwater.store import Store
from headwater_server.call import ServedStore
from headwater_server.server_application import ServerApplication
from headwater_server.server_process import ListenAddress, serve_application
from headwater_server.server_tables import server_tables
from headwater_server.storage_credentials import check_botocore


class ServingSession(Protocol):
    """What the command needs of the session of the command line."""

    @property
    def settings(self) -> Settings: ...
    def open_store(self) -> Store: ...
    def warn(self, sentence: str) -> None: ...


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

    With HEADWATER_SERVER_SIGNING_KEYS or HEADWATER_SERVER_ISSUERS, whoever calls has to prove who it is, and may do what was granted to
    it. Without them everybody who reaches the server may do everything, so it listens on loopback alone.

    Running requests end after SIGTERM, and new changes are answered 503. Exit code: 0, or 7 if requests had to be cut short.
    """
    settings = session.settings
    address = listen or _set_address("HEADWATER_SERVER_LISTEN", settings.server_listen)
    asks_who_calls = bool(settings.server_signing_keys or settings.server_issuers)
    if not asks_who_calls:
        address.check_loopback()
    if settings.server_probes:
        _set_address("HEADWATER_SERVER_PROBES", settings.server_probes)
    # what is wrong at the start is refused here, and not by the first request
    if any(options.client_role is not None for options in StorageFile(settings.storage_file).current()):
        check_botocore()
    log_to_stderr(settings, package="headwater_server", level=LEVELS[log_level])
    with session.open_store() as store:
        registry = RealmRegistry(store)
        for realm in realms:
            registry.read_realm(realm)
        if not registry.has_realms():
            session.warn(f"{store.url} has no realm yet: make one with `headwater realm create` and `headwater catalog create`")
        application = ServerApplication(
            ServedStore(store, realms=frozenset(realms)),
            server_tables(),
            settings=settings,
            clock=SystemClock(),
            version=version("headwater"),
        )
        if asks_who_calls and not address.is_loopback and not settings.server_certificate:
            session.warn(
                f"tokens and secrets come to {address.host} in the clear: set HEADWATER_SERVER_CERTIFICATE and"
                " HEADWATER_SERVER_PRIVATE_KEY, unless a proxy in front of the server speaks TLS"
            )
        listener = address.listen(asks_who_calls=asks_who_calls)
        return serve_application(
            application, listener, settings=settings, tell=partial(_tell_url, is_json=settings.log_format == "json")
        )


def _set_address(variable: str, text: str) -> ListenAddress:
    """The address that a setting names; UsageError for a text that is none."""
    try:
        return ListenAddress.of_setting(variable, text)
    except RefusedError as wrong:
        raise click.UsageError(str(wrong)) from wrong


def _tell_url(url: str, *, is_json: bool) -> None:
    """Print the address that clients use; as a line of JSON where logs are JSON, because a collector reads standard output, too."""
    sentence = f"serving {url}/iceberg"
    click.echo(json.dumps({"event": sentence, "level": "info", "url": f"{url}/iceberg"}) if is_json else sentence)
