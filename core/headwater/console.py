"""What the command lines of the core, the operator, the workers and the kubectl plugin share: how they end, what they print, and options.

Knows errors and exit codes, but no store. Times are printed as RFC 3339 in UTC, durations as in manifests (``24h``).
"""

from __future__ import annotations

import codecs
import csv
import errno
import io
import json
import logging
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import Any, Generic, Literal, NoReturn, TypeVar, cast

import click
from click.core import ParameterSource

from headwater.clock import Micros, as_text
from headwater.errors import HeadwaterError, RefusedError, UnavailableError
from headwater.exits import exit_code
from headwater.extras import missing_extra
from headwater.redaction import inert_cell, printable
from headwater.settings import duration_text, parse_duration
from headwater.terminal import columns_of, erase_line, has_colors, is_terminal
from headwater.text_tables import PLAIN, TextLayout, result_lines, text_table

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")
Output = Literal["table", "wide", "name", "csv", "json", "yaml"]
_INTERRUPTED = 130
_BUG = 1
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
_CAPITAL = re.compile(r"[A-Z]")
_SIZES = ("KiB", "MiB", "GiB", "TiB", "PiB")
_GIVEN = "headwater.console.{}"


class Program(click.Group):
    """The root of a command tree: any exception that a command raises ends the process with the documented exit code.

    A command returns its code.

    program           the name on the command line, printed before each line on standard error
    debug_advice      how to see the traceback of a bug; empty where it is always shown
    """

    program = "headwater"
    debug_advice = "; run again with --debug for the traceback"

    def make_session(self) -> Any:
        """Runs before any command. Returns ``ctx.obj`` for the commands; its ``debug`` says whether tracebacks are shown."""
        return None

    def error_lines(self, error: HeadwaterError) -> Sequence[str]:
        return [str(error)]

    def tell(self, lines: Sequence[str], *, level: int, is_debug: bool) -> None:
        """Report the current exception on standard error in one line; with ``is_debug`` also its traceback."""
        erase_line()
        if is_debug:
            sys.excepthook(*cast(Any, sys.exc_info()))
        click.echo(f"{self.program}: {printable(' '.join(' '.join(lines).split()))}", err=True)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            # the reader of the output is gone, as with `head`; discard the rest
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0

    def main(self, args: Sequence[str] | None = None, prog_name: str | None = None, **options: Any) -> NoReturn:  # type: ignore[override]
        """Run one command line and exit with its code."""
        session = self.make_session()
        args = list(sys.argv[1:] if args is None else args)
        options |= {"standalone_mode": False, "obj": session}
        try:
            _write_what_can_be()
            _check_arguments(args)
            result = super().main(args, prog_name or self.program, **options)
            code = result if isinstance(result, int) else 0
        except click.exceptions.NoArgsIsHelpError as missing:
            missing.show()
            code = missing.exit_code
        except click.ClickException as wrong:
            code = self._end_usage(wrong)
        except (click.Abort, KeyboardInterrupt):
            code = self._end(["interrupted"], _INTERRUPTED, level=logging.WARNING)
        except HeadwaterError as error:
            code = self._end([*self.error_lines(error), *_origin_lines(session)], exit_code(error), session)
        except ModuleNotFoundError as absent:
            refused = missing_extra(absent)
            code = self._end([str(refused)], exit_code(refused), session) if refused else self._end_bug(absent, session)
        except OSError as fault:
            is_full = fault.errno in _FULL and fault.filename is None  # as of a stream
            full = [f"what was printed could not be written: {fault.strerror}"]
            code = self._end(full, exit_code(UnavailableError()), session) if is_full else self._end_bug(fault, session)
        except Exception as bug:  # noqa: BLE001 - the door: whatever comes out here is a bug, and is told as one
            code = self._end_bug(bug, session)
        sys.exit(code)

    def _end_usage(self, wrong: click.ClickException) -> int:
        ctx = wrong.ctx if isinstance(wrong, click.UsageError) else None
        where = f"; see `{ctx.command_path} --help`" if ctx else ""
        code = wrong.exit_code if isinstance(wrong, click.UsageError) else 2
        return self._end([f"{wrong.format_message().rstrip('.')}{where}"], code)

    def _end_bug(self, bug: Exception, session: Any) -> int:
        lines = [f"a bug: {type(bug).__name__}: {bug}{self.debug_advice}"]
        return self._end(lines, _BUG, session, is_debug=not self.debug_advice)

    def _end(
        self, lines: Sequence[str], code: int, session: Any = None, *, level: int = logging.ERROR, is_debug: bool = False
    ) -> int:
        with suppress(OSError):  # nobody can be told, but by the code
            self.tell(lines, level=level, is_debug=is_debug or bool(getattr(session, "debug", False)))
        return code


