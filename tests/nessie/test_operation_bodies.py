"""Operations in JSON: commits that clients send, and logs."""

import json
from dataclasses import replace
from uuid import UUID

import msgspec
import pytest

from headwater.catalogs import (
    CommitMeta,
    CommittedOperation,
    ContentKey,
    ContentType,
    Delete,
    IcebergTable,
    IcebergView,
    LogEntry,
    Put,
    Unmodified,
)
from headwater.errors import RefusedError
from headwater_server.json_body import convert_body
from headwater_server.nessie.operation_bodies import CommitRequest, added_content_bodies, log_entry_body, log_entry_body_v1
from headwater_server.nessie.reference_paths import NO_ANCESTOR_HASH

ID = UUID("b874b5d5-f926-4eed-9be7-b2380d9810c0")
TABLE, GONE, LATER = ContentKey.of("ns", "t"), ContentKey.of("ns", "gone"), ContentKey.of("ns", "later")
_TABLE_JSON = {
    "type": "ICEBERG_TABLE",
    "id": None,
    "metadataLocation": "x",
    "snapshotId": 1,
    "schemaId": 2,
    "specId": 3,
    "sortOrderId": 4,
}
_CONTENT = IcebergTable(metadata_location="x", snapshot_id=1, schema_id=2, spec_id=3, sort_order_id=4)
_ENTRY = LogEntry(
    id=0x12,
    seq=1,
    time=0,
    meta=CommitMeta(message="m"),
    parent=None,
    operations=(
        CommittedOperation("DELETE", GONE),
        CommittedOperation("PUT", LATER, 99, ID),
        CommittedOperation("PUT", TABLE, ContentType.ICEBERG_TABLE, ID),
    ),
)


def _json(body):
    return json.loads(msgspec.json.encode(body))


def _operations(*bodies):
    return convert_body({"commitMeta": {"message": "m"}, "operations": list(bodies)}, CommitRequest).to_operations()


def _key(key):
    return {"elements": list(key.elements)}


def test_operations_of_the_python_client_are_read_in_their_order():
    assert _operations(
        {"key": _key(TABLE), "content": _TABLE_JSON, "expectedContent": None, "type": "PUT"},
        {"key": _key(GONE), "type": "DELETE"},
        {"key": _key(LATER), "type": "UNCHANGED"},
    ) == [Put(TABLE, _CONTENT), Delete(GONE), Unmodified(LATER)]


def test_documentation_and_metadata_are_ignored():
    body = {"type": "PUT", "key": _key(TABLE), "content": _TABLE_JSON, "metadata": [{"variant": "x"}], "documentation": {}}

    assert _operations(body) == [Put(TABLE, _CONTENT)]


def test_expected_content_is_honored():
    expected = {**_TABLE_JSON, "id": str(ID), "snapshotId": 0}
    [put] = _operations({"type": "PUT", "key": _key(TABLE), "content": _TABLE_JSON, "expectedContent": expected})

    assert put.expected_content == msgspec.structs.replace(_CONTENT, id=ID, snapshot_id=0)


def test_commit_may_be_without_operations():
    assert _operations() == []


@pytest.mark.parametrize(
    ("body", "what"),
    [
        ({"type": "MOVE", "key": _key(TABLE)}, "MOVE"),
        ({"key": _key(TABLE)}, "type"),
        ({"type": "DELETE"}, "key"),
        ({"type": "DELETE", "key": {"elements": []}}, "at least one element"),
        ({"type": "DELETE", "key": {"elements": ["a", None]}}, r"operations\[0\]\.key\.elements"),
        ({"type": "PUT", "key": _key(TABLE)}, "content"),
        ({"type": "PUT", "key": _key(TABLE), "content": {"type": "HUDI"}}, "HUDI"),
        ({"type": "PUT", "key": _key(TABLE), "content": {"type": "NAMESPACE", "elements": ["ns"]}}, "its key"),
    ],
)
def test_malformed_operation_is_refused_by_name(body, what):
    with pytest.raises(RefusedError, match=what):
        _operations(body)


def test_log_tells_operations_with_their_contents():
    body = _json(log_entry_body(_ENTRY, {TABLE: msgspec.structs.replace(_CONTENT, id=ID)}))

    assert body["parentCommitHash"] == NO_ANCESTOR_HASH
    assert body["commitMeta"]["hash"] == "0000000000000012"
    assert body["operations"] == [
        {"type": "DELETE", "key": _key(GONE)},
        {"type": "PUT", "key": _key(TABLE), "content": _TABLE_JSON | {"id": str(ID)}},
    ]


def test_log_that_was_asked_for_less_tells_less():
    assert set(_json(log_entry_body(_ENTRY))) == set(_json(log_entry_body_v1(_ENTRY))) == {"commitMeta"}


def test_commit_without_operations_has_none_in_the_log():
    assert "operations" not in _json(log_entry_body(replace(_ENTRY, operations=()), {}))


def test_log_of_version_1_has_its_own_names():
    entry = LogEntry(1, 1, 0, CommitMeta(authors=("a",)), 2, (CommittedOperation("PUT", TABLE, ContentType.ICEBERG_VIEW, ID),))
    body = _json(log_entry_body_v1(entry, {TABLE: IcebergView(id=ID, metadata_location="v")}))

    assert body["commitMeta"]["author"] == "a"
    assert body["operations"][0]["content"]["sqlText"] == ""


def test_created_contents_are_told_with_their_ids():
    assert _json(added_content_bodies({TABLE: ID})) == [{"key": _key(TABLE), "contentId": str(ID)}]
