"""What the command lines of the core, the operator and the kubectl plugin share: how they end, what they print, and how texts are parsed.

Knows errors and exit codes, but no store.
"""

from __future__ import annotations

import json
import logging
import os
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any, Literal, NoReturn, TypeVar, cast

import click
import yaml

from headwater.errors import HeadwaterError, RefusedError
from headwater.exits import exit_code
from headwater.extras import missing_extra
from headwater.settings import parse_duration

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")
Output = Literal["table", "json", "yaml"]
_INTERRUPTED = 130
_BUG = 1


class Program(click.Group):
    """The root of a command tree: any exception that a command raises ends the process with the documented exit code.

    A command returns its code.

    program           the name on the command line, printed before each line on standard error
    debug_advice      how to see the traceback of a bug; empty where it is always shown
    """

    program = "headwater"
    debug_advice = "; run again with --debug for the traceback"

    def begin(self) -> Any:
        """Runs before any command. Returns ``ctx.obj`` for the commands; its ``debug`` says whether tracebacks are shown."""
        return None

    def error_lines(self, error: HeadwaterError) -> Sequence[str]:
        return [str(error)]

    def tell(self, lines: Sequence[str], *, level: int, is_debug: bool) -> None:
        """Report the current exception on standard error in one line; with ``is_debug`` also its traceback."""
        if is_debug:
            sys.excepthook(*cast(Any, sys.exc_info()))
        click.echo(f"{self.program}: {' '.join(' '.join(lines).split())}", err=True)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            # the reader of the output is gone, as with `head`; discard the rest
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0

    def main(self, args: Sequence[str] | None = None, prog_name: str | None = None, **options: Any) -> NoReturn:  # type: ignore[override]
        """Run one command line and exit with its code."""
        session = self.begin()
        options |= {"standalone_mode": False, "obj": session}
        try:
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
            code = self._end(self.error_lines(error), exit_code(error), session)
        except ModuleNotFoundError as absent:
            refused = missing_extra(absent)
            code = self._end([str(refused)], exit_code(refused), session) if refused else self._end_bug(absent, session)
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
        self.tell(lines, level=level, is_debug=is_debug or bool(getattr(session, "debug", False)))
        return code


class ConsoleSession:
    """One call of a command line. Its fields are set by options that may stand before and after a command's name.

    output        how results are printed on standard output
    debug         whether a failure shows its traceback
    """

    output: Output = "table"
    debug: bool = False

    def print_result(self, data: Any, lines: Callable[[], Sequence[str]]) -> None:
        """Print a result in the format that was asked for: plain data, or lines for people."""
        if self.output == "table":
            click.echo("\n".join(lines()))
        else:
            self.print_data(data)

    def print_data(self, data: Any) -> None:
        """Print plain data as JSON or YAML, whatever was asked for; a table has no use for it."""
        click.echo(yaml_text(data) if self.output == "yaml" else json_text(data), nl=False)

    def say(self, sentence: str) -> None:
        """Say what was done: on standard output if tables are printed there, on standard error if a program reads the output."""
        click.echo(sentence, err=self.output != "table")


def session_option(*names: str, field: str, **options: Any) -> Callable[[F], F]:
    """An option that sets a field of the session: on the root and on commands, so that it may come before or after a command's name."""

    def keep(ctx: click.Context, parameter: click.Parameter, value: Any) -> None:
        if value is not None:
            setattr(ctx.obj, field, value)

    return click.option(*names, field, callback=keep, expose_value=False, **options)


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


DURATION = ParsedType("duration", parse_duration)

_GAP = "   "
_SIZES = ("KiB", "MiB", "GiB", "TiB", "PiB")
_LINE_BREAK = re.compile(r"\s*[\r\n]\s*")


def text_table(heads: Sequence[str], rows: Sequence[Sequence[Any]], indent: str = "") -> list[str]:
    """Format rows as lines of columns, each as wide as its widest cell."""
    texts = [list(heads), *([cell(value) for value in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    return [indent + _GAP.join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in texts]


def cell(value: Any) -> str:
    """Format a plain value as one cell of a line. An empty value is a dash, so that awk still sees a column."""
    if value is None or value in ("", [], {}):
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ",".join(f"{name}={cell(item)}" for name, item in value.items())
    if isinstance(value, list | tuple):
        return ",".join(map(cell, value))
    return _LINE_BREAK.sub(" ", str(value))


def count_text(count: int, noun: str) -> str:
    """Format a count with its noun: ``1 table``, ``2 tables``."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def bytes_text(count: float) -> str:
    """Format a number of bytes: ``512 B``, ``1.5 KiB``."""
    size, unit = float(count), "B"
    for larger in _SIZES:
        if size < 1024:
            break
        size, unit = size / 1024, larger
    return f"{size:.1f} {unit}" if unit != "B" else f"{count:.0f} B"


def json_text(data: Any) -> str:
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def yaml_text(data: Any) -> str:
    return str(yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=1000))
