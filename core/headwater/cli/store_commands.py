"""``headwater store`` and ``headwater version``: the database of a store, and the versions in use."""

from __future__ import annotations

import platform
from importlib.metadata import version as installed_version
from typing import Any

import click

from headwater.cli.cli_session import CliSession
from headwater.console import ResultView, ViewField, prints

VERSION: ResultView[dict[str, str]] = ResultView(
    "version",
    "versions",
    (
        ViewField("headwater", "version of Headwater", header="HEADWATER"),
        ViewField("python", "version of Python", header="PYTHON"),
    ),
)

STORE: ResultView[dict[str, Any]] = ResultView(
    "store",
    "stores",
    (
        ViewField("url", "URL of the store, without its password", header="URL"),
        ViewField("created", "whether it was set up by this command", header="CREATED"),
    ),
)

store = click.Group("store", help="Set up the database of a store.")


@store.command(name="create")
@prints(STORE)
def create_store_command(session: CliSession) -> None:
    """Set up the database: its file, tables or collections. A store that is there already is left as it is.

    `realm create`, `realm import`, `apply`, `up` and the operator do it by themselves; all other commands, the server and workers end
    with exit code 3 where there is no store.
    """
    missing = []  # no backend tells whether it made what it opened: of two commands at once, both may say that they created it
    with session.create_store(lambda: missing.append(True)) as opened:
        told = "is set up" if missing else "was there already"
        session.show_done(STORE, {"url": opened.url, "created": bool(missing)}, f"store {opened.url} {told}")


@click.command(name="version")
@prints(VERSION)
def version_command(session: CliSession) -> None:
    """Show the versions of Headwater and Python."""
    session.show(VERSION, {"headwater": installed_version("headwater"), "python": platform.python_version()})