def _write_what_can_be() -> None:
    """Where the locale knows few characters, the others are written as ``\\u2192``: what was done is told all the same."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and codecs.lookup(stream.encoding).name != "utf-8":
            stream.reconfigure(errors="backslashreplace")


def _check_arguments(args: Sequence[str]) -> None:
    """raises UsageError for an argument of bytes that are no text"""
    for text in args:
        if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
            raise click.UsageError(f"the argument {text!r} is not UTF-8")


def _origin_lines(session: Any) -> Sequence[str]:
    return session.origin_lines() if isinstance(session, ConsoleSession) else ()


class ConsoleSession:
    """One call of a command line. Its fields are set by options that may stand before and after a command's name.

    output        how results are printed on standard output
    quiet         print only the names of results there
    verbose       print all fields of what a command did, instead of one sentence
    no_headers    print tables without the heads of their columns
    debug         whether a failure shows its traceback
    """

    output: Output = "table"
    quiet: bool = False
    verbose: bool = False
    no_headers: bool = False
    debug: bool = False

    @property
    def is_text(self) -> bool:
        """Whether results are printed as text for people."""
        return self.output in ("table", "wide") and not self.quiet

    @property
    def layout(self) -> TextLayout:
        """How text for people is laid out on standard output: as it is in a pipe, and to fit a terminal."""
        is_seen = is_terminal(sys.stdout)
        width = columns_of(sys.stdout) if is_seen and self.output == "table" else None
        return TextLayout(width, has_heads=not self.no_headers, has_colors=has_colors(sys.stdout))

    def settle_option(self, field: str) -> None:
        """Set a field that no option set. Called for each once the command's options are read."""

    def is_given(self, field: str) -> bool:
        """Whether an option set the field, and not a default."""
        return bool(click.get_current_context().meta.get(_GIVEN.format(field)))

    def origin_lines(self) -> Sequence[str]:
        """What a person should know of a failed call: values that the command line did not say."""
        return ()

    def show(self, view: ResultView[T], item: T) -> None:
        """Print one result: a line per field, or an object."""
        data = view.data(item)
        if self.quiet or self.output == "name":
            _echo_names(view.names(data))
        elif self.output == "csv":
            click.echo(csv_text([data], list(data), has_heads=not self.no_headers), nl=False)
        else:
            self.print_result(data, lambda: result_lines(data, self.layout))

    def show_done(self, view: ResultView[T], item: T, *sentences: str) -> None:
        """Print what a command did: people get the sentences, and all fields with ``--verbose``; programs get the object."""
        if self.is_text and not self.verbose:
            _echo_lines(map(printable, sentences))
        else:
            self.show(view, item)

    def show_all(self, view: ResultView[T], items: Sequence[T]) -> None:
        """Print results: aligned columns, or a list of objects. Without any, nothing; a person is told so on standard error."""
        rows = list(map(view.data, items))
        if self.quiet or self.output == "name":
            _echo_names(name for row in rows for name in view.names(row))
        elif self.output == "csv":
            heads = [field.name for field in view.fields]
            click.echo(csv_text(rows, heads, has_heads=not self.no_headers), nl=False)
        else:
            self.print_result(rows, lambda: view.columns(rows, self.layout, is_wide=self.output == "wide"))
        if not rows and self.is_text and is_terminal(sys.stderr):
            click.echo(f"no {view.plural}", err=True)

    def show_page(self, view: ResultView[T], items: Sequence[T], next_token: str | None) -> None:
        """Print one page of a longer list. In JSON and YAML it is an object: ``items``, and ``nextPageToken``, null on the last."""
        if self.output in ("json", "yaml") and not self.quiet:
            self.print_data({"items": list(map(view.data, items)), "nextPageToken": next_token})
        else:
            self.show_all(view, items)

    def show_changes(self, view: ResultView[T], items: Sequence[T], *sentences: str) -> None:
        """Print several results of one change: people get the sentences, and the table with ``--verbose``; programs get the list."""
        if self.is_text and not self.verbose:
            _echo_lines(map(printable, sentences))
        else:
            self.show_all(view, items)

    def print_result(self, data: Any, lines: Callable[[], Sequence[str]]) -> None:
        """Print a result in the format that was asked for: plain data, or lines for people."""
        if self.output in ("json", "yaml"):
            self.print_data(data)
        elif self.output == "csv" and isinstance(data, list):
            click.echo(csv_text(data, list(data[0]) if data else [], has_heads=not self.no_headers), nl=False)
        else:
            _echo_lines(lines())

    def print_data(self, data: Any) -> None:
        """Print plain data as JSON or YAML, whatever was asked for; a table has no use for it."""
        erase_line()
        click.echo(yaml_text(data) if self.output == "yaml" else json_text(data), nl=False)

    def say(self, sentence: str) -> None:
        """Say what was done: on standard output if text is printed there, on standard error if a program reads the output."""
        if not self.quiet:
            erase_line()
            click.echo(printable(sentence), err=not self.is_text)


