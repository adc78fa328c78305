from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.catalogs.iceberg.validation import FaultError, check_table, check_view, is_view, schemas, snapshots
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


def verdict_on(document: dict[str, Any]) -> str:
    try:
        return str((check_view if is_view(document) else check_table)(document))
    except FaultError as fault:
        return f"{fault.weight}: {fault}"


@given(mutated())
def test_a_list_judged_at_once_gets_the_verdict_of_each_of_its_objects(document: dict[str, Any]) -> None:
    at_once = verdict_on(document)
    with pytest.MonkeyPatch.context() as patch:
        for module in (schemas, snapshots):
            patch.setattr(module, "fitting", lambda _found, _shape: None)
        one_by_one = verdict_on(document)

    assert at_once == one_by_one
