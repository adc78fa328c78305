"""``headwater version``."""

from __future__ import annotations

import platform
from importlib.metadata import version as installed_version

import click

from headwater.cli.options import prints
from headwater.cli.session import Session
from headwater.cli.views import VERSION, Versions

__all__ = ["version"]


@click.command(name="version")
@prints(VERSION)
@click.pass_obj
def version(session: Session) -> None:
    """Show the versions of Headwater and Python."""
    session.show(VERSION, Versions(headwater=installed_version("headwater"), python=platform.python_version()))
