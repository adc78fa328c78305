"""Where there is no store: commands that read say so and write nothing, and one command makes one."""

from __future__ import annotations

import contextlib
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from commandline import CommandLine

from headwater.cli import main

MAKES_A_STORE = {"apply", "realm create", "realm import", "store create", "up"}
NEEDS_NO_STORE = {"access privileges", "client-config", "completion", "diff", "files codes", "init", "spark-archive", "version"}
MORE = {"gc explain": ["0123456789abcdef"], "table adopt": ["--all"]}
"""What a command needs although none of its parameters is required alone."""
VALUES = {
    "AIM": "1h",
    "CONTENT_ID": "3fa85f64-5717-4562-b3fc-2c963f66afa6",
    "PRIVILEGE": "TABLE_LIST",
    "TASK": "0123456789abcdef",
    "TASK|KIND": "0123456789abcdef",
    "COMMIT": "0123456789abcdef",
    "COMMIT|TIME": "1h",
    "URL": "s3://lake/",
    "NAME=TYPE": "id=long",
    "KIND": "snapshots",
    "NAME": "id",
    "FILE": "new.parquet",
    "LOCATION": "s3://lake/raw",
}
FAILING = [
    (("apply", "-f", "nothere.yaml"), 3),
    (("apply", "-f", "manifests"), 5),
    (("up", "nothere", "--once"), 3),
    (("up", "manifests", "--once"), 5),
    (("realm", "create", "a b", "--credentials", "new.json"), 5),
    (("realm", "create", "acme", "--credentials", "nothere/new.json"), 5),
    (("realm", "import", "nothere.realm", "acme"), 3),
    (("realm", "import", "nothere.realm", "a b"), 5),
    (("realm", "import", "nothere.realm", "a b", "--detach"), 5),
]


def lines(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[list[str]]:
    """A line for every command of the tree that needs a store, with values for all that it requires."""
    ctx = click.Context(group)
    for name in group.list_commands(ctx):
        command = group.get_command(ctx, name)
        assert command is not None, f"{name} is listed"
        words = (*path, name)
        if isinstance(command, click.Group):
            yield from lines(command, words)
        elif words[0] != "context" and " ".join(words) not in MAKES_A_STORE | NEEDS_NO_STORE:
            required = [word for parameter in command.params if parameter.required for word in filled(parameter)]
            yield [*words, *required, *MORE.get(" ".join(words), [])]


def filled(parameter: click.Parameter) -> list[str]:
    metavar = re.sub(r"\.\.\.$|\[.*", "", parameter.make_metavar(click.Context(click.Command("any"))))
    value = VALUES.get(metavar, metavar.lower().replace("realm", "acme"))
    return [value] if isinstance(parameter, click.Argument) else [parameter.opts[0], value]


def test_no_command_makes_a_store_where_it_needs_one(
    headwater: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ends = {" ".join(line): headwater(*line) for line in lines(main)}
    wrong = {line: (end.exit_code, end.stderr) for line, end in ends.items() if end.exit_code != 3}

    assert len(ends) > 80
    assert wrong == {}
    assert [line for line, end in ends.items() if "there is no store in" not in end.stderr] == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("words", "code"), FAILING, ids=lambda words: " ".join(words) if isinstance(words, tuple) else None)
def test_command_that_fails_on_its_input_makes_no_store(
    headwater: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], code: int
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests" / "wrong.yaml").write_text("just: [text", encoding="utf-8")
    before = sorted(tmp_path.rglob("*"))
    result = headwater(*words)

    assert result.exit_code == code, result.output
    assert sorted(tmp_path.rglob("*")) == before


def test_missing_store_in_a_missing_folder_is_not_found(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["--store", f"sqlite:///{tmp_path}/nowhere/store.db", "fsck"])

    assert result.exit_code == 3
    assert list(tmp_path.iterdir()) == []


def test_store_is_created_once(headwater: CommandLine) -> None:
    made = [headwater.data("store", "create")["created"] for _ in range(2)]

    assert made == [True, False]
    assert headwater.data("fsck") == []


def test_database_of_another_program_stays_as_it_is(headwater: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "store.db"
    with contextlib.closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE theirs (n INTEGER)")
    before = file.read_bytes()
    codes = [headwater(*words).exit_code for words in (("fsck",), ("store", "create"))]

    assert codes == [5, 5]
    assert file.read_bytes() == before


def test_mistyped_variable_is_warned_of(url: str) -> None:
    result = CommandLine(url, {"HEADWATER_STOR": "sqlite:///other.db"})("store", "create")

    assert result.exit_code == 0
    assert "HEADWATER_STOR is set but is not a setting; did you mean HEADWATER_STORE?" in result.stderr
