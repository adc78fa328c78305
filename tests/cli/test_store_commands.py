"""Where there is no store: commands that read say so and write nothing, and one command makes one."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

import pytest
from click.testing import CliRunner
from commandline import CommandLine

from headwater.cli import main

READING = [
    ("realm", "list"),
    ("realm", "show", "acme"),
    ("catalog", "list", "acme"),
    ("task", "list"),
    ("task", "figures"),
    ("gc", "log"),
    ("gc", "run", "acme"),
    ("fsck",),
    ("realm", "delete", "acme"),
]
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


@pytest.mark.parametrize("words", READING, ids=" ".join)
def test_command_that_creates_nothing_misses_the_store(headwater: CommandLine, tmp_path: Path, words: tuple[str, ...]) -> None:
    before = sorted(tmp_path.iterdir())
    result = headwater(*words)

    assert (result.exit_code, "there is no store in" in result.stderr) == (3, True), result.output
    assert sorted(tmp_path.iterdir()) == before


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
