"""The session of one command call: settings, the store, exit codes, and results printed as tables, JSON or YAML.

In results, ids are 16 hex digits, times RFC 3339 in UTC, durations as in manifests (``24h``).
"""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from typing import Any, Generic, TypeVar

import click
import structlog

from headwater.catalogs import Catalog, Catalogs
from headwater.clock import Micros, as_text
from headwater.console import ConsoleSession, Output, cell, text_table
from headwater.errors import ConflictError, HeadwaterError, NotFoundError, RefusedError
from headwater.realms import RealmRegistry
from headwater.settings import Settings, duration_text, unknown_variables, variable_of
from headwater.store import ObjectId, ReadableRows, Store, id_text, open_store

T = TypeVar("T")
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
    130: "interrupted",
    143: "ended by SIGTERM before it was done",
}


@dataclass
class CliSession(ConsoleSession):
    """One call of the command line.

    store_url     the store that was asked for; None is the setting
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

    def create_store(self, check: Callable[[], object] = lambda: None) -> Store:
        """The store, set up where there is none yet: for commands that begin something.

        check         called before a store is set up, to check input that needs no store: if it raises, no empty store is left
        """
        with suppress(NotFoundError):
            return open_store(self.settings.store, settings=self.settings, create=False)
        check()
        return open_store(self.settings.store, settings=self.settings)

    def show(self, view: ResultView[T], item: T) -> None:
        """Print one result: a line per field, or an object."""
        data = view.data(item)
        self.print_result(data, lambda: result_lines(data))

    def show_all(self, view: ResultView[T], items: Sequence[T]) -> None:
        """Print results: aligned columns, or a list of objects."""
        rows = list(map(view.data, items))
        self.print_result(rows, lambda: view.columns(rows))

    def say(self, sentence: str) -> None:
        if self.output != "table" and is_log_json():
            log.info(sentence)
        else:
            super().say(sentence)

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


def lines_of(error: HeadwaterError) -> list[str]:
    """Returns the lines to print for an error: its message, and the details of a conflict that the message omits."""
    told = str(error)
    details = map(str, error.details) if isinstance(error, ConflictError) else ()
    return [*told.splitlines(), *(f"- {detail}" for detail in details if (detail.partition(": ")[2] or detail) not in told)]


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


def identifier(number: ObjectId | int | None) -> str | None:
    return None if number is None else id_text(ObjectId(number))


def time_field(micros: Micros | int | None) -> str | None:
    return None if micros is None else as_text(micros)


def time_after(micros: Micros | None) -> str | None:
    """Round a time up to a full second, so that a wait is over at the time that is shown."""
    return None if micros is None else as_text(micros + 999_999)


def duration_field(seconds: float | None) -> str | None:
    return None if seconds is None else duration_text(seconds)


def text_field(value: object) -> str | None:
    return None if value is None else str(value)


def list_of(form: Callable[[Any], Any]) -> Callable[[Iterable[Any]], list[Any]]:
    """The form of a list whose items have this form."""
    return lambda items: [form(item) for item in items]


def _plain(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return dict(value)
    return list(value) if isinstance(value, tuple) else value


def _follow(item: Any, way: str) -> Any:
    """Go from an item to a value, by attributes or keys; None where there is nothing to go on from."""
    for name in way.split("."):
        if item is None:
            return None
        item = item.get(name) if isinstance(item, Mapping) else getattr(item, _CAPITAL.sub(r"_\g<0>", name).lower())
    return item


_CAPITAL = re.compile(r"[A-Z]")


@dataclass(frozen=True, slots=True)
class ViewField(Generic[T]):
    """One field of a result.

    source        where its value is in an item: names joined by dots, in snake case for attributes; empty: as the field is named.
                  Or a function of the item
    header        of its column in a table; empty: it is in no table
    form          makes plain data of the value
    inside        what stands in an object or in the objects of a list: the way to it, such as ``.age`` or ``[].name``, and its meaning
    """

    name: str
    about: str
    source: str | Callable[[T], Any] = ""
    header: str = ""
    form: Callable[[Any], Any] = _plain
    inside: Mapping[str, str] = field(default_factory=dict)

    def read(self, item: T) -> Any:
        """The field's value of an item, as plain data."""
        return self.form(_follow(item, self.source or self.name) if isinstance(self.source, str) else self.source(item))


@dataclass(frozen=True, slots=True)
class ResultView(Generic[T]):
    """One kind of result. The names of its fields are a contract: ``docs/cli.md`` is made from them."""

    name: str
    plural: str
    fields: tuple[ViewField[T], ...]

    def with_columns(self, **headers: str) -> ResultView[T]:
        """Returns a view with other table columns: ``headers`` maps field names to column heads."""
        return replace(self, fields=tuple(replace(field, header=headers.get(field.name, "")) for field in self.fields))

    def data(self, item: T) -> dict[str, Any]:
        """The result as plain data: every field, in the order of the documentation."""
        return {field.name: field.read(item) for field in self.fields}

    def columns(self, rows: Sequence[Mapping[str, Any]]) -> list[str]:
        """Format results, as `data` gives them, as aligned columns; without any, one sentence."""
        if not rows:
            return [f"no {self.plural}"]
        shown = [field for field in self.fields if field.header]
        return text_table([field.header for field in shown], [[row[field.name] for field in shown] for row in rows])


def result_lines(data: Mapping[str, Any]) -> list[str]:
    """Format one result: each field that is not empty on its own line, lists of objects and long objects below their name."""
    return _lines({name: value for name, value in data.items() if value not in (None, "", [], {})})


def _lines(data: dict[str, Any], indent: str = "") -> list[str]:
    width = max((len(name) for name in data), default=0) + 2
    lines = []
    for name, value in data.items():
        if isinstance(value, dict) and value and all(map(_are_counts, value.values())):
            rows = [{_kind_of(name): key, **item} for key, item in value.items()]
            lines += [f"{indent}{name}:", *_table(rows, indent + "  ")]
        elif isinstance(value, dict) and value:
            lines += [f"{indent}{name}:", *_lines(value, indent + "  ")]
        elif isinstance(value, list) and any(isinstance(item, dict) for item in value):
            lines += [f"{indent}{name}:", *_table(value, indent + "  ")]
        elif isinstance(value, list) and len(value) > 1 and any(" " in str(item) for item in value):
            lines += [f"{indent}{name}:", *(f"{indent}  {cell(item)}" for item in value)]
        else:
            lines.append(f"{indent}{(name + ':').ljust(width)}{cell(value)}")
    return lines


def _are_counts(value: Any) -> bool:
    """Whether the value is an object of named numbers."""
    return isinstance(value, dict) and bool(value) and all(isinstance(item, int | float) for item in value.values())


def _kind_of(name: str) -> str:
    """Returns the head for the keys of an object: the keys of ``types`` and of ``garbageTypes`` are types."""
    return re.split(r"(?=[A-Z])", name)[-1].rstrip("s")


def _table(items: list[dict[str, Any]], indent: str) -> list[str]:
    names = list(dict.fromkeys(name for item in items for name in item))
    return text_table([name.upper() for name in names], [[item.get(name) for name in names] for item in items], indent)
