from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from headwater.iceberg.spec import FaultError, check_table, check_view, is_view, version_of
from headwater.iceberg.spec.document_shape import JsonRecord, find_faults, is_of
from headwater.iceberg.spec.table_rules import TableV1, TableV2, TableV3
from headwater.iceberg.spec.view_rules import ViewMetadata
from metadata_fixtures import FIXTURES, table, view

SOUND = [table(1), table(2), table(3), view(), *(one.document for one in FIXTURES if one.verdict == "valid")]
VALUES = [
    None, "", "x", "struct", "unknown", "variant", "decimal(9,2)", "decimal(99,2)", True, 1.0, -1, 0, 1, 2, 11, 22,
    2**31 - 1, 2**31, 2**63 - 1, 2**63, -(2**63) - 1, 2**70, [], {}, [1], {"a": 1}, {"a": "b"},
]  # fmt: skip
OTHERS = ["id", "type", "initial-default", "manifests", "summary", "key-id", "sequence-number", "first-row-id", "added-rows"]


def holders(value: Any) -> Iterator[Any]:
    """All objects and lists of a document that have something in them."""
    if isinstance(value, dict | list) and value:
        yield value
        for one in value.values() if isinstance(value, dict) else value:
            yield from holders(one)


@st.composite
def mutated(draw: st.DrawFn) -> dict[str, Any]:
    """A sound document in which one or two things, at any depth, are gone, others than they were, or there again."""
    document = copy.deepcopy(draw(st.sampled_from(SOUND)))
    for _ in range(draw(st.integers(1, 2))):
        holder = draw(st.sampled_from(list(holders(document))))
        place = draw(st.sampled_from(sorted(holder) if isinstance(holder, dict) else range(len(holder))))
        match draw(st.sampled_from(["replace", "remove", "add"])):
            case "replace":
                holder[place] = copy.deepcopy(draw(st.sampled_from(VALUES)))
            case "remove":
                del holder[place]
            case "add" if isinstance(holder, dict):
                holder[draw(st.sampled_from(OTHERS))] = copy.deepcopy(draw(st.sampled_from(VALUES)))
            case "add":
                holder.append(copy.deepcopy(holder[place]))
    return document


def shape_of(document: dict[str, Any]) -> type[JsonRecord]:
    try:
        version = version_of(document)
    except FaultError:
        version = 0
    assume(version in (1, 2, 3))
    return ViewMetadata if is_view(document) else {1: TableV1, 2: TableV2, 3: TableV3}[version]


def value_at(document: Any, path: str) -> Any:
    """What stands in a document where a message says: ``refs['old'].type``. None where nothing stands."""
    for name, key, number in re.findall(r"([a-z-]+)|\['([^']*)'\]|\[(\d+)\]", path):
        document = document[int(number)] if number else document.get(name or key)
    return document


@given(mutated())
def test_mutated_document_is_sound_or_has_a_fault(document: dict[str, Any]) -> None:
    with suppress(FaultError):
        (check_view if is_view(document) else check_table)(document)


@given(mutated())
def test_document_has_faults_unless_it_is_of_its_shape(document: dict[str, Any]) -> None:
    shape = shape_of(document)

    assert bool(list(find_faults(document, shape, ""))) is not is_of(document, shape)


@given(mutated())
def test_fault_names_the_place_of_its_value(document: dict[str, Any]) -> None:
    faults = find_faults(document, shape_of(document), "")

    assert all(value_at(document, fault.path) is fault.value for fault in faults)
