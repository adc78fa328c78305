"""The user who runs the command line: the author of the commits that a command makes, unless it names another."""

from __future__ import annotations

import getpass
from collections.abc import Callable
from typing import Any

import click

from headwater.catalogs import HEADWATER

__all__ = ["author_option", "person"]


def author_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """``--author NAME``, as the argument ``author``."""
    return click.option("--author", metavar="NAME", help="Who asks for it, noted in the commits; default is the user.")(
        function
    )


def person() -> str:
    """The name by which the machine knows who runs the command; of one that it does not know, Headwater's own."""
    try:
        return getpass.getuser() or HEADWATER
    except (OSError, KeyError, ImportError):  # a user id without a name, as containers may have
        return HEADWATER
