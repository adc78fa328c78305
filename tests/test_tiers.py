"""Every test is in one tier: the quick tests of ``make test`` or the long ones of ``make test-long``."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1]
QUICK, LONG = "test", "test-long"


def pytest_options(target: str) -> list[str]:
    """What a make target hands to pytest."""
    shown = subprocess.run(["make", "--dry-run", target], cwd=FOLDER, check=True, capture_output=True, text=True).stdout
    [call] = [line for line in shown.splitlines() if "/pytest " in line]
    return shlex.split(call)[1:]


def collected(target: str) -> tuple[set[str], int]:
    """The tests that a make target runs, and how many there are in all."""
    options = [*pytest_options(target), "-n", "0", "--collect-only", "-q", "-p", "no:cacheprovider"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    call = subprocess.run(
        [sys.executable, "-m", "pytest", *options], check=False, cwd=FOLDER, env=environment, capture_output=True, text=True
    )
    assert call.returncode == 0, call.stdout[-2000:]
    *_, last = call.stdout.splitlines()
    selected, every = last.split()[0].split("/")
    tests = {line for line in call.stdout.splitlines() if "::" in line}
    assert len(tests) == int(selected)
    return tests, int(every)


def marks(target: str) -> tuple[str, list[str]]:
    """Which marks a target selects by, and all other options of its call."""
    options = pytest_options(target)
    at = options.index("-m")
    return options[at + 1], options[:at] + options[at + 2 :]


def test_tiers_differ_in_nothing_but_the_mark() -> None:
    (quick, quick_options), (long, long_options) = marks(QUICK), marks(LONG)

    assert (quick, long) == ("not long", "long")
    assert quick_options == long_options
    assert not any(word.startswith(("tests", "-k", "--ignore", "--deselect")) for word in quick_options)


def test_continuous_integration_runs_both_tiers() -> None:
    calls = (FOLDER / ".ci" / "run").read_text(encoding="utf-8").splitlines()

    assert [line for line in calls if line.startswith("make ")] == [f"make {QUICK}", f"make {LONG}", "make demo"]


@pytest.mark.parametrize("target", ["check", "test-kube"])
def test_make_names_folders_of_tests_that_are_there(target: str) -> None:
    named = [option for option in pytest_options(target) if option.startswith("tests/")]

    assert named and [folder for folder in named if not (FOLDER / folder).exists()] == []


@pytest.mark.long
@pytest.mark.timeout(600)
def test_tiers_have_every_test_once() -> None:
    quick, every = collected(QUICK)
    long, every_again = collected(LONG)

    assert every == every_again
    assert not quick & long
    assert len(quick) + len(long) == every
