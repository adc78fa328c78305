"""Every command line that a page shows can be typed: the command is there, and so are its options."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import click
import pytest

from headwater.cli import CliSession, main
from headwater_operator.main import main as operator_main
from headwater_operator.plugin import main as plugin_main

FOLDER = Path(__file__).parents[2]
PAGES = [
    FOLDER / "README.md",
    FOLDER / "CHANGELOG.md",
    *sorted((FOLDER / "docs").rglob("*.md")),
    *sorted((FOLDER / "charts").rglob("*.md")),
    *sorted((FOLDER / "charts").rglob("NOTES.txt")),
    *sorted((FOLDER / "examples").rglob("*.md")),
]
PROGRAMS: dict[str, click.Command] = {
    "kubectl headwater": plugin_main,
    "headwater-operator": operator_main,
    "headwater": main,
}
FENCED = re.compile(r"^```[a-z]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"`([^`\n]+)`")
_BEGIN = re.compile(r"^(?:\$ )?(?:[A-Z][A-Z_]*=\S+ )*(kubectl headwater|headwater-operator|headwater)(?: (.*))?$")


class Line(NamedTuple):
    page: str
    program: str
    words: str
    is_whole: bool
    """In a block, where people copy it; otherwise within a sentence, which may leave arguments out."""


def lines(page: Path) -> Iterator[Line]:
    text, shown = page.read_text(encoding="utf-8"), str(page.relative_to(FOLDER))
    blocks = FENCED.findall(text)
    spans = SPAN.findall(FENCED.sub("", text))
    for source, is_whole in [(line.partition(" #")[0].strip(), True) for block in blocks for line in block.splitlines()] + [
        (span, False) for span in spans
    ]:
        if (found := _BEGIN.match(source)) and "[OPTIONS]" not in source:  # those are generated
            yield Line(shown, found[1], found[2] or "", is_whole)


LINES = sorted({line for page in PAGES for line in lines(page)})


def faults(line: Line) -> list[str]:
    """Go down the command tree, and see that every option is there; values are not judged."""
    words = [word.strip("[]") for word in shlex.split(line.words.replace("…", "").replace("...", ""))]
    command = PROGRAMS[line.program]
    context = click.Context(command, obj=CliSession(), **command.context_settings)
    while isinstance(command, click.Group):
        while words and words[0].startswith("-"):
            option = next((one for one in command.get_params(context) if words[0] in one.opts), None)
            if option is None:
                return [f"there is no option {words[0]}"]
            del words[: 1 if getattr(option, "is_flag", False) else 2]
        if not words:
            return []
        found = command.get_command(context, words[0])
        if found is None:
            return [] if "|" in words[0] or words[0].isupper() else [f"there is no command {words[0]}"]
        command, context = found, click.Context(found, info_name=words.pop(0), parent=context)
    try:
        values, left, _ = command.make_parser(context).parse_args(words)
    except click.BadOptionUsage as wrong:
        return [wrong.format_message()] * line.is_whole
    except click.UsageError as wrong:
        return [wrong.format_message()]
    lacking = [
        str(parameter.human_readable_name)
        for parameter in command.params
        if line.is_whole and parameter.required and values.get(parameter.name or "") in (None, "", ())
    ]
    return [f"too much: {left}"] * bool(left) + [f"lacks {name}" for name in lacking]


@pytest.mark.parametrize("program", PROGRAMS)
def test_pages_show_lines_of_each_program(program: str) -> None:
    assert [line for line in LINES if line.program == program]


@pytest.mark.parametrize("page", sorted({line.page for line in LINES}))
def test_command_lines_of_page_can_be_typed(page: str) -> None:
    shown = [line for line in LINES if line.page == page]

    assert [(line.program, line.words, fault) for line in shown for fault in faults(line)] == []
