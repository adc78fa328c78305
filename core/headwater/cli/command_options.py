"""Options that many commands share, the conversion of their texts to values, and the user as the default author."""

from __future__ import annotations

import getpass
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any, TypeVar

import click

from headwater.catalogs import HEADWATER, ContentKey, parse_revspec
from headwater.cli.cli_session import OUTPUTS, CliSession
from headwater.cli.result_output import ResultView
from headwater.clock import Micros, SystemClock
from headwater.errors import RefusedError
from headwater.restore import RestoreTarget
from headwater.settings import is_duration, parse_duration
from headwater.store import ObjectId, id_of

F = TypeVar("F", bound=Callable[..., Any])
_LAST_SECOND = datetime(9999, 12, 31, tzinfo=UTC).timestamp()


class _Id(click.ParamType[ObjectId]):
    name = "id"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> ObjectId:
        try:
            return id_of(value)
        except RefusedError as wrong:
            self.fail(str(wrong), param, ctx)


class _IdOrRef(click.ParamType[ObjectId | str]):
    """An object's id, or CATALOG/REF as a text, which alone has a slash."""

    name = "id"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> ObjectId | str:
        return value if isinstance(value, str) and "/" in value else ID.convert(value, param, ctx)


class _Ref(click.ParamType[str]):
    """A branch, tag or commit, or an ancestor of one. The syntax is checked here, its existence by the store."""

    name = "ref"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            return parse_revspec(str(value)).text
        except RefusedError as wrong:
            self.fail(str(wrong), param, ctx)


class _Key(click.ParamType[ContentKey]):
    name = "key"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> ContentKey:
        try:
            return ContentKey.parse(str(value))
        except RefusedError as wrong:
            self.fail(str(wrong), param, ctx)


class _Aim(click.ParamType[str]):
    """The target of a restore: a commit, or a time in the past."""

    name = "aim"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            RestoreTarget.from_text(str(value), SystemClock().now())
        except RefusedError as wrong:
            self.fail(str(wrong), param, ctx)
        return str(value)


class _Duration(click.ParamType[float]):
    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            return parse_duration(value)
        except RefusedError as wrong:
            self.fail(str(wrong), param, ctx)


class _Time(click.ParamType[Micros]):
    """A time, in UTC unless it names a zone, or a duration before now by the clock of this machine.

    is_end        a time without a fraction is the end of its second, for that is how times are printed, and a date that of its day
    """

    name = "time"

    def __init__(self, *, is_end: bool = False) -> None:
        self._is_end = is_end

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Micros:
        text = str(value)
        try:
            micros = SystemClock().wall() - round(parse_duration(text) * 1_000_000) if is_duration(text) else self._told(text)
        except RefusedError as wrong:
            self.fail(str(wrong), param, ctx)
        except ValueError:
            self.fail(f"{text!r} is not a valid time: write it as 2026-05-28T20:26:40Z, or 90m for as long ago", param, ctx)
        if not 0 <= micros < _LAST_SECOND * 1_000_000:
            self.fail(f"{text!r} is not a time that a store can hold: those are from 1970 to 9999", param, ctx)
        return Micros(micros)

    def _told(self, text: str) -> int:
        time = datetime.fromisoformat(text)
        micros = round((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() * 1_000_000)
        if not self._is_end or {".", ","} & set(text):
            return micros
        return micros + (86_400 if _is_date(text) else 1) * 1_000_000 - 1


def _is_date(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


AIM = _Aim()
ID = _Id()
ID_OR_REF = _IdOrRef()
KEY = _Key()
REF = _Ref()
DURATION = _Duration()
TIME = _Time()
END_TIME = _Time(is_end=True)


def _set_output(ctx: click.Context, parameter: click.Parameter, value: Any) -> None:
    if value is not None:
        ctx.ensure_object(CliSession).output = value


output_option: Callable[[F], F] = click.option(
    "-o",
    "--output",
    type=click.Choice(OUTPUTS),
    callback=_set_output,
    expose_value=False,
    help="How to print results: table (default), json or yaml.",
)
"""The option of the root and of every command that prints results: it may come before or after the command's name."""


@dataclass(frozen=True, slots=True)
class PrintedForm:
    """What a command prints on standard output: one result of the view, or many."""

    view: ResultView[Any]
    many: bool


def prints(view: ResultView[Any], *, many: bool = False) -> Callable[[F], F]:
    """Add ``-o`` to a command, and record for the documentation what it prints. Put it right above ``click.pass_obj``."""

    def decorate(function: F) -> F:
        function.__dict__["printed"] = PrintedForm(view, many)
        return output_option(function)

    return decorate


def _read_properties(ctx: click.Context, parameter: click.Parameter, values: Sequence[str]) -> dict[str, str]:
    properties = {}
    for text in values:
        name, sign, value = text.partition("=")
        if not sign or not name:
            raise click.BadParameter(f"{text!r} is not of the form NAME=VALUE", ctx, parameter)
        properties[name] = value
    return properties


properties_option: Callable[[F], F] = click.option(
    "--property",
    "properties",
    metavar="NAME=VALUE",
    multiple=True,
    callback=_read_properties,
    help="A property; may be repeated.",
)


def confirm_option(what: str) -> Callable[[F], F]:
    """``--confirm``: a person repeats the name of what goes away. Without it a command shows its plan and is refused."""
    return click.option(
        "--confirm", metavar=what, help=f"Repeat {what} to go ahead; without it, the plan is shown and nothing is done."
    )


def author_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """``--author NAME``, as the argument ``author``."""
    return click.option("--author", metavar="NAME", help="Who asks for it, noted in the commits; default is the user.")(
        function
    )


def person() -> str:
    """Returns the user name of the process, or ``headwater`` for a user id without a name."""
    try:
        return getpass.getuser() or HEADWATER
    except (OSError, KeyError, ImportError):  # a user id without a name, as containers may have
        return HEADWATER
