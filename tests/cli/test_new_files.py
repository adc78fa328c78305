"""Files that a command writes before it takes away what is in them."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from commandline import CommandLine

from headwater.cli import main
from headwater.console import UndashedPath
from headwater.durability import make_folder, write_new
from headwater.errors import RefusedError


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """What is synced to the disk, in its order."""
    paths: list[Path] = []
    fsync = os.fsync

    def note(descriptor: int) -> None:
        paths.append(Path(f"/proc/self/fd/{descriptor}").readlink())
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", note)
    return paths


def test_new_file_is_synced_and_then_its_folder(tmp_path: Path, synced: list[Path]) -> None:
    write_new(tmp_path / "row.json", b"{}")

    assert (synced[0].suffix, synced[1:]) == (".part", [tmp_path])
    assert [path.name for path in tmp_path.iterdir()] == ["row.json"]


def test_new_file_is_for_its_owner_only(tmp_path: Path) -> None:
    write_new(tmp_path / "row.json", b"{}")

    assert stat.S_IMODE((tmp_path / "row.json").stat().st_mode) == 0o600


def test_file_that_is_there_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "row.json").write_bytes(b"another")

    with pytest.raises(RefusedError, match=r"row\.json' already: nothing is overwritten"):
        write_new(tmp_path / "row.json", b"{}")

    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"another"]


def test_file_of_an_interrupted_command_is_taken_for_its_own(tmp_path: Path) -> None:
    for _ in range(2):
        write_new(tmp_path / "row.json", b"{}")

    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"{}"]


def test_new_folders_are_synced_in_those_above(tmp_path: Path, synced: list[Path]) -> None:
    make_folder(tmp_path / "a" / "b" / "c")

    assert set(synced) == {tmp_path, tmp_path / "a", tmp_path / "a" / "b"}
    assert stat.S_IMODE((tmp_path / "a" / "b" / "c").stat().st_mode) == 0o700


def path_types(group: click.Group) -> Iterator[tuple[str, click.Path]]:
    """The types of all parameters that are paths, by command."""
    ctx = click.Context(group)
    for name in group.list_commands(ctx):
        command = group.get_command(ctx, name)
        if isinstance(command, click.Group):
            yield from path_types(command)
        elif command is not None:
            yield from ((name, each.type) for each in command.params if isinstance(each.type, click.Path))


def test_every_path_knows_what_a_dash_is(headwater: CommandLine) -> None:
    others = {name for name, kind in path_types(main) if not isinstance(kind, UndashedPath)}
    result = headwater("realm", "export", "acme", "-")

    assert others == {"apply", "diff", "delete"}  # where it is standard input
    assert result.exit_code == 2
    assert "write ./- for that name" in result.stderr
