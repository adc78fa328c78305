"""The list of entry points in pyproject.toml names every object type: otherwise a process that did not import one would not
know what its objects point to."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = ("core", "operator", "server", "workers")


def declared() -> dict[str, str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return dict(project["entry-points"].get("headwater.object_types", {}))


def in_the_code() -> Iterator[tuple[str, str]]:
    for folder in SOURCES:
        for file in sorted((ROOT / folder).rglob("*.py")):
            module = ".".join(file.relative_to(ROOT / folder).with_suffix("").parts)
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.ClassDef):
                    yield from ((name, f"{module}:{node.name}") for name in map(type_name, node.decorator_list) if name)


def type_name(decorator: ast.expr) -> str | None:
    match decorator:
        case ast.Call(func=ast.Name(id="object_type"), args=[ast.Constant(value=str(name)), *_]):
            return name
    return None


def test_every_object_type_is_an_entry_point() -> None:
    found = list(in_the_code())

    assert len(found) >= 19
    assert declared() == dict(found)
    assert len(dict(found)) == len(found)
