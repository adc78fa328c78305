"""Help opens at once, fits the terminal, and shows examples that can be typed."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Iterator

import click
import pytest

from headwater.cli import CliSession, main
from headwater.cli.help_texts import HELP_TEXTS, PROGRAM
from headwater.help_pages import FILE, describe_commands, print_help, render_help

PAGES = json.loads(FILE.read_text(encoding="utf-8"))
COLUMNS = 80
HEAVY = (
    "celery fsspec jinja2 msgspec pyarrow pyspark rich structlog yaml"
    " headwater.catalogs headwater.cli headwater.settings headwater.store"
)


def commands(width: int | None = None) -> Iterator[tuple[str, click.Command, click.Context]]:
    """Every command with its path and its context."""

    def walk(command: click.Command, context: click.Context, path: str) -> Iterator[tuple[str, click.Command, click.Context]]:
        command._help_option = None  # click keeps the one that another test asked for in a bare context
        yield path, command, context
        for name in command.list_commands(context) if isinstance(command, click.Group) else ():
            inner = command.get_command(context, name)
            assert inner is not None
            yield from walk(inner, click.Context(inner, parent=context, info_name=name), f"{path} {name}".strip())

    settings = {**main.context_settings, "terminal_width": width, "obj": CliSession()}
    yield from walk(main, click.Context(main, info_name=PROGRAM, **settings), "")


COMMANDS = {path: command for path, command, _ in commands() if path}


def test_table_of_help_is_what_the_commands_say() -> None:
    assert json.loads(json.dumps(describe_commands(main))) == PAGES, "run `make docs`"


@pytest.mark.parametrize("width", [60, COLUMNS - 2, 120])
def test_help_from_the_table_is_that_of_the_commands(width: int) -> None:
    told = {path: command.get_help(context) + "\n" for path, command, context in commands(width)}

    assert {path: render_help(PAGES, path, width=width) for path in told} == told


def test_every_command_has_a_text_and_no_text_is_left() -> None:
    assert sorted(HELP_TEXTS) == sorted(COMMANDS)
    assert [
        path for path, text in HELP_TEXTS.items() if not isinstance(COMMANDS[path], click.Group) and not text.examples
    ] == []


def test_summaries_fit_into_the_list_of_commands() -> None:
    cut = []
    for path, page in PAGES.items():
        lines = render_help(PAGES, path, width=COLUMNS - 2).partition("\nCommands:\n")[2].splitlines()
        listed = lines[: lines.index("")] if "" in lines else lines
        if page["commands"] and (len(listed) != len(page["commands"]) or any(line.endswith("...") for line in listed)):
            cut.append(path)

    assert cut == []


@pytest.mark.parametrize(
    ("path", "line"), [(path, line) for path, text in HELP_TEXTS.items() for line in text.examples], ids=lambda value: value
)
def test_example_is_a_command_line_that_the_program_takes(path: str, line: str) -> None:
    context, words = click.Context(main, info_name=PROGRAM, obj=CliSession(), **main.context_settings), shlex.split(line)
    command: click.Command = main
    while isinstance(command, click.Group):
        inner = command.get_command(context, words[0])
        assert inner is not None, words[0]
        context, command = click.Context(inner, parent=context, info_name=words.pop(0)), inner

    assert context.command_path == f"{PROGRAM} {path}"
    assert command.make_context(path.split()[-1], words, parent=context.parent).params is not None


@pytest.mark.parametrize(
    ("line", "begin"),
    [
        ("--help", "Usage: headwater [OPTIONS] COMMAND"),
        ("catalog merge -h", "Usage: headwater catalog merge"),
        ("--store x catalog -o json merge --help", "Usage: headwater catalog merge"),
        ("catalog merge acme/lake --help", "Usage: headwater catalog merge"),
    ],
)
def test_help_is_printed_from_the_table(capsys: pytest.CaptureFixture[str], line: str, begin: str) -> None:
    assert print_help(line.split()) == 0
    assert capsys.readouterr().out.startswith(begin)


@pytest.mark.parametrize("line", ["", "catalog", "catalog branch"])
def test_group_alone_shows_its_help_as_an_error(capsys: pytest.CaptureFixture[str], line: str) -> None:
    assert print_help(line.split()) == 2
    assert capsys.readouterr().err.startswith(f"Usage: headwater{' ' if line else ''}{line} [OPTIONS] COMMAND")


@pytest.mark.parametrize(
    "line", ["realm list", "catalog log acme/lake --message --help", "nonsense --help", "catalog nonsense", "fsck", "-o json"]
)
def test_other_lines_are_left_to_the_commands(line: str) -> None:
    assert print_help(line.split()) is None


@pytest.mark.long
def test_help_loads_nothing_but_its_table() -> None:
    program = (
        "import sys; sys.argv[1:] = ['catalog', 'merge', '--help']\n"
        "from headwater.entry import run\n"
        "try: run()\n"
        "finally: print(sorted(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert [name for name in HEAVY.split() if f"'{name}'" in done.stderr] == []
    assert done.stdout.startswith("Usage: headwater catalog merge")
