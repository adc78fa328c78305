"""The session of one command call: settings, the store and its catalogs, exit codes, and notes on standard error."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, cast

import click
import structlog
from click.shell_completion import CompletionItem

from headwater.catalogs import Catalog, Catalogs
from headwater.cli.command_address import Address, AddressForm
from headwater.cli.named_contexts import CallDefaults, CallSettings, read_defaults
from headwater.console import ConsoleSession, Output
from headwater.errors import ConflictError, HeadwaterError, NotFoundError, RefusedError
from headwater.files import FileTable, open_file_table
from headwater.files.open_references import open_file_references
from headwater.logs import is_log_json
from headwater.realms import RealmRegistry
from headwater.redaction import printable
from headwater.settings import Settings, unknown_variables
from headwater.store import SYSTEM_REALM, ObjectId, ReadableRows, Store, id_text, open_store, parse_url
from headwater.store.overlay import open_dry_store
from headwater.terminal import end_line, erase_line, is_terminal, show_line
from headwater.throttle import ProgressCallback, no_progress

log = structlog.get_logger(__name__)

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
    9: "differences: `headwater diff` found that what is stored is not what manifests say",
    130: "interrupted",
    143: "ended by SIGTERM before it was done",
}


@dataclass
class CliSession(ConsoleSession):
    """One call of the command line.

    store_url     the store that was asked for; None is the setting
    """

    store_url: str | None = None
    context_name: str | None = None
    output: Output = "table"
    debug: bool = False
    _doubt: str = ""

    @cached_property
    def defaults(self) -> CallDefaults:
        """What the environment and the context say where the command line says nothing.

        raises        NotFoundError for a context that is not there; RefusedError for a file of contexts that cannot be understood
        """
        return read_defaults(os.environ, self.context_name)

    def settle_option(self, field: str) -> None:
        if field == "output":
            with suppress(HeadwaterError):  # a context that is not there is told by what needs it: `context use` does not
                self.output = cast(Output, self.defaults.context.output or "table")

    def note_address(self, address: str, names: Sequence[str]) -> None:
        """Note an address that was left out or shortened, and the names of what it takes from the defaults."""
        self._doubt = f"the address is {address}, by {self.defaults.told(*names)}"

    def note_doubt(self, word: str, left_out: str) -> None:
        """Note that a word was taken for the address where another one could have been left out."""
        self._doubt = f"{word!r} is taken for the address: write @ before it where {left_out} is meant"

    def origin_lines(self) -> list[str]:
        if (
            "settings" in self.__dict__
            and self.store_url is None
            and self.defaults.origins.get("store", "").startswith("context")
        ):
            store = f"the store is {shown_store(self.settings.store)}, by {self.defaults.told('store')}"
        else:
            store = ""
        return list(filter(None, [store, self._doubt]))

    def author(self, named: str | None = None) -> str:
        """Who is the author of what this call commits: who is named, or else the one of the settings, or else the user."""
        from headwater.jobs.local_tasks import person  # with all kinds of tasks, which only some commands need

        return named or self.defaults.context.author or person()

    def complete_address(self, form: AddressForm, incomplete: str) -> list[CompletionItem]:
        """The addresses that a text begins, for a shell."""
        from headwater.cli.live_names import address_items  # only shells need it

        return address_items(self, form, incomplete)

    @cached_property
    def settings(self) -> Settings:
        """The settings of the environment; UsageError names all that are wrong. A variable that nothing reads is warned of."""
        try:
            settings = Settings.from_environment(store=self.store_url or self.defaults.context.store or None)
        except RefusedError as wrong:
            raise click.UsageError(str(wrong)) from wrong
        for sentence in unknown_variables(os.environ, of_the_command_line=CallSettings.variables()):
            self.warn(sentence)
        return settings

    @cached_property
    def standard_input(self) -> str:
        """All of standard input; RefusedError where it is closed, or no UTF-8."""
        if sys.stdin is None:
            raise RefusedError("standard input is closed: nothing can be read from it")
        try:
            return sys.stdin.buffer.read().decode()
        except (OSError, UnicodeDecodeError) as fault:
            raise RefusedError(f"standard input cannot be read: {fault}") from fault

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

    def create_store(self, check: Callable[[], object] = lambda: None) -> Store:
        """The store, set up where there is none yet: for commands that begin something.

        check         called before a store is set up, to check input that needs no store: if it raises, no empty store is left
        """
        with suppress(NotFoundError):
            return open_store(self.settings.store, settings=self.settings, create=False)
        check()
        return open_store(self.settings.store, settings=self.settings)

    def open_dry_store(self) -> Store:
        """The store for looking at what would be written: changes are forgotten. Where there is none yet, an empty one."""
        try:
            self.open_store().close()
        except NotFoundError:
            self.warn(f"there is no store {parse_url(self.settings.store).shown} yet: it would be set up")
        return open_dry_store(self.settings.store, settings=self.settings)

    def say(self, sentence: str) -> None:
        if not self.is_text and not self.quiet and is_log_json():
            log.info(sentence)
        else:
            super().say(sentence)

    def warn_of(self, listing: ReadableRows[Any]) -> None:
        """Warn of each entry that a list could not read."""
        for row in listing.unreadable:
            self.warn(str(row))

    def note(self, sentence: str) -> None:
        """Say what was done on standard error, because standard output has something else alone."""
        if not self.quiet:
            print_note(sentence, level=logging.INFO)

    def warn(self, sentence: str) -> None:
        """Print a warning on standard error."""
        print_note(sentence)

    @property
    def can_ask(self) -> bool:
        """Whether a person can answer a question."""
        return is_terminal(sys.stdin) and is_terminal(sys.stderr)

    @contextmanager
    def progress(self, title: str) -> Iterator[ProgressCallback]:
        """Show how far work is, in one line on a terminal, which is gone in the end; elsewhere nothing."""
        if not is_terminal(sys.stderr) or is_log_json() or self.quiet:
            yield no_progress
            return
        line = show_line(title)
        try:
            yield line.update
        finally:
            end_line()


def shown_store(url: str) -> str:
    """The URL of a store as it may be shown, also one that is wrong, of which nothing may be."""
    try:
        return parse_url(url).shown
    except RefusedError:
        return "(no URL)"


@contextmanager
def opened_catalogs(session: CliSession, realm_id: str) -> Iterator[Catalogs]:
    """Open the catalogs of a realm as a user: everything can be read, and written while the realm is ACTIVE."""
    with session.open_store() as store:
        yield Catalogs(RealmRegistry(store).open_realm(realm_id))


@contextmanager
def opened_catalog(session: CliSession, address: Address) -> Iterator[Catalog]:
    """Open one catalog of a realm as a user."""
    with session.open_store() as store:
        yield Catalog.open(RealmRegistry(store).open_realm(address.realm), address.name)


@contextmanager
def opened_file_table(session: CliSession, address: Address) -> Iterator[tuple[Store, FileTable]]:
    """Open a file table of a realm, with its references."""
    with session.open_store() as store:
        rows = RealmRegistry(store).open_realm(address.realm)
        with open_file_table(rows, address.name, partial(open_file_references, store)) as table:
            yield store, table


def check_realm_known(store: Store, realm_id: str) -> None:
    """Refuse a filter by a realm that there is not: a mistyped id would look like one where nothing happened.

    For realms of which nothing is on record: what a deleted realm left there can still be listed.
    """
    if realm_id != SYSTEM_REALM:
        RealmRegistry(store).read_realm(realm_id)


def lines_of(error: HeadwaterError) -> list[str]:
    """Returns the lines to print for an error: its message, and the details of a conflict that the message omits."""
    told = str(error)
    details = map(str, error.details) if isinstance(error, ConflictError) else ()
    return [*told.splitlines(), *(f"- {detail}" for detail in details if (detail.partition(": ")[2] or detail) not in told)]


def print_note(sentence: str, *, level: int = logging.WARNING, with_traceback: bool = False) -> None:
    """Print one line on standard error, for a person or as an entry of the JSON log.

    with_traceback  adds the traceback of the exception that is being handled, in a JSON log
    """
    erase_line()
    if is_log_json():
        log.log(level, sentence, exc_info=with_traceback)
    else:
        told = "\n".join(map(printable, sentence.split("\n")))
        click.echo(f"headwater: {told}", err=True)


def identifier(number: ObjectId | int | None) -> str | None:
    """The form of ids in results: 16 hex digits."""
    return None if number is None else id_text(ObjectId(number))
