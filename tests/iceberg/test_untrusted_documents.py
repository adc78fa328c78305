"""Metadata files that somebody names by their place are judged, and never quoted."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from headwater.errors import RefusedError
from headwater.iceberg import parse_untrusted_table, parse_untrusted_view
from headwater.iceberg.spec import Document

FILE = "s3://lake/x.json"
PARSERS = [parse_untrusted_table, parse_untrusted_view]
Parse = Callable[..., Document]


def told(error: pytest.ExceptionInfo[BaseException]) -> str:
    """All that the error, and those that a log shows with it, say."""
    texts, fault = [], error.value
    while fault is not None:
        texts.append(str(fault))
        fault = fault.__cause__ or (None if fault.__suppress_context__ else fault.__context__)  # type: ignore[assignment]
    return " ".join(texts)


def view() -> dict[str, Any]:
    version = {"version-id": 1, "schema-id": 0, "timestamp-ms": 1, "summary": {}, "default-namespace": []}
    version["representations"] = [{"type": "sql", "sql": "SELECT 1", "dialect": "spark"}]
    return {
        "view-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1",
        "format-version": 1,
        "location": "s3://lake/v",
        "current-version-id": 1,
        "schemas": [{"type": "struct", "schema-id": 0, "fields": []}],
        "versions": [version],
        "version-log": [{"timestamp-ms": 1, "version-id": 1}],
    }


@pytest.mark.parametrize("parse", PARSERS)
@pytest.mark.parametrize("text", [b"root:x:0:0:hunter2", b"\xffhunter2", b'["hunter2"]', b'"hunter2"', b"", b"[" * 100_000])
def test_file_that_is_no_object_is_not_quoted(parse: Parse, text: bytes) -> None:
    with pytest.raises(RefusedError, match="no JSON object") as refusal:
        parse(text, location=FILE)

    assert "hunter" not in told(refusal)


@pytest.mark.parametrize("parse", PARSERS)
@pytest.mark.parametrize(
    "fields",
    [
        {"format-version": "hunter2"},
        {"table-uuid": "hunter2"},
        {"location": ["hunter2"]},
        {"properties": {"hunter2": 1}},
        {"refs": {"hunter2": {"snapshot-id": 7, "type": "branch"}}},
        {"schemas": [{"type": "hunter2"}]},
        {"view-uuid": "hunter2", "versions": "hunter2"},
        {"partition-specs": [{"spec-id": 0, "fields": [{"source-id": 9, "field-id": 1, "name": "hunter2", "transform": "hunter2"}]}]},
    ],
)  # fmt: skip
def test_unsound_document_is_not_quoted(parse: Parse, document: dict[str, Any], fields: dict[str, Any]) -> None:
    with pytest.raises(RefusedError, match="metadata of a") as refusal:
        parse(json.dumps(document | fields).encode(), location=FILE)

    assert "hunter" not in told(refusal)


def test_field_at_fault_is_named(document: dict[str, Any]) -> None:
    with pytest.raises(RefusedError, match=r"s3://lake/x\.json is no sound metadata of a table: .*; look at current-schema-id"):
        parse_untrusted_table(json.dumps(document | {"current-schema-id": 77}).encode(), location=FILE)


def test_sound_table_is_returned(document: dict[str, Any]) -> None:
    assert parse_untrusted_table(json.dumps(document).encode(), location=FILE) == document


def test_sound_view_is_returned() -> None:
    assert parse_untrusted_view(json.dumps(view()).encode(), location=FILE) == view()


def test_view_is_no_table(document: dict[str, Any]) -> None:
    with pytest.raises(RefusedError, match="is metadata of a view"):
        parse_untrusted_table(json.dumps(view()).encode(), location=FILE)
    with pytest.raises(RefusedError, match="is no metadata of a view"):
        parse_untrusted_view(json.dumps(document).encode(), location=FILE)
