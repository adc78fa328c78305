"""``docs/reference/cli.md`` says what the code does."""

from __future__ import annotations

import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from commandline import CommandLine

from headwater.cli.apply_command import APPLIED
from headwater.cli.catalog_commands import CATALOG
from headwater.cli.realm_commands import REALM
from headwater.cli.task_commands import TASK
from headwater.console import ResultView

DOCS = Path(__file__).parents[2] / "docs"
GENERATOR = runpy.run_path(str(DOCS / "command_line.py"))


def command_line_page() -> str:
    return str(GENERATOR["page"]())


def results() -> list[ResultView[Any]]:
    return list(GENERATOR["results"]())


def test_page_is_what_the_code_says() -> None:
    assert (DOCS / "reference" / "cli.md").read_text() == command_line_page(), "run `make docs`"


def test_every_field_is_named_once_and_explained() -> None:
    for view in results():
        names = [field.name for field in view.fields]
        assert len(names) == len(set(names)), view.name
        assert all(field.about for field in view.fields), view.name


def test_json_names_are_camel_case() -> None:
    names = [field.name for view in results() for field in view.fields]

    assert [name for name in names if not (name.isalnum() and name[0].islower())] == []


def test_output_of_other_packages_is_told_too() -> None:
    assert "### summary" in command_line_page()


MANIFESTS = """\
{apiVersion: headwater.dev/v1alpha1, kind: Realm, metadata: {name: acme}, spec: {state: %s}}
---
apiVersion: headwater.dev/v1alpha1
kind: Catalog
metadata: {name: lake}
spec:
  realm: acme
  storage: {baseLocation: "s3://lake/"}
  imports: [{name: initial, locations: ["s3://lake/"]}]
"""


@pytest.fixture
def applied(headwater: CommandLine, tmp_path: Path) -> list[dict[str, Any]]:
    """What applying manifests printed: a realm with a manager, a catalog with an import that is a task; then the realm is closed."""
    outcomes = []
    for state in ("Active", "Inactive"):
        (tmp_path / "manifests.yaml").write_text(MANIFESTS % state)
        outcomes += headwater.data("apply", "-f", tmp_path / "manifests.yaml", "--credentials", tmp_path / "credentials")
    return outcomes


def test_fields_inside_of_results_are_told(headwater: CommandLine, applied: list[dict[str, Any]]) -> None:
    printed = [
        (APPLIED, applied),
        (REALM, headwater.data("realm", "list")),
        (CATALOG, headwater.data("catalog", "list", "acme")),
        (TASK, headwater.data("task", "list")),
    ]

    assert any(outcome["waits"] for outcome in applied)
    for view, rows in printed:
        for field in view.fields:
            assert {way for row in rows for way in ways(row[field.name], field.inside)} <= set(field.inside), (
                view.name,
                field.name,
            )


def ways(value: Any, known: Any, way: str = "") -> Iterator[str]:
    """The way to each field inside of a value. Free names and values, of which nothing is told, have none."""
    if way in known or (isinstance(value, dict) and not known):
        yield from [way] if way else []
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from ways(inner, known, f"{way}.{name}")
    elif isinstance(value, list) and any(isinstance(item, dict) for item in value):
        for item in value:
            yield from ways(item, known or {"": ""}, f"{way}[]")
    elif way:
        yield way
