"""The glossary and the map name what is there, so that neither leads a reader astray."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2]
ROW = re.compile(r"^\| .+ \|$", re.MULTILINE)


def rows(page: str) -> list[list[str]]:
    """The cells of a page's table, without its head."""
    found = ROW.findall((FOLDER / "docs" / page).read_text(encoding="utf-8"))
    return [[cell.strip().strip("`") for cell in row.strip("|").split("|")] for row in found[1:]]


def classes(path: Path) -> set[str]:
    return {node.name for node in ast.parse(path.read_text(encoding="utf-8")).body if isinstance(node, ast.ClassDef)}


GLOSSARY = [(name, module) for _, name, module, _ in rows("develop/glossary.md")]


def test_glossary_and_map_are_not_empty() -> None:
    assert len(GLOSSARY) >= 30 and len(rows("develop/map.md")) >= 30


@pytest.mark.parametrize(("name", "module"), GLOSSARY)
def test_class_of_the_glossary_is_in_its_module(name: str, module: str) -> None:
    assert name in classes(FOLDER / module)


def test_glossary_has_each_class_once() -> None:
    names = [name for name, _ in GLOSSARY]

    assert sorted(name for name in set(names) if names.count(name) > 1) == []


def test_map_leads_to_what_is_there() -> None:
    assert [path for _, path in rows("develop/map.md") if not (FOLDER / path).exists()] == []


@pytest.mark.parametrize("page", ["docs/develop/glossary.md", "docs/develop/map.md"])
def test_readme_leads_to_the_page(page: str) -> None:
    assert f"]({page})" in (FOLDER / "README.md").read_text(encoding="utf-8")
