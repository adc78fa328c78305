"""Help of the command line from a table, ``help_pages.json``, which ``make docs`` writes from the commands.

To ask the commands themselves takes a second, for each brings along what it does. What the table does not answer, they do.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import click

__all__ = ["COMPLETE_VARIABLE", "FILE", "describe_commands", "print_help", "render_help"]

COMPLETE_VARIABLE = "_HEADWATER_COMPLETE"
"""Set while a shell asks for completions, by command lines that may have no word: Click's own name for it."""
FILE = Path(__file__).with_name("help_pages.json")
_HELP = ("-h", "--help")
_PROGRAM = "headwater"
_NO_COMMAND = 2
_DEEPEST = 2
"""As many words name a group: ``catalog branch``."""


def print_help(words: Sequence[str]) -> int | None:
    """Print the help that a command line asks for, or that it gets for naming no command. Returns the exit code.

    None: it asks for something else, such as completions, or cannot be understood without the commands.
    """
    if COMPLETE_VARIABLE in os.environ:
        return None
    is_asked = bool({*words} & {*_HELP})
    if not is_asked and (len(words) > _DEEPEST or any(word.startswith("-") for word in words)):
        return None
    pages = json.loads(FILE.read_text(encoding="utf-8"))
    path = _asked(words, pages) if is_asked else " ".join(words)
    if path is None or path not in pages or not (is_asked or pages[path]["commands"]):
        return None
    (sys.stdout if is_asked else sys.stderr).write(render_help(pages, path))
    return 0 if is_asked else _NO_COMMAND


def _asked(words: Sequence[str], pages: Mapping[str, Any]) -> str | None:
    """The command whose help is asked for; None where that is not certain: options of single commands are not known here."""
    path, left = "", list(words)
    values = set(pages[""]["values"])
    while left:
        word = left.pop(0)
        if word in _HELP:
            return path
        if word in values and left:
            left.pop(0)
        elif word.startswith("-"):
            return None
        elif pages[path]["commands"]:
            path = f"{path} {word}".strip()
            if path not in pages:
                return None
    return None


def render_help(pages: Mapping[str, Any], path: str, *, width: int | None = None) -> str:
    """The help of a command, as the command itself would give it. Columns of the terminal are at most 80, unless ``width`` says more."""
    import click

    page = pages[path]
    formatter = click.HelpFormatter() if width is None else click.HelpFormatter(width=width)
    formatter.write_usage(f"{_PROGRAM} {path}".strip(), page["usage"])
    _write_text(formatter, page["text"])
    with formatter.section("Options"):
        formatter.write_dl(list(map(tuple, page["options"])))
    if page["commands"]:
        with formatter.section("Commands"):
            formatter.write_dl(list(map(tuple, page["commands"])))
    _write_text(formatter, page["end"])
    return formatter.getvalue()


def _write_text(formatter: click.HelpFormatter, text: str) -> None:
    if text:
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(text)


def describe_commands(program: click.Command) -> dict[str, Any]:
    """The table for a program and all its commands, by the words after the program's name."""
    import click

    return _described(program, click.Context(program, info_name=_PROGRAM, **program.context_settings), "")


def _help_option(context: click.Context) -> click.Option:
    """The option that the program has. A command keeps the one that it was first asked for, perhaps in another context."""
    import click

    return click.Option([*context.help_option_names], is_flag=True, expose_value=False, help="Show this message and exit.")


def _described(command: click.Command, context: click.Context, path: str) -> dict[str, Any]:
    import inspect

    import click

    inner: dict[str, click.Command] = {}
    if isinstance(command, click.Group):
        found = ((name, command.get_command(context, name)) for name in command.list_commands(context))
        inner = {name: each for name, each in found if each is not None}
    parameters = [*command.params, _help_option(context)]
    page = {
        "usage": " ".join(command.collect_usage_pieces(context)),
        "text": inspect.cleandoc(command.help or "").partition("\f")[0],
        "options": [
            record
            for each in parameters
            if isinstance(each, click.Option) and (record := each.get_help_record(context)) is not None
        ],
        "commands": [(name, each.get_short_help_str(1000)) for name, each in inner.items() if not each.hidden],
        "end": inspect.cleandoc(command.epilog or ""),
    }
    if not path:
        options = [each for each in parameters if isinstance(each, click.Option)]
        page["values"] = [name for each in options if not each.is_flag and not each.count for name in each.opts]
    pages = {path: page}
    for name, each in inner.items():
        pages |= _described(each, click.Context(each, parent=context, info_name=name), f"{path} {name}".strip())
    return pages
