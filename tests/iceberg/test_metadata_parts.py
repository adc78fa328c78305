from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.errors import RefusedError
from headwater.iceberg.metadata_json import MetadataParts, join_metadata, split_metadata
from headwater.iceberg.plain_metadata import plain_metadata
from metadata_fixtures import FIXTURES

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**90), 2**90)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=6,
)
documents = st.dictionaries(st.text(max_size=8) | st.just("n" * 300) | st.just("a\0b"), values, max_size=8)


def there_and_back(text: bytes) -> Any:
    return json.loads(join_metadata(split_metadata(text)))


@given(documents, st.sampled_from([None, 2]))
@settings(max_examples=30)
def test_parts_have_equal_values_together(document: dict[str, Any], indent: int | None) -> None:
    assert there_and_back(json.dumps(document, indent=indent).encode()) == document


@pytest.mark.parametrize("document", [pytest.param(one.document, id=one.name) for one in FIXTURES])
def test_every_fixture_comes_back(document: dict[str, Any]) -> None:
    text = json.dumps(document, separators=(",", ":")).encode()

    assert there_and_back(text) == json.loads(plain_metadata(text))


def test_lists_are_divided_into_elements_and_small_objects_are_whole() -> None:
    parts = split_metadata(b'{"snapshots": [ {"a": 1}, 5, [] ], "properties": {"b": "c"}, "empty": []}')

    assert parts == MetadataParts({"properties": b'{"b":"c"}', "empty": b"[]"}, {"snapshots": (b'{"a":1}', b"5", b"[]")}, {})


def test_large_objects_are_divided_into_members() -> None:
    refs = {f"tag-{number}": {"snapshot-id": number, "type": "tag"} for number in range(100)}

    parts = split_metadata(json.dumps({"refs": refs}).encode())

    assert parts.maps["refs"]["tag-7"] == b'{"snapshot-id":7,"type":"tag"}'
    assert json.loads(join_metadata(parts)) == {"refs": refs}


def test_numbers_are_kept_as_they_were_written() -> None:
    text = b'{"a":1.50,"b":[1E3,123456789012345678901234567890,-0.0]}'

    assert join_metadata(split_metadata(text)) == text


def test_white_space_makes_no_difference() -> None:
    document = {"schemas": [{"schema-id": 0, "fields": []}], "location": "s3://a b"}

    assert split_metadata(json.dumps(document, indent=4).encode()) == split_metadata(
        json.dumps(document, separators=(",", ":")).encode()
    )


def test_last_of_equal_names_counts() -> None:
    assert there_and_back(b'{"a": 1, "a": [2]}') == {"a": [2]}


def test_byte_order_mark_is_passed_over() -> None:
    assert there_and_back(b'\xef\xbb\xbf{"a": 1}') == {"a": 1}


@pytest.mark.parametrize(
    "text", [b"", b"[1]", b'{"a": 1', b'{"a": 1} x', b'{"a": "\xff"}', b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}"]
)
def test_document_that_is_no_object_is_refused(text: bytes) -> None:
    with pytest.raises(RefusedError, match="cannot be taken apart"):
        split_metadata(text)
