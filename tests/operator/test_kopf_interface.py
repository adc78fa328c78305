"""kopf is used by what it documents alone, so that its next version may change all else."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import kopf
import pytest

FOLDER = Path(__file__).parents[2]
MODULES = [path for root in ("core", "operator", "server", "workers") for path in sorted((FOLDER / root).rglob("*.py"))]


def private_parts(code: str) -> list[str]:
    """What a module uses of kopf that kopf does not hand on, or sets on it; also by the name of a private module, in a text."""
    return [ast.unparse(node) for node in ast.walk(ast.parse(code)) if any(_reach_inside(node))]


def _reach_inside(node: ast.AST) -> Iterator[bool]:
    if isinstance(node, ast.Import):
        yield any(alias.name.startswith("kopf.") for alias in node.names)
    if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "kopf":
        yield node.module != "kopf" or any(alias.name not in kopf.__all__ for alias in node.names)
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "kopf":
        yield node.attr not in kopf.__all__ or not isinstance(node.ctx, ast.Load)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("setattr", "getattr", "delattr"):
        yield ast.unparse(node.args[0]).partition(".")[0] == "kopf"
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield "kopf._" in node.value


def test_no_module_reaches_inside_kopf() -> None:
    texts = {str(path.relative_to(FOLDER)): path.read_text(encoding="utf-8") for path in MODULES}
    found = {path: private_parts(text) for path, text in texts.items() if "kopf" in text}

    assert found and {path: parts for path, parts in found.items() if parts} == {}


@pytest.mark.parametrize(
    "code",
    [
        "from kopf._cogs.clients import watching",
        "import kopf._core",
        "from kopf import cli",
        "kopf.operator = None",
        "kopf._cogs.clients",
        "setattr(kopf.on, 'event', None)",
        "import_module('kopf._cogs')",
    ],
)
def test_reach_inside_kopf_is_seen(code: str) -> None:
    assert private_parts(code) != []


def test_documented_use_of_kopf_is_taken() -> None:
    assert private_parts("import kopf\nkopf.on.event('group')\nkopf.OperatorSettings()") == []
