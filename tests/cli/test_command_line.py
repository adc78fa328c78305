"""The command line as a whole: exit codes, streams, output formats."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import click
import pytest
import structlog
import yaml
from click.testing import CliRunner
from commandline import CommandLine

from headwater import Store
from headwater.cli import application, main
from headwater.cli.cli_session import EXIT_CODES
from headwater.errors import (
    CommitTimeoutError,
    ConflictError,
    CorruptionError,
    ExpiredError,
    FencedError,
    HeadwaterError,
    NotFoundError,
    RefusedError,
    SwapConflictError,
    UnavailableError,
    UnknownOutcomeError,
)
from headwater.exits import exit_code
from headwater.store import ObjectId

pytestmark = pytest.mark.long


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "headwater", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment}, check=False)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (NotFoundError(), 3),
        (ExpiredError(), 3),
        (UnavailableError(), 4),
        (CommitTimeoutError("", attempts=1, elapsed_seconds=1.0), 4),
        (RefusedError(), 5),
        (SwapConflictError(), 6),
        (FencedError(), 6),
        (ConflictError(""), 6),
        (UnknownOutcomeError(), 7),
        (CorruptionError(), 8),
        (HeadwaterError(), 1),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else str(value),
)
def test_every_kind_of_error_has_its_exit_code(error: HeadwaterError, code: int) -> None:
    assert exit_code(error) == code
    assert code in EXIT_CODES


def test_process_ends_with_the_exit_code_and_one_line(url: str, store: Store) -> None:
    ended = run("--store", url, "realm", "show", "nobody")

    assert (ended.returncode, ended.stdout, ended.stderr) == (3, "", "headwater: there is no realm 'nobody'\n")


def test_debug_adds_the_traceback(url: str, store: Store) -> None:
    ended = run("--store", url, "--debug", "realm", "show", "nobody")

    assert ended.returncode == 3
    assert ended.stderr.startswith("Traceback")
    assert ended.stderr.splitlines()[-1] == "headwater: there is no realm 'nobody'"


def test_wrong_command_line_is_one_line(url: str) -> None:
    ended = run("--store", url, "realm", "show")

    assert ended.returncode == 2
    assert ended.stderr == "headwater: Missing argument 'REALM'; see `headwater realm show --help`\n"


def test_bare_call_shows_the_help() -> None:
    ended = run()

    assert ended.returncode == 2
    assert "realm" in ended.stderr


def test_wrong_settings_are_refused_all_at_once(url: str) -> None:
    ended = run("--store", url, "realm", "list", HEADWATER_COMMIT_TIMEOUT="soon", HEADWATER_RUNS_KEPT="-1")

    assert ended.returncode == 2
    assert "HEADWATER_COMMIT_TIMEOUT" in ended.stderr
    assert "HEADWATER_RUNS_KEPT must be above 0" in ended.stderr


def test_help_needs_no_settings_and_no_store() -> None:
    assert run("realm", "--help", HEADWATER_RUNS_KEPT="-1").returncode == 0


def test_unknown_kind_of_store_is_refused() -> None:
    assert run("--store", "oracle://x", "realm", "list").returncode == 5


def test_bug_is_one_line_and_code_1(monkeypatch: pytest.MonkeyPatch) -> None:
    @click.command()
    def crash() -> None:
        raise ZeroDivisionError("oops")

    monkeypatch.setitem(main.commands, "crash", crash)
    result = CliRunner().invoke(main, ["crash"])

    assert result.exit_code == 1
    assert result.stderr.startswith("headwater: a bug: ZeroDivisionError: oops")


def test_interrupt_ends_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    @click.command()
    def wait() -> None:
        raise KeyboardInterrupt

    monkeypatch.setitem(main.commands, "wait", wait)
    result = CliRunner().invoke(main, ["wait"])

    assert (result.exit_code, result.stderr.strip()) == (130, "headwater: interrupted")


def test_command_of_an_absent_package_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    absent = EntryPoint("fly", "headwater_wings.commands:fly", application.ENTRY_POINTS)
    monkeypatch.setattr(application, "entry_points", lambda **_: [absent])

    result = CliRunner().invoke(main, ["fly", "--high"])

    assert result.exit_code == 5
    assert "needs more than the core: pip install 'headwater[wings]'" in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_broken_command_of_another_package_is_a_bug(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken_commands.py").write_text("from headwater.settings import nothing\n")
    monkeypatch.syspath_prepend(tmp_path)
    broken = EntryPoint("fly", "broken_commands:fly", application.ENTRY_POINTS)
    monkeypatch.setattr(application, "entry_points", lambda **_: [broken])

    result = CliRunner().invoke(main, ["fly"])

    assert (result.exit_code, "a bug: ImportError" in result.stderr) == (1, True)


def test_output_format_may_stand_behind_the_command(headwater: CommandLine, realm: str) -> None:
    assert json.loads(headwater.ok("realm", "list", "-o", "json")) == headwater.data("realm", "list")


def test_it_may_stand_behind_a_command_of_another_package(headwater: CommandLine, tmp_path: Path) -> None:
    assert headwater("up", tmp_path / "nothing", "--once", "-o", "json").exit_code == 3


def test_yaml_says_the_same_as_json(headwater: CommandLine, realm: str) -> None:
    assert yaml.safe_load(headwater.ok("-o", "yaml", "realm", "show", realm)) == headwater.data("realm", "show", realm)


def test_columns_are_aligned(headwater: CommandLine, realm: str) -> None:
    head, row = headwater.ok("realm", "list").splitlines()

    assert head.index("STATE") == row.index("ACTIVE")


def test_commands_that_only_read_lease_no_node(headwater: CommandLine, catalog: str, store: Store) -> None:
    before = leases(store)
    for line in ("realm list", "realm show acme", "catalog list acme", "catalog tables acme/lake", "task list", "gc log"):
        headwater.ok(*line.split())

    assert leases(store) == before


def leases(store: Store) -> dict[ObjectId, str | None]:
    """Every node lease that there ever was, with its version."""
    return {key.id: key.token for batch in store.system.scan_objects() for key in batch if key.type == "node"}


def test_reader_that_goes_away_is_no_failure(url: str, store: Store) -> None:
    command = f"{sys.executable} -m headwater --store {url} realm list | true; exit ${{PIPESTATUS[0]}}"
    ended = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)

    assert (ended.returncode, ended.stderr) == (0, "")


def test_warnings_go_to_standard_error(headwater: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    @click.command()
    def warn() -> None:
        structlog.get_logger("anything").warning("mind the gap")

    monkeypatch.setitem(main.commands, "warn", warn)
    result = headwater("warn")

    assert result.stdout == ""
    assert "mind the gap" in result.stderr


@pytest.mark.parametrize(
    ("words", "code"), [("version >/dev/full", 4), ("version >&-", 0), ("version <&- 2>&-", 0), ("nonsense 2>/dev/full", 2)]
)
def test_stream_that_takes_nothing_is_no_bug(words: str, code: int) -> None:
    done = subprocess.run(["sh", "-c", f"{sys.executable} -m headwater {words}"], capture_output=True, text=True, check=False)

    assert (done.returncode, "bug" in done.stderr) == (code, False)
