"""Updates and documents in which something is not as it should be: a change is valid, or it is refused with a sentence."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.errors import HeadwaterError
from headwater.iceberg.changes import (
    added_files,
    added_snapshots,
    change_table,
    change_view,
    check_requirements,
    claimed_places,
    moved_refs,
    new_table,
)
from headwater.iceberg.spec import FaultError, check_table, check_view
from metadata_fixtures import (
    COLUMNS,
    PARTITION_STATISTICS,
    STATISTICS,
    UUID,
    column,
    schema,
    snapshot,
    table,
    version_of_view,
    view,
)

Document = dict[str, Any]
NOW = 1_760_000_000_000
VALUES: list[Any] = [
    None, "", "x", "struct", "variant", "main", "tag", True, 1.5, -1, 0, 1, 2, 3, 11, 22, 33, 2**31, 2**63 - 1, 2**63, -(2**63) - 1,
    2**70, [], {}, [1], [None], [[]], [{}], {"a": 1}, {"a": "b"}, {"a": {}},
]  # fmt: skip
FIELD = {"name": "d", "transform": "day", "source-id": 2}
ORDER = {"transform": "identity", "source-id": 1, "direction": "asc", "null-order": "nulls-first"}
NESTED = column(4, "s", {"type": "list", "element-id": 5, "element-required": True, "element": {
    "type": "struct", "fields": [column(6, "x", "int")]}})  # fmt: skip
TABLE_UPDATES: list[Document] = [
    {"action": "assign-uuid", "uuid": UUID},
    {"action": "upgrade-format-version", "format-version": 3},
    {"action": "add-schema", "schema": schema(*COLUMNS, NESTED, **{"identifier-field-ids": [1]})},
    {"action": "set-current-schema", "schema-id": -1},
    {"action": "add-spec", "spec": {"fields": [FIELD]}},
    {"action": "set-default-spec", "spec-id": -1},
    {"action": "add-sort-order", "sort-order": {"order-id": 1, "fields": [ORDER]}},
    {"action": "set-default-sort-order", "sort-order-id": -1},
    {"action": "add-snapshot", "snapshot": snapshot(33, 3, **{"first-row-id": 30, "added-rows": 5, "parent-snapshot-id": 22})},
    {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 33, "max-ref-age-ms": 5},
    {"action": "remove-snapshots", "snapshot-ids": [11]},
    {"action": "remove-snapshot-ref", "ref-name": "old"},
    {"action": "set-location", "location": "s3://lake/other"},
    {"action": "set-properties", "updates": {"write.metadata.previous-versions-max": "5"}},
    {"action": "remove-properties", "removals": ["owner"]},
    {"action": "set-statistics", "statistics": STATISTICS},
    {"action": "remove-statistics", "snapshot-id": 22},
    {"action": "set-partition-statistics", "partition-statistics": PARTITION_STATISTICS},
    {"action": "remove-partition-statistics", "snapshot-id": 22},
    {"action": "remove-partition-specs", "spec-ids": [0]},
    {"action": "remove-schemas", "schema-ids": [0]},
    {"action": "add-encryption-key", "encryption-key": {"key-id": "k", "encrypted-key-metadata": "eA=="}},
    {"action": "remove-encryption-key", "key-id": "k"},
]
VIEW_UPDATES: list[Document] = [
    {"action": "add-schema", "schema": schema(*COLUMNS, NESTED)},
    {"action": "add-view-version", "view-version": version_of_view(3, **{"schema-id": -1})},
    {"action": "set-current-view-version", "view-version-id": -1},
    {"action": "set-properties", "updates": {"version.history.num-entries": "2"}},
    {"action": "remove-properties", "removals": ["comment"]},
    {"action": "set-location", "location": "s3://lake/other"},
]
REQUIREMENTS: list[Document] = [
    {"type": "assert-table-uuid", "uuid": UUID},
    {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 22},
    {"type": "assert-default-spec-id", "default-spec-id": 0},
]
CREATION: Document = {
    "schema": schema(*COLUMNS, NESTED, **{"identifier-field-ids": [1]}),
    "partition_spec": {"spec-id": 0, "fields": [FIELD]},
    "sort_order": {"order-id": 1, "fields": [ORDER]},
    "properties": {"format-version": "2"},
}


def holders(value: Any) -> Iterator[Any]:
    """All objects and lists with something in them."""
    if isinstance(value, dict | list) and value:
        yield value
        for member in value.values() if isinstance(value, dict) else value:
            yield from holders(member)


def mutate(draw: st.DrawFn, value: Any, times: int) -> Any:
    """A copy in which a few things, at any depth, are gone, or others than they were."""
    mutant = copy.deepcopy(value)
    for _ in range(times):
        places = list(holders(mutant))
        if not places:
            return mutant
        holder = draw(st.sampled_from(places))
        place = draw(st.sampled_from(sorted(holder) if isinstance(holder, dict) else range(len(holder))))
        if draw(st.booleans()):
            holder[place] = copy.deepcopy(draw(st.sampled_from(VALUES)))
        else:
            del holder[place]
    return mutant


@st.composite
def mutated(draw: st.DrawFn, updates: list[Document]) -> list[Any]:
    chosen = draw(st.lists(st.sampled_from(range(len(updates))), min_size=1, max_size=6, unique=True))
    return list(mutate(draw, [updates[at] for at in sorted(chosen)], draw(st.integers(0, 2))))


@st.composite
def mutated_table(draw: st.DrawFn) -> Document:
    document = mutate(draw, table(draw(st.sampled_from([1, 2, 3]))), draw(st.integers(1, 2)))
    return document if isinstance(document, dict) else {}


def is_valid(document: Document) -> bool:
    try:
        (check_view if "view-uuid" in document else check_table)(document)
    except FaultError:
        return False
    return True


@given(st.sampled_from([1, 2, 3]), mutated(TABLE_UPDATES))
def test_mutated_updates_of_a_table_are_valid_or_refused(version: int, updates: list[Any]) -> None:
    try:
        result = change_table(table(version), updates, now_ms=NOW, previous_file="s3://lake/f")
    except HeadwaterError as fault:
        assert str(fault)
    else:
        assert is_valid(result)


@given(mutated_table(), mutated(TABLE_UPDATES))
def test_mutated_table_stays_as_sound_as_it_was(document: Document, updates: list[Any]) -> None:
    try:
        result = change_table(document, updates, now_ms=NOW, previous_file="s3://lake/f")
    except HeadwaterError as fault:
        assert str(fault)
    else:
        assert is_valid(result) or not is_valid(document)


@given(mutated(VIEW_UPDATES))
def test_mutated_updates_of_a_view_are_valid_or_refused(updates: list[Any]) -> None:
    try:
        result = change_view(view(), updates, now_ms=NOW)
    except HeadwaterError as fault:
        assert str(fault)
    else:
        assert is_valid(result)


@given(mutated_table(), mutated(REQUIREMENTS))
def test_mutated_requirements_are_judged(document: Document, requirements: list[Any]) -> None:
    try:
        check_requirements(document, requirements)
    except HeadwaterError as fault:
        assert str(fault)


@given(mutated([CREATION]))
def test_mutated_creation_is_valid_or_refused(creations: list[Any]) -> None:
    asked = creations[0] if creations and isinstance(creations[0], dict) else {}
    given_ones = {name: asked.get(name) for name in CREATION}
    try:
        result = new_table(**given_ones, location="s3://lake/t", table_uuid=UUID, now_ms=NOW)  # type: ignore[arg-type]
    except HeadwaterError as fault:
        assert str(fault)
    else:
        assert is_valid(result)


@settings(max_examples=50)
@given(mutated(TABLE_UPDATES))
def test_facts_of_mutated_updates_are_told(updates: list[Any]) -> None:
    added_snapshots(updates)
    added_files(updates)
    claimed_places(updates, ("owner",))
    moved_refs(updates)
