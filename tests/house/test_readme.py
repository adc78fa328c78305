"""What the README shows can be typed as it stands there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from headwater.cli import CliSession, main

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
COMMANDS = [line.partition("#")[0].strip() for line in re.findall(r"^headwater .+$", README, re.MULTILINE)]


def parse(line: str) -> None:
    """Go down the command tree and parse the options and arguments, without running anything."""
    words = shlex.split(line)[1:]
    command: click.Command = main
    context = click.Context(main, info_name="headwater", obj=CliSession())
    while isinstance(command, click.Group):
        name = words.pop(0)
        found = command.get_command(context, name)
        assert found is not None, f"{line}: there is no {name}"
        command = found
        context = click.Context(command, info_name=name, parent=context) if isinstance(command, click.Group) else context
    command.make_context(command.name, words, parent=context)


@pytest.mark.parametrize("line", COMMANDS)
def test_command_in_the_readme_is_understood(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "manifests").mkdir()
    monkeypatch.chdir(tmp_path)

    parse(line)
