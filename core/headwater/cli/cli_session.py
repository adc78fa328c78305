"""The session of one command call: settings, the store, printed output and exit codes."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeVar

import click
import structlog

from headwater.catalogs import Catalog, Catalogs
from headwater.cli.result_output import ResultView, in_columns, in_lines
from headwater.console import json_text, yaml_text
from headwater.errors import ConflictError, HeadwaterError, NotFoundError, RefusedError
from headwater.realms import RealmRegistry
from headwater.settings import Settings, unknown_variables, variable_of
from headwater.store import ReadableRows, Store, open_store

EXIT_CODES = {
    0: "done",
    1: "a bug in Headwater: please report it",
    2: "usage: the command line or a setting cannot be understood",
    3: "not found: the store, realm, catalog, branch, task, commit or file is not there",
    4: "unavailable: nothing happened, try again later",
    5: "refused: a rule forbids it, the state is wrong, or a confirmation is missing",
    6: "conflict: it exists already, or it changed since you read it; re-read it and retry",
    7: "the outcome is unknown: look before you do it again",
    8: "findings: something stored is damaged, or tables were quarantined",
    130: "interrupted",
    143: "ended by SIGTERM before it was done",
}


def lines_of(error: HeadwaterError) -> list[str]:
    """Returns the lines to print for an error: its message, and the details of a conflict that the message omits."""
    told = str(error)
    details = map(str, error.details) if isinstance(error, ConflictError) else ()
    return [*told.splitlines(), *(f"- {detail}" for detail in details if (detail.partition(": ")[2] or detail) not in told)]


Output = Literal["table", "json", "yaml"]
OUTPUTS: tuple[Output, ...] = ("table", "json", "yaml")
T = TypeVar("T")
log = structlog.get_logger(__name__)


def is_log_json() -> bool:
    """Whether standard error is a log in JSON. Reads the environment itself, because wrong settings are logged, too."""
    return os.environ.get(variable_of("log_format")) == "json"


def print_note(sentence: str, *, level: int = logging.WARNING, with_traceback: bool = False) -> None:
    """Print one line on standard error, for a person or as an entry of the JSON log.

    with_traceback  adds the traceback of the exception that is being handled, in a JSON log
    """
    if is_log_json():
        log.log(level, sentence, exc_info=with_traceback)
    else:
        click.echo(f"headwater: {sentence}", err=True)


@dataclass
class CliSession:
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
        for sentence in unknown_variables(os.environ):
            self.warn(sentence)
        return settings

    def open_store(self) -> Store:
        """The store, to be used in a ``with``. Opening leases nothing.

        raises        NotFoundError, with what to do, where there is none: a mistyped name would otherwise look like an empty store
        """
        try:
            return open_store(self.settings.store, settings=self.settings, create=False)
        except NotFoundError as missing:
            raise NotFoundError(
                f"{missing}; name another with --store or HEADWATER_STORE, or create it with `headwater store create`"
            ) from missing

    def create_store(self, check: Callable[[], object] | None = None) -> Store:
        """The store, set up where there is none yet: for commands that begin something.

        check         called before a store is set up, to check input that needs no store: if it raises, no empty store is left
        """
        with suppress(NotFoundError):
            return open_store(self.settings.store, settings=self.settings, create=False)
        if check is not None:
            check()
        return open_store(self.settings.store, settings=self.settings)

    def show(self, view: ResultView[T], item: T) -> None:
        """Print one result: a line per field, or an object."""
        if self.output == "table":
            click.echo(in_lines(view, item))
        else:
            self.print_data(view.data(item))

    def show_all(self, view: ResultView[T], items: Sequence[T]) -> None:
        """Print results: aligned columns, or a list of objects."""
        if self.output == "table":
            click.echo(in_columns(view, items))
        else:
            self.print_data([view.data(item) for item in items])

    def print_data(self, data: Any) -> None:
        """Print plain data as JSON or YAML, whatever was asked for; a table has no use for it."""
        click.echo(yaml_text(data) if self.output == "yaml" else json_text(data), nl=False)

    def say(self, sentence: str) -> None:
        """Say what was done: on standard output if tables are printed there, on standard error if a program reads the output."""
        if self.output != "table" and is_log_json():
            log.info(sentence)
        else:
            click.echo(sentence, err=self.output != "table")

    def warn_of(self, listing: ReadableRows[Any]) -> None:
        """Warn of each entry that a list could not read."""
        for row in listing.unreadable:
            self.warn(str(row))

    def warn(self, sentence: str) -> None:
        """Print a warning on standard error."""
        print_note(sentence)

    @property
    def is_interactive(self) -> bool:
        """Whether progress on standard error is seen by a person."""
        return sys.stderr.isatty()


@contextmanager
def opened_catalogs(session: CliSession, realm_id: str) -> Iterator[Catalogs]:
    """Open the catalogs of a realm as a user: everything can be read, and written while the realm is ACTIVE."""
    with session.open_store() as store:
        yield Catalogs(RealmRegistry(store).open_realm(realm_id))


@contextmanager
def opened_catalog(session: CliSession, realm_id: str, name: str) -> Iterator[Catalog]:
    """Open one catalog of a realm as a user."""
    with session.open_store() as store:
        yield Catalog.open(RealmRegistry(store).open_realm(realm_id), name)
