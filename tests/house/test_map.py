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


def test_architecture_has_each_package() -> None:
    page = (FOLDER / "docs" / "develop" / "architecture.md").read_text(encoding="utf-8")
    roots = [FOLDER / "core/headwater", FOLDER / "server/headwater_server", FOLDER / "workers/headwater_workers"]
    packages = [path.parent for root in roots for path in sorted(root.glob("*/__init__.py"))]

    assert [
        str(path.relative_to(FOLDER)) for path in packages if not re.search(rf"`([^`|]*\b)?{path.name}\b[^`|]*`", page)
    ] == []


def test_formats_page_has_each_fixed_id() -> None:
    modules = [path.read_text(encoding="utf-8") for path in (FOLDER / "core" / "headwater").rglob("*.py")]
    used = {kind for text in modules for kind in re.findall(r"= fixed_id\((\d+)", text)}
    page = (FOLDER / "docs" / "reference" / "formats.md").read_text(encoding="utf-8")

    assert len(used) >= 5
    assert used <= set(re.findall(r"^\| (\d+) \| (?:\d|node)", page, re.MULTILINE))


def test_readme_names_packages_that_are_there() -> None:
    row = re.search(r"^\| `core/headwater` \| (.*) \|$", (FOLDER / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert row is not None
    named = re.findall(r"`(\w+)`", row[1])

    assert named
    assert [name for name in named if not (FOLDER / "core" / "headwater" / name).is_dir()] == []


@pytest.mark.parametrize("page", ["docs/develop/glossary.md", "docs/develop/map.md"])
def test_readme_leads_to_the_page(page: str) -> None:
    assert f"]({page})" in (FOLDER / "README.md").read_text(encoding="utf-8")
