"""The page about resources, and the examples, say what the definitions say."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest
import yaml
from defined_kinds import LEAST, ROOT, nodes, read_kind

from headwater.reconcile import read_manifest
from headwater.reconcile.manifests import ANNOTATIONS, PLAN
from headwater.settings import Settings

EXAMPLES = sorted((ROOT / "examples" / "kubernetes").rglob("*.yaml"))


@pytest.fixture(scope="module")
def page() -> str:
    return str(runpy.run_path(str(ROOT / "docs" / "generate.py"))["resources_page"]())


def test_page_says_what_the_definitions_say(page: str) -> None:
    assert (ROOT / "docs" / "reference" / "resources.md").read_text(encoding="utf-8") == page, "run `make docs`"


@pytest.mark.parametrize("kind", LEAST)
def test_each_field_and_rule_is_on_the_page(page: str, kind: str) -> None:
    chapter = page.split(f"\n## {kind}\n")[1].split("\n## ")[0]
    named = [(path, schema) for path, schema in nodes(read_kind(kind).schema) if path[:1] in (("spec",), ("status",))]
    described = {schema["description"] for path, schema in named if len(path) > 1 and path[-1] not in ("[]", "*")}
    told = {
        rule["message"] for _, schema in nodes(read_kind(kind).schema) for rule in schema.get("x-kubernetes-validations", ())
    }

    assert [text for text in described | told if text not in chapter] == []


def test_each_annotation_is_on_the_page(page: str) -> None:
    chapter = page.split("\n## Annotations\n")[1]

    assert [
        name for name in {PLAN, *(name for names in ANNOTATIONS.values() for name in names)} if f"`{name}`" not in chapter
    ] == []


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.name)
def test_example_is_let_in_and_read(file: Path) -> None:
    bodies: list[dict[str, Any]] = list(yaml.safe_load_all(file.read_text(encoding="utf-8")))
    for body in bodies:
        kind = read_kind(body["kind"])
        told = kind.refusals(body["spec"], name=body["metadata"]["name"])

        assert told == []
        assert read_manifest({**body, "metadata": {**body["metadata"], "namespace": "default"}}, settings=Settings())


def test_examples_show_each_field() -> None:
    bodies = [body for file in EXAMPLES for body in yaml.safe_load_all(file.read_text(encoding="utf-8"))]
    shown = {kind: {name for body in bodies if body["kind"] == kind for name in body["spec"]} for kind in LEAST}

    assert {kind: set(read_kind(kind).schema["properties"]["spec"]["properties"]) - shown[kind] for kind in LEAST} == {
        "Realm": {"realmId", "deletionProtection"},
        "Catalog": set(),
    }