def _echo_lines(lines: Iterable[str]) -> None:
    erase_line()
    if text := "\n".join(lines):
        click.echo(text)


def _echo_names(names: Iterable[str]) -> None:
    """Names for programs as they are; a terminal shows what it would obey."""
    _echo_lines(map(printable, names) if is_terminal(sys.stdout) else names)


def session_option(*names: str, field: str, **options: Any) -> Callable[[F], F]:
    """An option that sets a field of the session: on the root and on commands, so that it may come before or after a command's name."""

    def keep(ctx: click.Context, parameter: click.Parameter, value: Any) -> None:
        if ctx.get_parameter_source(field) is not ParameterSource.DEFAULT:
            setattr(ctx.obj, field, value)
            ctx.meta[_GIVEN.format(field)] = True  # click's contexts of one call share it
        elif not isinstance(ctx.command, click.Group) and not ctx.meta.get(_GIVEN.format(field)):
            ctx.obj.settle_option(field)

    # eager: these are read before the arguments, some of which depend on them
    return click.option(*names, field, callback=keep, expose_value=False, is_eager=True, **options)


def option_group(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Several options or arguments as one, in this order."""

    def decorate(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


output_option = session_option(
    "-o",
    "--output",
    field="output",
    type=click.Choice(["table", "json", "yaml"]),
    help="How to print results: table (default), json or yaml.",
)
result_options = option_group(
    session_option(
        "-o",
        "--output",
        field="output",
        type=click.Choice(["table", "wide", "name", "csv", "json", "yaml"]),
        help="How to print results: table (default), wide (all columns), name, csv, json or yaml.",
    ),
    session_option("-q", "--quiet", field="quiet", is_flag=True, help="Print only names or ids of results."),
    session_option(
        "-v",
        "--verbose",
        field="verbose",
        is_flag=True,
        help="Print all fields of what was done, instead of a sentence.",
    ),
    session_option("--no-headers", field="no_headers", is_flag=True, help="Print tables without column heads."),
)
RESULT_OPTIONS = frozenset({"output", "quiet", "verbose", "no_headers"})
"""The names of these options: every command that prints results has them."""
debug_option = session_option("--debug", field="debug", is_flag=True, help="Show the traceback of a failure.")


@dataclass(frozen=True, slots=True)
class PrintedForm:
    """What a command prints on standard output: one result of the view, or many, perhaps in pages."""

    view: ResultView[Any]
    many: bool
    is_page: bool = False


def prints(
    view: ResultView[Any], *, many: bool = False, is_page: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Hand the session to a command that prints results, add ``-o`` and its like, and record for the documentation what it prints."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        function.__dict__["printed"] = PrintedForm(view, many or is_page, is_page)
        return result_options(click.pass_obj(function))

    return decorate


class ParsedType(click.ParamType[T]):
    """The type of arguments and options that a function parses. What it refuses is an error of usage."""

    def __init__(self, name: str, parse: Callable[[str], T]) -> None:
        self.name = name
        self._parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> T:
        try:
            return self._parse(value)
        except RefusedError as wrong:
            self.fail(str(wrong), param, ctx)


class UndashedPath(click.Path):
    """The type of files and folders that have a name. ``-`` is none: elsewhere it means standard output or input."""

    def __init__(self, *, file_okay: bool = True, dir_okay: bool = True) -> None:
        super().__init__(file_okay=file_okay, dir_okay=dir_okay, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "-":
            self.fail("'-' would be standard output or input, which cannot be used here: write ./- for that name", param, ctx)
        return super().convert(value, param, ctx)


DURATION = ParsedType("duration", parse_duration)


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


@dataclass(frozen=True, slots=True)
class ViewField(Generic[T]):
    """One field of a result.

    source        where its value is in an item: names of attributes or keys, joined by dots; empty: the field's own name, which is
                  read as ``own_name`` where the item is no mapping. Or a function of the item
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

    @property
    def head(self) -> str:
        """The head of its column where all fields are shown: ``heldUntil`` is HELD UNTIL."""
        return self.header or _CAPITAL.sub(r" \g<0>", self.name).upper()

    def read(self, item: T) -> Any:
        """The field's value of an item, as plain data."""
        return self.form(_follow(item, self.source or self.name) if isinstance(self.source, str) else self.source(item))


@dataclass(frozen=True, slots=True)
class ResultView(Generic[T]):
    """One kind of result. The names of its fields are a contract: ``docs/reference/cli.md`` is made from them."""

    name: str
    plural: str
    fields: tuple[ViewField[T], ...]
    named_by: str | None = None
    """What ``-o name`` prints: names of fields, joined by a slash. None: the first field. Empty: nothing, for it has no name."""

    def with_columns(self, **headers: str) -> ResultView[T]:
        """Returns a view with other table columns: ``headers`` maps field names to column heads."""
        return replace(self, fields=tuple(replace(field, header=headers.get(field.name, "")) for field in self.fields))

    def data(self, item: T) -> dict[str, Any]:
        """The result as plain data: every field, in the order of the documentation."""
        return {field.name: field.read(item) for field in self.fields}

    def names(self, row: Mapping[str, Any]) -> list[str]:
        """What a result, as `data` gives it, is called: one name, or several where the field is a list."""
        if self.named_by == "":
            return []
        values = [row[name] for name in (self.named_by or self.fields[0].name).split("/")]
        if len(values) == 1 and isinstance(values[0], list):
            return list(map(str, values[0]))
        return ["/".join(str(value) for value in values if value is not None)]

    def columns(self, rows: Sequence[Mapping[str, Any]], layout: TextLayout = PLAIN, *, is_wide: bool = False) -> list[str]:
        """Format results, as `data` gives them, as aligned columns; without any, no line at all.

        is_wide       with a column for every field that is no object and no list of objects
        """
        if not rows:
            return []
        shown = [field for field in self.fields if field.header or (is_wide and not field.inside)]
        heads = [field.head for field in shown]
        return text_table(heads, [[row[field.name] for field in shown] for row in rows], layout=layout)


def count_text(count: int, noun: str) -> str:
    """Format a count with its noun: ``1 table``, ``2 tables``, ``2 entries``, ``2 branches``."""
    return f"{count} {noun}" if count == 1 else f"{count} {_plural(noun)}"


def _plural(noun: str) -> str:
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return f"{noun[:-1]}ies"
    return f"{noun}es" if noun.endswith(("s", "x", "ch", "sh")) else f"{noun}s"


def bytes_text(count: float) -> str:
    """Format a number of bytes: ``512 B``, ``1.5 KiB``."""
    size, unit = float(count), "B"
    for larger in _SIZES:
        if size < 1024:
            break
        size, unit = size / 1024, larger
    return f"{size:.1f} {unit}" if unit != "B" else f"{count:.0f} B"


def csv_text(rows: Sequence[Mapping[str, Any]], heads: Sequence[str], *, has_heads: bool = True) -> str:
    """Rows as CSV: the names of all fields, then a line a row. What is nested is JSON in its cell, null an empty cell.

    A text that a spreadsheet would compute begins with an apostrophe, which spreadsheets take for the mark of a text.
    """
    lines = [heads] if has_heads and heads else []
    return "".join(map(_csv_line, [*lines, *([_csv_cell(row.get(head)) for head in heads] for row in rows)]))


def _csv_line(cells: Sequence[str]) -> str:
    line = io.StringIO()
    csv.writer(line).writerow(cells)  # which quotes a cell with either character of its own end of a line, \r\n
    return line.getvalue().removesuffix("\r\n") + "\n"


def _csv_cell(value: Any) -> str:
    if value is None:
        return ""
    return inert_cell(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def json_text(data: Any) -> str:
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def yaml_text(data: Any) -> str:
    import yaml  # it takes longer to import than most commands to run

    return str(yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=1000))
