"""Arguments and options that many commands share, the conversion of their texts to values, and the user as the default author."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from typing import Any, TypeVar, cast

import click
from click.shell_completion import CompletionItem

from headwater.catalogs import ContentKey, FilterExpression, parse_revspec
from headwater.clock import Micros, SystemClock
from headwater.console import ParsedType, UndashedPath
from headwater.errors import RefusedError
from headwater.restore import RestoreTarget
from headwater.settings import is_duration, parse_duration
from headwater.store import id_of

F = TypeVar("F", bound=Callable[..., Any])
_LAST_SECOND = datetime(9999, 12, 31, tzinfo=UTC).timestamp()


def _revspec(text: str) -> str:
    """A branch, tag or commit, or an ancestor of one. The syntax is checked here, its existence by the store."""
    return parse_revspec(text).text


def _aim(text: str) -> str:
    """The target of a restore: a commit, a time in the past, or a revision such as main~1."""
    if RestoreTarget.find_in(text, SystemClock().now()) is None:
        parse_revspec(text)
    return text


def _time(text: str) -> Micros:
    """A time, in UTC unless it names a zone, or a duration before now by the clock of this machine."""
    if is_duration(text):
        return _storable(text, SystemClock().wall() - round(parse_duration(text) * 1_000_000))
    try:
        time = datetime.fromisoformat(text)
        return _storable(text, round((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() * 1_000_000))
    except ValueError:
        raise RefusedError(f"{text!r} is not a valid time: write it as 2026-05-28T20:26:40Z, or 90m for as long ago") from None


def _end_time(text: str) -> Micros:
    """A time without a fraction is the end of its second, for that is how times are printed, and a date that of its day."""
    time = _time(text)
    if is_duration(text) or {".", ","} & set(text):
        return time
    return _storable(text, time + (86_400 if _is_date(text) else 1) * 1_000_000 - 1)


def _storable(text: str, micros: int) -> Micros:
    if not 0 <= micros < _LAST_SECOND * 1_000_000:
        raise RefusedError(f"{text!r} is not a time that a store can hold: those are from 1970 to 9999")
    return Micros(micros)


def _is_date(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


AIM = ParsedType("aim", _aim)
ID = ParsedType("id", id_of)
KEY = ParsedType("key", ContentKey.parse)
REF = ParsedType("ref", _revspec)
TIME = ParsedType("time", _time)
END_TIME = ParsedType("time", _end_time)
FILE = UndashedPath(dir_okay=False)
FOLDER = UndashedPath(file_okay=False)


def live_names(function: str) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    """The completion of a parameter by a function of ``live_names``, which is imported when a shell asks for it: it opens stores."""

    def complete(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from headwater.cli import live_names as names

        return cast(list[CompletionItem], getattr(names, function)(ctx, parameter, incomplete))

    return complete


realm_argument = click.argument("realm_id", metavar="REALM", shell_complete=live_names("complete_realms"))
"""For commands that change the realm itself: it has to be written."""


def filter_option(kind: type[FilterExpression[Any]], what: str) -> Callable[[F], F]:
    """An option for a filter of one kind, by its class."""
    return click.option(
        "--filter",
        "expression",
        metavar="CEL",
        type=ParsedType("filter", kind.parse),
        help=f"Only {what}; docs/reference/filters.md lists the names.",
    )


def limit_option(default: int) -> Callable[[F], F]:
    return click.option(
        "--limit", metavar="COUNT", type=click.IntRange(min=1), default=default, show_default=True, help="At most so many."
    )


def read_pairs(ctx: click.Context, parameter: click.Parameter, texts: Sequence[str]) -> list[tuple[str, str]]:
    """The names and values of texts such as NAME=VALUE."""
    pairs = [text.partition("=") for text in texts]
    for text, (name, sign, _) in zip(texts, pairs, strict=True):
        if not sign or not name:
            raise click.BadParameter(f"{text!r} is not of the form NAME=VALUE", ctx, parameter)
    return [(name, value) for name, _, value in pairs]


properties_option: Callable[[F], F] = click.option(
    "--property",
    "properties",
    metavar="NAME=VALUE",
    multiple=True,
    callback=lambda ctx, parameter, texts: dict(read_pairs(ctx, parameter, texts)),
    help="A property; may be repeated.",
)


def confirm_option(what: str) -> Callable[[F], F]:
    """``--confirm``: a person repeats the name of what goes away. Without it a command shows its plan and is refused."""
    return click.option(
        "--confirm", metavar=what, help=f"Repeat {what} to go ahead; without it, the plan is shown and nothing is done."
    )


def detach_option(help_text: str = "Leave the work to a worker instead of doing it here.") -> Callable[[F], F]:
    return click.option("--detach", is_flag=True, help=help_text)


def author_option(function: F) -> F:
    """``--author NAME``, as the argument ``author``."""
    return click.option(
        "--author",
        metavar="NAME",
        help="Who asks for it, as it is noted; default is HEADWATER_AUTHOR, or the context's, or the user.",
    )(function)
