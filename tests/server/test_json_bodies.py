"""Bodies: JSON that has one meaning, in one piece or packed, and a sentence for everything else."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from things import ThingQuery, ThingRequest

from headwater.errors import RefusedError
from headwater_server.error_answers import ProtocolError
from headwater_server.json_body import DEPTH_LIMIT, convert_body, convert_query, parse_json, unpacked_body

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda children: st.lists(children) | st.dictionaries(st.text(), children),
)


@settings(max_examples=30)
@given(JSON_VALUES)
def test_value_comes_back_as_it_was_written(value: Any) -> None:
    assert parse_json(json.dumps(value).encode()) == value


@given(st.binary())
def test_bytes_are_parsed_or_refused_and_nothing_else(raw: bytes) -> None:
    try:
        parse_json(raw)
    except RefusedError as refused:
        assert str(refused).startswith("the body ")


@pytest.mark.parametrize(
    ("raw", "sentence"),
    [
        (b'{"a": 1, "b": {"c": 1, "c": 2}}', "has an object with the name 'c' twice"),
        (b"[NaN]", "has the number NaN"),
        (b"[-Infinity]", "has the number -Infinity"),
        (b"1e999", "has a number beyond the range of a double"),
        (b"9" * 5000, "has a number with too many digits"),
        (b"[" * (DEPTH_LIMIT + 1) + b"]" * (DEPTH_LIMIT + 1), "objects and lists inside one another"),
        (b"[" * 1_000_000, "objects and lists inside one another"),
        (b'{"a":' * 1_000_000, "objects and lists inside one another"),
        (b'"\xff"', "is not UTF-8, from byte 1 on"),
        (b'"\xed\xa0\x80"', "is not UTF-8"),
        (b'{"a": "\\ud800"}', "has half a surrogate pair"),
        (b'{"\\uDFFF": 1}', "has half a surrogate pair"),
        (b"\xef\xbb\xbf{}", "is not JSON"),
        (b"{} {}", "is not JSON: Extra data, in line 1, column 4"),
        (b"{'a': 1}", "is not JSON"),
        (b"[1,]", "is not JSON"),
        (b'"\x01"', "is not JSON"),
        (b"", "is empty"),
        (b" \n", "is empty"),
    ],
)
def test_body_that_is_no_strict_json_is_refused(raw: bytes, sentence: str) -> None:
    with pytest.raises(RefusedError) as refused:
        parse_json(raw)

    assert sentence in str(refused.value)


@pytest.mark.parametrize("raw", [b"[" * DEPTH_LIMIT + b"]" * DEPTH_LIMIT, b'"\\ud83d\\ude00"', b'"\\\\ud800"', b"-0.0", b"1E5"])
def test_body_at_the_edge_is_parsed(raw: bytes) -> None:
    assert parse_json(raw) == json.loads(raw)


def test_refusal_does_not_quote_the_body() -> None:
    with pytest.raises(RefusedError) as refused:
        parse_json(b'{"password": hunter2}')

    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ({"name": 5}, "name: expected `str`, got `int`"),
        ({"name": "a", "parts": [{}, 3]}, "parts[1]: expected `object`, got `int`"),
        ({"parts": []}, "the body: object missing required field `name`"),
        ([], "the body: expected `object`, got `array`"),
        ({"name": "a", "count": "5"}, "count: expected `int`, got `str`"),
    ],
)
def test_wrong_type_is_refused_with_its_path(value: Any, fault: str) -> None:
    with pytest.raises(RefusedError) as refused:
        convert_body(value, ThingRequest)

    assert str(refused.value) == fault


def test_unknown_fields_are_ignored() -> None:
    assert convert_body({"name": "a", "other": {"name": 1}}, ThingRequest) == ThingRequest("a")


def test_query_is_converted_from_text() -> None:
    query = convert_query({"pageToken": "", "pageSize": "5", "isWhole": "true", "other": "x"}, ThingQuery)

    assert query == ThingQuery(page_token="", page_size=5, is_whole=True)


@pytest.mark.parametrize("parameters", [{"pageSize": "five"}, {"pageSize": ""}, {"isWhole": "perhaps"}])
def test_query_of_a_wrong_type_is_refused_by_name(parameters: dict[str, str]) -> None:
    with pytest.raises(RefusedError, match=next(iter(parameters))):
        convert_query(parameters, ThingQuery)


@pytest.mark.parametrize(
    ("raw", "encoding"),
    [
        (b"abc", ""),
        (b"abc", "identity"),
        (gzip.compress(b"abc", mtime=0), "gzip"),
        (gzip.compress(b"abc", mtime=0), " X-GZIP "),
        (gzip.compress(b"a", mtime=0) + gzip.compress(b"", mtime=0) + gzip.compress(b"bc", mtime=0), "gzip"),
    ],
)
def test_packed_body_is_unpacked(raw: bytes, encoding: str) -> None:
    assert unpacked_body(raw, encoding, limit_bytes=3) == b"abc"


@pytest.mark.parametrize(
    "raw",
    [
        b"abc",
        gzip.compress(b"abc", mtime=0)[:-1],
        gzip.compress(b"abc", mtime=0) + b"junk",
        gzip.compress(b"", mtime=0) * 101,
        b"\x1f\x8b",
    ],
)
def test_broken_gzip_is_refused(raw: bytes) -> None:
    with pytest.raises(RefusedError, match="gzip"):
        unpacked_body(raw, "gzip", limit_bytes=1000)


def test_bomb_is_refused_before_it_is_unpacked() -> None:
    bomb = gzip.compress(bytes(50_000_000), compresslevel=1)

    with pytest.raises(ProtocolError) as refused:
        unpacked_body(bomb, "gzip", limit_bytes=1000)

    assert refused.value.meaning.status == 413


def test_unread_encoding_is_told_what_is_read() -> None:
    with pytest.raises(ProtocolError) as refused:
        unpacked_body(b"abc", "br", limit_bytes=1000)

    assert (refused.value.meaning.status, refused.value.headers) == (415, {"Accept-Encoding": "gzip"})
