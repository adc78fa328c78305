"""What every command gets as ``ctx.obj``: settings, the store, and how to print."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeVar

import click
import structlog

from headwater.cli.fields import View
from headwater.cli.printing import in_columns, in_lines, json_text, yaml_text
from headwater.errors import MissingError, RefusedError
from headwater.logs import LEVELS, log_to_stderr
from headwater.settings import Settings, unknown_variables
from headwater.store import Listing, Store, open_store

__all__ = ["OUTPUTS", "Output", "Session"]

Output = Literal["table", "json", "yaml"]
OUTPUTS: tuple[Output, ...] = ("table", "json", "yaml")
T = TypeVar("T")
log = structlog.get_logger(__name__)


@dataclass
class Session:
    """One call of the command line.

    store_url     the store that was asked for; None is the setting
    output        how results are printed on standard output
    """

    store_url: str | None = None
    output: Output = "table"
    debug: bool = False

    @cached_property
    def settings(self) -> Settings:
        """The settings of the environment; UsageError names all that are wrong. A variable that nothing reads is warned of."""
        try:
            settings = Settings.from_environment(store=self.store_url)
        except RefusedError as wrong:
            raise click.UsageError(str(wrong)) from wrong
        if settings.log_format == "json":
            log_to_stderr(settings, package="headwater", level=LEVELS["warning"])
        for sentence in unknown_variables(os.environ):
            if settings.log_format == "json":
                log.warning(sentence)
            else:
                self.warn(sentence)
        return settings

    def open_store(self, *, create: bool = False) -> Store:
        """The store, to be used in a ``with``. Opening leases nothing.

        create        set the database up where there is no store yet: for commands that begin something
        raises        MissingError, with what to do, where there is none: a mistyped name would otherwise look like an empty store
        """
        try:
            return open_store(self.settings.store, settings=self.settings, create=create)
        except MissingError as missing:
            raise MissingError(
                f"{missing}; name another with --store or HEADWATER_STORE, or create it with `headwater store create`"
            ) from missing

    def show(self, view: View[T], item: T) -> None:
        """Print one result: a line per field, or an object."""
        if self.output == "table":
            click.echo(in_lines(view, item))
        else:
            self.print_data(view.data(item))

    def show_all(self, view: View[T], items: Sequence[T]) -> None:
        """Print results: aligned columns, or a list of objects."""
        if self.output == "table":
            click.echo(in_columns(view, items))
        else:
            self.print_data([view.data(item) for item in items])

    def print_data(self, data: Any) -> None:
        """Print plain data as JSON or YAML, whatever was asked for; a table has no use for it."""
        click.echo(yaml_text(data) if self.output == "yaml" else json_text(data), nl=False)

    def say(self, sentence: str) -> None:
        """Tell a person what was done: on standard output beside tables, on standard error where a program reads the output."""
        click.echo(sentence, err=self.output != "table")

    def warn_of(self, listing: Listing[Any]) -> None:
        """Name what a list had to leave out."""
        for row in listing.unreadable:
            self.warn(str(row))

    def warn(self, sentence: str) -> None:
        click.echo(f"headwater: {sentence}", err=True)

    @property
    def is_interactive(self) -> bool:
        """Whether progress on standard error is seen by a person."""
        return sys.stderr.isatty()
