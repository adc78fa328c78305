"""The examples use the public API and nothing else of Headwater, and the one that the pages name runs."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
PLUG_INS = {"cedar_access.py": "it implements what the server asks of a plug-in: the questions of headwater.access"}
"""Examples that are no programs, each with what it stands on."""
PACKAGES = ("headwater", "headwater_operator", "headwater_server", "headwater_workers")


def imported(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield str(node.module)


def test_examples_import_the_public_api_alone() -> None:
    inside = {
        file.name
        for file in EXAMPLES.rglob("*.py")
        if any(name.partition(".")[0] in PACKAGES and name != "headwater" for name in imported(file))
    }
    assert inside == PLUG_INS.keys()


@pytest.mark.long
def test_client_of_the_pages_runs(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "client.py"), str(tmp_path)], capture_output=True, text=True, check=False, timeout=120
    )

    assert done.returncode == 0, done.stderr
    assert "main has 2 orders" in done.stdout
    assert "trial has [('sales', 'open_orders')]" in done.stdout
    assert "monday has 2 orders" in done.stdout
