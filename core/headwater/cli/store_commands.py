"""``headwater store`` and ``headwater version``: the database of a store, and the versions in use."""

from __future__ import annotations

import platform
from importlib.metadata import version as installed_version

import click

from headwater.cli.cli_session import CliSession
from headwater.cli.command_options import prints
from headwater.cli.result_views import STORE, VERSION, StoreRow, Versions
from headwater.errors import NotFoundError
from headwater.store import open_store


@click.group(name="store")
def store() -> None:
    """Set up the database of a store."""


@store.command(name="create")
@prints(STORE)
@click.pass_obj
def create_store_command(session: CliSession) -> None:
    """Set up the database: its file, tables or collections. A store that is there already is left as it is.

    `realm create`, `realm import`, `apply`, `up`, workers and the operator do it by themselves; all other commands end with exit code 3
    where there is no store.
    """
    settings = session.settings
    try:  # two steps, for no backend tells whether it made what it opened: of two commands at once, both may say that they created it
        opened, is_new = open_store(settings.store, settings=settings, create=False), False
    except NotFoundError:
        opened, is_new = open_store(settings.store, settings=settings), True
    with opened:
        session.show(STORE, StoreRow(url=opened.url, created=is_new))


@click.command(name="version")
@prints(VERSION)
@click.pass_obj
def version_command(session: CliSession) -> None:
    """Show the versions of Headwater and Python."""
    session.show(VERSION, Versions(headwater=installed_version("headwater"), python=platform.python_version()))
