"""Every test is in one tier: the quick tests of ``make test`` or the long ones of ``make test-long``."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tiers import QUICK_CASES

FOLDER = Path(__file__).parents[1]
QUICK, LONG = "test", "test-long"


def runner_options(target: str) -> list[str]:
    """What a make target hands to the runner of the tests."""
    shown = subprocess.run(["make", "--dry-run", target], cwd=FOLDER, check=True, capture_output=True, text=True).stdout
    [call] = [line for line in shown.splitlines() if "run_tests.py" in line]
    return shlex.split(call.rpartition("run_tests.py")[2])


def marks(target: str) -> tuple[str, list[str]]:
    """Which marks a target selects by, and all other options of its call but the number of processes."""
    options = runner_options(target)
    if "--processes" in options:
        del options[options.index("--processes") : options.index("--processes") + 2]
    at = options.index("-m")
    return options[at + 1], options[:at] + options[at + 2 :]


def test_tiers_differ_in_nothing_but_the_mark() -> None:
    (quick, quick_options), (long, long_options) = marks(QUICK), marks(LONG)

    assert (quick, long) == ("not long", "long")
    assert quick_options == long_options == []


def test_continuous_integration_runs_both_tiers() -> None:
    calls = (FOLDER / ".ci" / "run").read_text(encoding="utf-8").splitlines()

    assert [line for line in calls if line.startswith("make ")] == [f"make {QUICK}", f"make {LONG}", "make demo"]


@pytest.mark.parametrize("target", ["check", "test-kube"])
def test_make_names_folders_of_tests_that_are_there(target: str) -> None:
    named = [option for option in runner_options(target) if option.startswith("tests/")]

    assert named and [folder for folder in named if not (FOLDER / folder).exists()] == []


def test_test_modules_have_names_of_their_own() -> None:
    """One process imports all of them, by their names alone."""
    counts = Counter(path.stem for path in (FOLDER / "tests").rglob("test_*.py"))

    assert [name for name, count in counts.items() if count > 1] == []


def collect(path: Path, marks: str, *, seed: int = 1, soak: bool = False) -> list[str]:
    """The names of the tests in a folder or file that a run with ``-m marks`` has."""
    call = [sys.executable, "-m", "pytest", "--collect-only", "-q", f"--randomly-seed={seed}", "-m", marks, str(path)]
    environment = os.environ | {"HEADWATER_SOAK": "1" if soak else ""}
    shown = subprocess.run(call, cwd=FOLDER, check=True, capture_output=True, text=True, env=environment).stdout
    return [line.partition("::")[2] for line in shown.splitlines() if "::" in line]


@pytest.mark.long
def test_each_case_is_in_one_tier() -> None:
    folder = FOLDER / "tests" / "index"
    quick, long, all_cases = (collect(folder, marks, soak=True) for marks in ("not long", "long", "long or not long"))
    quick_cases = Counter(name.partition("[")[0] for name in quick)

    assert sorted(quick + long) == sorted(all_cases)
    assert max(quick_cases.values()) == QUICK_CASES


@pytest.mark.long
def test_long_tier_runs_other_cases_of_many_at_each_run() -> None:
    path = FOLDER / "tests" / "engines" / "outcomes" / "test_numbers_from_outside.py"
    one, same, other, every = (
        Counter(collect(path, "long", seed=seed, soak=soak)) for seed, soak in ((1, False), (1, False), (2, False), (1, True))
    )

    assert one == same != other
    assert set(one) < set(every) and len(every) / 8 <= len(one) < len(every)


@pytest.mark.long
def test_rare_test_is_in_some_runs_of_the_long_tier() -> None:
    folder, rare = FOLDER / "tests" / "engines" / "torture", "test_tortured_store_on_postgresql_keeps_all_its_promises"

    assert {seed: rare in collect(folder, "long", seed=seed) for seed in (1, 2)} == {1: True, 2: False}
    assert rare in collect(folder, "long", soak=True)


@pytest.mark.long
def test_no_long_test_tries_some_moments_beside_all() -> None:
    assert [name for name in collect(FOLDER / "tests" / "gc", "long") if "[some" in name] == []
