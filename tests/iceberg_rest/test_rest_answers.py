"""How versions of tables are told apart, and what is left out of them."""

from __future__ import annotations

import json

import pytest

from headwater_server.iceberg_rest.table_answers import is_known, referenced_text

TAG = 'W/"abc-refs"'


@pytest.mark.parametrize("tags", [TAG, '"abc-refs"', ' W/"other" , "abc-refs"', "*", 'W/"a,b",W/"abc-refs"'])
def test_version_that_a_client_has_is_known(tags: str) -> None:
    assert is_known(tags, TAG)


@pytest.mark.parametrize("tags", [None, "", 'W/"abc"', '"abc-refs', "abc-refs", '"ABC-REFS"', 'W/"x"abc-refs"'])
def test_other_version_is_not_known(tags: str | None) -> None:
    assert not is_known(tags, TAG)


def test_snapshots_without_a_reference_are_left_out() -> None:
    document = {
        "current-snapshot-id": 3,
        "refs": {"main": {"snapshot-id": 3, "type": "branch"}, "old": {"snapshot-id": 1, "type": "tag"}},
        "snapshots": [{"snapshot-id": number} for number in (1, 2, 3)],
        "last-updated-ms": 5,
    }

    trimmed = json.loads(referenced_text(document))

    assert trimmed == document | {"snapshots": [{"snapshot-id": 1}, {"snapshot-id": 3}]}


def test_current_snapshot_stays_where_there_are_no_references() -> None:
    document = {"current-snapshot-id": 2, "snapshots": [{"snapshot-id": 1}, {"snapshot-id": 2}]}

    assert json.loads(referenced_text(document))["snapshots"] == [{"snapshot-id": 2}]


def test_table_without_snapshots_is_handed_on() -> None:
    assert json.loads(referenced_text({"format-version": 2})) == {"format-version": 2, "snapshots": []}
