"""The pages that people read are true where a machine can tell."""

from __future__ import annotations

import dataclasses
import json
import re
import runpy
import subprocess
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

from headwater import Settings

FOLDER = Path(__file__).parents[2]
PAGES = [*sorted(FOLDER.glob("*.md")), *sorted((FOLDER / "docs").rglob("*.md"))]
NOTEBOOKS = sorted((FOLDER / "examples").glob("*.ipynb"))
LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]+))?\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def shown(path: Path) -> str:
    return str(path.relative_to(FOLDER))


def prose(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        text = "\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"] if cell["cell_type"] == "markdown")
    return FENCED.sub("", text)


def anchors(path: Path) -> set[str]:
    """The anchors of a page's headings, as code hosts make them."""
    titles = HEADING.findall(prose(path))
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def links(page: Path) -> list[tuple[Path, str]]:
    """Where a page leads to within the project: files, each with the heading's anchor or an empty text."""
    found = [(target, anchor) for target, anchor in LINK.findall(prose(page)) if "://" not in target]
    return [((page.parent / target).resolve() if target else page, anchor) for target, anchor in found]


@pytest.fixture(scope="module")
def generator() -> dict[str, Any]:
    return runpy.run_path(str(FOLDER / "docs" / "generate.py"))


def test_page_of_settings_says_what_the_code_says(generator: dict[str, Any]) -> None:
    page = (FOLDER / "docs" / "reference" / "settings.md").read_text(encoding="utf-8")

    assert page == generator["settings_page"](), "run `make docs`"


def test_page_of_the_command_line_says_what_the_code_says(generator: dict[str, Any]) -> None:
    page = (FOLDER / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")

    assert page == generator["cli_page"](), "run `make docs`"


def test_page_of_the_server_says_what_the_code_says(generator: dict[str, Any]) -> None:
    page = (FOLDER / "docs" / "operate" / "server.md").read_text(encoding="utf-8")

    assert page == generator["server_page"](page), "run `make docs`"


def test_page_of_access_says_what_the_code_says(generator: dict[str, Any]) -> None:
    page = (FOLDER / "docs" / "operate" / "access.md").read_text(encoding="utf-8")

    assert page == generator["access_page"](page), "run `make docs`"


def test_readme_says_of_engines_what_the_code_says(generator: dict[str, Any]) -> None:
    page = (FOLDER / "README.md").read_text(encoding="utf-8")

    assert "\n# Spark\nspark-sql " in page
    assert page == generator["readme_page"](page), "run `make docs`"


def test_page_of_the_stores_says_what_the_code_says(generator: dict[str, Any]) -> None:
    page = (FOLDER / "docs" / "operate" / "stores.md").read_text(encoding="utf-8")

    assert page == generator["stores_page"](page), "run `make docs`"


def test_page_of_the_stores_has_every_option_of_every_kind() -> None:
    page = (FOLDER / "docs" / "operate" / "stores.md").read_text(encoding="utf-8")
    kinds = {point.name: point.load() for point in entry_points(group="headwater.backends")}
    tables = {name: page.partition(f"<!-- generated: options_{name} -->")[2].partition("<!-- end -->")[0] for name in kinds}

    assert {"memory", "mongodb", "postgresql", "sqlite"} <= kinds.keys()
    assert [
        (name, option.name)
        for name, kind in kinds.items()
        for option in kind.options
        if f"| `{option.name}` |" not in tables[name]
    ] == []


def test_variable_of_each_setting_on_the_page_sets_it(generator: dict[str, Any]) -> None:
    texts = {"float": "7h", "int": "7", "bool": "true", "str": "json"}
    own = {
        "filter_fpp": "0.00002",
        "filter_refuse_fpp": "0.00002",
        "files_asynchronous": "none",
        "spark_conf": "spark.name=json",
    }
    fields = [field for field in dataclasses.fields(Settings) if str(field.type) in texts]
    for field in fields:
        others = {"task_lease_seconds": 1e6, "node_lease_seconds": 1e6, "task_heartbeat_seconds": 1, "node_renew_seconds": 1}
        others.pop(field.name, None)
        text = own.get(field.name, texts[str(field.type)])
        found = Settings.from_environment({generator["variable_of"](field.name): text}, **others)

        assert getattr(found, field.name) != field.default

    assert len(fields) == len(dataclasses.fields(Settings))


def test_every_link_leads_to_a_file() -> None:
    pages = [*PAGES, *NOTEBOOKS]

    assert [(shown(page), str(target)) for page in pages for target, _ in links(page) if not target.exists()] == []


def test_every_link_to_a_heading_finds_it() -> None:
    anchored = [(page, target, anchor) for page in [*PAGES, *NOTEBOOKS] for target, anchor in links(page) if anchor]

    assert [(shown(page), anchor) for page, target, anchor in anchored if anchor not in anchors(target)] == []


def test_every_notebook_and_a_page_lead_to_each_other() -> None:
    pages = {page: [target for target, _ in links(page)] for page in PAGES}

    assert [
        shown(notebook)
        for notebook in NOTEBOOKS
        if not any(notebook in pages[target] for target, _ in links(notebook) if target in pages)
    ] == []


def test_every_page_under_docs_is_reached_from_the_readme() -> None:
    reached, waiting = set(), [FOLDER / "README.md"]
    while waiting:
        page = waiting.pop()
        if page not in reached and page.suffix == ".md":
            reached.add(page)
            waiting += [target for target, _ in links(page)]

    assert [shown(page) for page in PAGES if page not in reached and page.is_relative_to(FOLDER / "docs")] == []


def test_make_lists_its_words_with_what_each_does() -> None:
    listed = subprocess.run(["make", "-s"], cwd=FOLDER, check=True, capture_output=True, text=True).stdout

    assert re.findall(r"^  make ([a-z-]+) +\w", listed, re.MULTILINE) == [
        "help",
        "setup",
        "check",
        "test",
        "test-long",
        "test-engines",
        "test-kube",
        "report",
        "demo",
        "demo-kube",
        "bench",
        "docs",
        "format",
        "clean",
    ]
