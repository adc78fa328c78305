"""What every module of the house keeps to."""

from __future__ import annotations

import ast
from pathlib import Path

FOLDER = Path(__file__).parents[2]
MODULES = [path for root in ("core", "operator", "server", "workers") for path in sorted((FOLDER / root).rglob("*.py"))]
ROOT_PACKAGE = FOLDER / "core" / "headwater" / "__init__.py"
PACKAGES = [path for path in MODULES if path.name == "__init__.py"]
LINES_LIMIT = 600


def shown(path: Path) -> str:
    return str(path.relative_to(FOLDER))


def read(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def public_names(path: Path) -> list[str]:
    assigned = [node for node in read(path).body if isinstance(node, ast.Assign)]
    return [name for node in assigned if ast.unparse(node.targets[0]) == "__all__" for name in ast.literal_eval(node.value)]


def names_at_hand(path: Path) -> set[str]:
    """The names that a package imports; the root imports them when they are asked for, and tells type checkers of them."""
    nodes = read(path).body
    if path == ROOT_PACKAGE:
        (told,) = [node for node in nodes if isinstance(node, ast.If)]
        nodes = [ast.ImportFrom(names=[ast.alias("__version__")]), *told.body]
    imported = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
    return {alias.asname or alias.name for node in imported for alias in node.names}


def test_every_module_says_what_it_is_for() -> None:
    assert [shown(path) for path in MODULES if not ast.get_docstring(read(path))] == []


def test_every_module_is_short_enough_to_read() -> None:
    assert [shown(path) for path in MODULES if len(path.read_text(encoding="utf-8").splitlines()) > LINES_LIMIT] == []


def test_every_package_lists_exactly_the_names_that_it_hands_on() -> None:
    assert [shown(path) for path in PACKAGES if set(public_names(path)) != names_at_hand(path) - {"annotations"}] == []


def test_no_package_defines_anything_in_its_face() -> None:
    """But the root, which imports what it hands on when somebody asks for it."""
    definitions = (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)

    assert [
        shown(path)
        for path in PACKAGES
        if path != ROOT_PACKAGE and any(isinstance(node, definitions) for node in read(path).body)
    ] == []


def test_test_modules_have_names_of_their_own() -> None:
    """One run imports all of them, by their names alone."""
    names = [path.stem for path in (FOLDER / "tests").rglob("test_*.py")]

    assert sorted(name for name in set(names) if names.count(name) > 1) == []
