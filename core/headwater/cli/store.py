"""``headwater store``: the database itself."""

from __future__ import annotations

import click

from headwater.cli.options import prints
from headwater.cli.session import Session
from headwater.cli.views import STORE, StoreRow
from headwater.errors import MissingError
from headwater.store import open_store

__all__ = ["store"]


@click.group(name="store")
def store() -> None:
    """Set up the database that everything is kept in."""


@store.command(name="create")
@prints(STORE)
@click.pass_obj
def create(session: Session) -> None:
    """Set up the database: its file, tables or collections. A store that is there already is left as it is.

    `realm create`, `realm import`, `apply`, `up`, workers and the operator do it by themselves; all other commands end with exit code 3
    where there is no store.
    """
    settings = session.settings
    try:  # two steps, for no backend tells whether it made what it opened: of two commands at once, both may say that they created it
        opened, is_new = open_store(settings.store, settings=settings, create=False), False
    except MissingError:
        opened, is_new = open_store(settings.store, settings=settings), True
    with opened:
        session.show(STORE, StoreRow(url=opened.url, created=is_new))
