"""Every bound of the schemas lets in what keeps it, and refuses what does not, in words that say what would be right."""

from __future__ import annotations

import pytest
from bounds import BOUNDS, Bound
from defined_kinds import LEAST, nodes, placed, read_kind

KEYWORDS = (
    *("enum", "maxItems", "maxLength", "maxProperties", "maximum"),
    *("minItems", "minLength", "minProperties", "minimum", "pattern"),
)


def name_of(bound: Bound) -> str:
    return f"{bound.kind}.{bound.path}-{bound.keyword}"


def where(path: str) -> str:
    """The path as it is told: of the only item, and of the name ``x``."""
    return "spec." + path.replace(".[]", "[0]").replace("*", "x")


@pytest.mark.parametrize("bound", BOUNDS, ids=name_of)
def test_value_within_the_bound_is_taken(bound: Bound) -> None:
    spec = placed(bound.kind, tuple(bound.path.split(".")), bound.kept)

    assert read_kind(bound.kind).refusals(spec) == []


@pytest.mark.parametrize("bound", BOUNDS, ids=name_of)
def test_value_beyond_the_bound_is_refused_with_its_reason(bound: Bound) -> None:
    spec = placed(bound.kind, tuple(bound.path.split(".")), bound.broken)

    told = read_kind(bound.kind).refusals(spec)

    assert [line for line in told if line.startswith(f"{where(bound.path)}: {bound.says}")], told


def test_every_bound_has_such_a_pair() -> None:
    found = {
        (kind, ".".join(path), keyword)
        for kind in LEAST
        for path, schema in nodes(read_kind(kind).schema["properties"]["spec"])
        for keyword in KEYWORDS
        if keyword in schema
    }

    assert {bound[:3] for bound in BOUNDS} == found


@pytest.mark.parametrize(
    ("spec", "missing"),
    [
        ({}, ["spec.realm", "spec.storage"]),
        ({"realm": "acme", "storage": {}}, ["spec.storage.baseLocation"]),
        (LEAST["Catalog"] | {"imports": [{}]}, ["spec.imports[0].name", "spec.imports[0].locations"]),
        (None, ["spec"]),
    ],
)
def test_field_missing_in_a_catalog_is_named(spec: dict[str, object] | None, missing: list[str]) -> None:
    told = read_kind("Catalog").refusals(spec)

    assert told[:-1] == [f"{field}: Required value" for field in missing]


def test_realm_needs_nothing() -> None:
    assert read_kind("Realm").refusals(None) == []
