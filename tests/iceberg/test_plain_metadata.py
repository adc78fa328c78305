"""Documents without the optional fields that are null, which Iceberg's Java library does not read everywhere."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headwater.iceberg.changes import ChangeFormError
from headwater.iceberg.metadata_json import join_metadata, split_metadata
from headwater.iceberg.plain_metadata import plain_metadata
from headwater.iceberg_catalog.lake_contents import encoded_document
from metadata_fixtures import table
from whole_documents import REQUESTS, UPDATES, changed_table, places_in, with_value, without


def plain(document: dict[str, Any]) -> Any:
    return json.loads(plain_metadata(json.dumps(document, separators=(",", ":")).encode()))


@pytest.mark.parametrize("kind", REQUESTS)
def test_null_is_an_absent_field_or_refused(kind: str) -> None:
    make, request = REQUESTS[kind]
    accepted = 0

    for place in places_in(request):
        if place[-1] == "action" or isinstance(place[-1], int):
            continue
        try:
            text = encoded_document(make(with_value(request, place, None)))
        except ChangeFormError as refused:
            assert refused.path, place
            continue
        accepted += 1
        assert b":null" not in text, place
        assert json.loads(text) == json.loads(encoded_document(make(without(request, place)))), place
    assert accepted >= 3


def test_snapshot_without_a_parent_states_none() -> None:
    document = changed_table(with_value(UPDATES, (0, "snapshot", "parent-snapshot-id"), -1))

    assert "parent-snapshot-id" not in json.loads(encoded_document(document))["snapshots"][0]


def test_document_of_another_writer_is_stored_without_nulls() -> None:
    document = table(2)
    stored = {**document, "snapshots": [{**document["snapshots"][0], "parent-snapshot-id": None, "summary": None}]}

    [snapshot] = json.loads(join_metadata(split_metadata(json.dumps(stored, indent=1).encode())))["snapshots"]

    assert {"parent-snapshot-id", "summary"}.isdisjoint(snapshot)


def test_unknown_fields_and_values_of_columns_keep_their_nulls() -> None:
    document = table(3)
    field = {"id": 90, "name": "m", "required": False, "type": {"type": "list", "element-id": 91, "element": "int"}}
    field |= {"initial-default": [1, None], "x-engine": None}
    document["schemas"] = [{"type": "struct", "schema-id": 0, "fields": [{**field, "doc": None}]}]
    document["x-number"] = 123456789012345678901234567890

    assert plain(document) == {**document, "schemas": [{"type": "struct", "schema-id": 0, "fields": [field]}]}


def test_required_null_stays_for_the_rules_to_refuse() -> None:
    assert plain({**table(2), "location": None})["location"] is None


def test_comment_of_a_column_is_text() -> None:
    with pytest.raises(ChangeFormError, match=r"fields\[0\]\.doc 5, which is not a string"):
        changed_table(with_value(UPDATES, (6, "schema", "fields", 0, "doc"), 5))
