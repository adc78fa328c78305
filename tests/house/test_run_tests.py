"""The runner of the tests, on folders of a few tests: what it counts, and what it says of failures and of processes that die."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

RUNNER = Path(__file__).parents[2] / "scripts" / "run_tests.py"
PLAIN = {
    "a/conftest.py": "import pytest\n@pytest.fixture\ndef one():\n    return 1\n",
    "a/test_one.py": "def test_passes(one): pass\ndef test_fails(one):\n    print('was said')\n    assert one == 2\n",
    "a/test_two.py": "def test_passes_too(one): pass\n",
    "b/test_three.py": "import pytest\ndef test_is_skipped(): pytest.skip('no such engine')\ndef test_also_passes(): pass\n",
}


def run_tests(folder: Path, files: dict[str, str], *options: str) -> subprocess.CompletedProcess[str]:
    for name, text in files.items():
        path = folder / "tests" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (folder / "pyproject.toml").write_text("[tool.pytest.ini_options]\n", encoding="utf-8")
    call = [sys.executable, str(RUNNER), "--processes", "2", *options]
    return subprocess.run(call, cwd=folder, check=False, capture_output=True, text=True, timeout=280)


@pytest.mark.long
def test_run_shows_failures_in_full_and_counts_all(tmp_path: Path) -> None:
    done = run_tests(tmp_path, PLAIN)
    lines = done.stdout.splitlines()

    assert (done.returncode, lines[-1]) == (1, "3 passed, 1 failed, 1 skipped")
    assert {"FAILED tests/a/test_one.py::test_fails", "E       assert 1 == 2", "was said", "skipped 1: no such engine"} <= set(
        lines
    )


@pytest.mark.long
def test_death_of_a_process_is_reported_and_others_go_on(tmp_path: Path) -> None:
    deadly = "import os, signal\ndef test_dies(): os.kill(os.getpid(), signal.SIGKILL)\n"
    done = run_tests(tmp_path, {**PLAIN, "c/test_deadly.py": deadly})

    assert (done.returncode, done.stdout.splitlines()[-1]) == (1, "3 passed, 2 failed, 1 skipped")
    assert "FAILED tests/c/test_deadly.py::test_dies (died of SIGKILL)" in done.stdout


@pytest.mark.long
def test_file_that_cannot_be_imported_is_a_failure(tmp_path: Path) -> None:
    done = run_tests(
        tmp_path, {"a/test_broken.py": "import nothing_of_this_name\n", "b/test_fine.py": "def test_fine(): pass\n"}
    )

    assert (done.returncode, done.stdout.splitlines()[-1]) == (1, "1 passed, 1 failed, 0 skipped")
    assert "No module named 'nothing_of_this_name'" in done.stdout


@pytest.mark.long
def test_folder_without_tests_is_an_error(tmp_path: Path) -> None:
    assert run_tests(tmp_path, {"a/conftest.py": ""}).returncode == 2


@pytest.mark.long
def test_interrupted_run_tears_down_and_says_what_passed(tmp_path: Path) -> None:
    slow = """
import os, pathlib, signal, time, pytest
@pytest.fixture(scope="session")
def server():
    yield
    pathlib.Path("torn-down").touch()
def test_fine(server): pass
def test_waits(server):
    os.kill(os.getppid(), signal.SIGTERM)
    time.sleep(200)
"""
    done = run_tests(tmp_path, {"a/test_slow.py": slow}, "--", "--randomly-dont-reorganize")

    assert (done.returncode, done.stdout.splitlines()[-1]) == (128 + signal.SIGINT, "1 passed, 0 failed, 0 skipped")
    assert (tmp_path / "torn-down").exists()
