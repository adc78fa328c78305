"""Every test is in one tier: the quick tests of ``make test`` or the long ones of ``make test-long``."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1]
QUICK, LONG = "test", "test-long"


def pytest_options(target: str) -> list[str]:
    """What a make target hands to pytest."""
    shown = subprocess.run(["make", "--dry-run", target], cwd=FOLDER, check=True, capture_output=True, text=True).stdout
    [call] = [line for line in shown.splitlines() if "/pytest " in line]
    words = shlex.split(call)
    return words[next(at for at, word in enumerate(words) if word.endswith("/pytest")) + 1 :]


def marks(target: str) -> tuple[str, list[str]]:
    """Which marks a target selects by, and all other options of its call but the number of processes."""
    options = pytest_options(target)
    del options[options.index("-n") : options.index("-n") + 2]
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
def test_no_long_test_tries_some_moments_beside_all(request: pytest.FixtureRequest) -> None:
    samples = [item.callspec.params.get("sample") for item in request.session.items if hasattr(item, "callspec")]

    assert "some" not in samples
