"""The oracle reads with other people's code alone: otherwise it would repeat our mistakes."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ORACLE = ("live_files", "lake_model", "lake_verdict", "foreign_tables", "reference_engine")
ALLOWED = {*sys.stdlib_module_names, "fastavro", "pyiceberg"}


def imported_modules(name: str) -> Iterator[str]:
    for node in ast.walk(ast.parse((Path(__file__).parent / f"{name}.py").read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or "." * node.level


@pytest.mark.parametrize("name", ORACLE)
def test_oracle_imports_no_code_of_ours(name: str) -> None:
    own = {f"lake_oracle.{other}" for other in ORACLE}
    odd = {module for module in imported_modules(name) if module not in own and module.partition(".")[0] not in ALLOWED}

    assert odd == set()


def test_check_of_imports_sees_what_is_there() -> None:
    assert "headwater.lake_files" in set(imported_modules("report_adapter"))
    assert "fastavro" in set(imported_modules("live_files"))
