"""With the log in JSON, each line on standard error is one: a collector of logs reads it, and no person."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.long

MAIN = "from headwater.cli import main\n"
INTERRUPTED = """
@main.command()
def wait():
    raise KeyboardInterrupt
"""
BROKEN = """
@main.command()
def fail():
    raise ValueError("oops")
"""


def logged(folder: Path, code: int, *words: str, more: str = "", **variables: str) -> list[dict[str, Any]]:
    """The lines that a command, which ends with this code, writes on standard error."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HEADWATER_")}
    environment |= {"HEADWATER_LOG_FORMAT": "json", **variables}
    command = [sys.executable, "-c", f"{MAIN}{more}\nmain({list(words)!r})"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == code, done.stderr
    return [json.loads(line) for line in done.stderr.splitlines()]


def test_failure_is_a_line_of_the_log(tmp_path: Path) -> None:
    [line] = logged(tmp_path, 3, "realm", "list")

    assert line["event"].startswith("there is no store in")
    assert line["level"] == "error"


@pytest.mark.parametrize("words", [("realm", "list", "--nonsense"), ("nonsense",)], ids=" ".join)
def test_usage_is_a_line_of_the_log(tmp_path: Path, words: tuple[str, ...]) -> None:
    [line] = logged(tmp_path, 2, *words)

    assert "No such" in line["event"]


def test_wrong_setting_is_a_line_of_the_log(tmp_path: Path) -> None:
    [line] = logged(tmp_path, 2, "realm", "list", HEADWATER_COMMIT_TIMEOUT="soon")

    assert "HEADWATER_COMMIT_TIMEOUT='soon'" in line["event"]


def test_interrupt_is_a_line_of_the_log(tmp_path: Path) -> None:
    [line] = logged(tmp_path, 130, "wait", more=INTERRUPTED)

    assert (line["event"], line["level"]) == ("interrupted", "warning")


def test_traceback_is_a_field_of_its_line(tmp_path: Path) -> None:
    [line] = logged(tmp_path, 1, "--debug", "fail", more=BROKEN)

    assert line["event"].startswith("a bug: ValueError: oops")
    assert "Traceback (most recent call last)" in line["exception"]


def test_warning_is_a_line_of_the_log(tmp_path: Path) -> None:
    [line] = logged(tmp_path, 0, "store", "create", HEADWATER_STOR="sqlite:///other.db")

    assert (line["event"].startswith("HEADWATER_STOR is set"), line["level"]) == (True, "warning")


def test_report_written_is_a_line_of_the_log(tmp_path: Path) -> None:
    logged(tmp_path, 0, "store", "create")
    lines = logged(tmp_path, 0, "-o", "json", "gc", "report", "report.html")

    assert [(line["event"], line["level"]) for line in lines] == [("report of 0 runs written to report.html", "info")]
