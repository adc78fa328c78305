"""A path is split first and decoded then, each segment once; a query is decoded once, and has each name once."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.errors import RefusedError
from headwater_server.request_target import is_form_encoding, path_segments, query_parameters

NAMES = ("pageToken", "pageSize", "parent", "a", "b")


@pytest.mark.parametrize(
    ("raw", "segments"),
    [
        (b"/feature%2Fx/t%2Fx", ["feature/x", "t/x"]),
        (b"/%252F", ["%2F"]),
        (b"/a%1Fb.c", ["a\x1fb.c"]),
        (b"/../%2E%2E/.", ["..", "..", "."]),
        (b"/a+b/%2B", ["a+b", "+"]),
        (b"//a/", ["", "a", ""]),
        (b"http://host:80/a%2Fb", ["a/b"]),
        (b"http://host", [""]),
        (b"/%C3%BC", ["ü"]),
        (b"*", []),
    ],
)
def test_segments_are_decoded_once(raw: bytes, segments: list[str]) -> None:
    assert path_segments(raw) == segments


def test_plus_sign_is_a_space_for_clients_that_encode_forms() -> None:
    java = {"x-client-version": "Apache Iceberg 1.10.2 (commit abc)"}

    assert path_segments(b"/a+b/%2B", is_form_encoded=is_form_encoding(java)) == ["a b", "+"]
    assert not is_form_encoding({"x-client-version": "PyIceberg 0.12.0"}) and not is_form_encoding({})


@given(st.lists(st.text(st.characters(codec="utf-8"), min_size=1), min_size=1))
def test_quoted_segments_come_back(segments: list[str]) -> None:
    assert path_segments(("/" + "/".join(quote(segment, safe="") for segment in segments)).encode()) == segments


@pytest.mark.parametrize("raw", [b"/%", b"/%2", b"/%zz", b"/%FF", b"/%C3"])
def test_segment_that_cannot_be_decoded_is_refused(raw: bytes) -> None:
    with pytest.raises(RefusedError, match="the path has"):
        path_segments(raw)


@pytest.mark.parametrize(
    ("raw", "parameters"),
    [
        (b"", {}),
        (b"pageToken=&pageSize=5", {"pageToken": "", "pageSize": "5"}),
        (b"a=x+y%20z%2B&b", {"a": "x y z+", "b": ""}),
        (b"parent=a%1Fb&&", {"parent": "a\x1fb"}),
        (b"a==", {"a": "="}),
        (b"a=1&new=2&new=3", {"a": "1"}),
    ],
)
def test_query_has_its_parameters(raw: bytes, parameters: dict[str, str]) -> None:
    assert query_parameters(raw, NAMES) == parameters


@pytest.mark.parametrize("raw", [b"a=1&a=2", b"a=1&%61=2", b"a=%FF", b"a=%2", b"&".join(b"p%d" % n for n in range(101))])
def test_query_that_says_two_things_is_refused(raw: bytes) -> None:
    with pytest.raises(RefusedError, match="the query has"):
        query_parameters(raw, NAMES)
