"""Content keys in paths: Nessie's vectors, both forms, and round trips."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.catalogs import ContentKey
from headwater.errors import RefusedError
from headwater_server.nessie.content_key_paths import key_from_elements, key_path_text, parse_key_path

_ESCAPED = [
    (("hello.", "world"), ".hello*..world"),
    (("hello", ".world"), ".hello.*.world"),
    (("he/llo",), ".he*{llo"),
    (("he.l#/lo~", "~wo.rld"), ".he*.l#*{lo~.~wo*.rld"),
    (("a\\b", "50%", "*"), ".a*}b.50*[.**"),
    (("a.*b",), ".a*.**b"),
]
_ELEMENTS = st.lists(st.text(st.sampled_from("ab.*/\\%{}[#?&~ 表"), min_size=1, max_size=6), min_size=1, max_size=4)


@pytest.mark.parametrize(("elements", "text"), _ESCAPED)
def test_key_with_special_characters_is_escaped(elements, text):
    assert key_path_text(ContentKey(elements)) == text
    assert parse_key_path(text) == ContentKey(elements)


@pytest.mark.parametrize(
    ("text", "elements"),
    [
        ("a", ("a",)),
        ("sales.orders", ("sales", "orders")),
        ("a\x1db.c", ("a.b", "c")),
        ("a\0b.c", ("a.b", "c")),
        ("a/b.c%d\\", ("a/b", "c%d\\")),
        ("a*.b", ("a*", "b")),
        (".foo.bar", ("foo", "bar")),
        (".a*.b.c\x20d", ("a.b", "c d")),
    ],
)
def test_key_path_is_read_in_both_forms(text, elements):
    assert parse_key_path(text) == ContentKey(elements)


def test_plain_key_is_written_without_escapes():
    assert key_path_text(ContentKey.of("a*", "b", "表")) == "a*.b.表"


@pytest.mark.parametrize("text", ["", ".", "a..b", "a.", ".a..b", ".a*", ".a*x", ".a\x1db", "a\x07"])
def test_malformed_key_path_is_refused(text):
    with pytest.raises(RefusedError):
        parse_key_path(text)


def test_unknown_escape_is_named():
    with pytest.raises(RefusedError, match="not 'x'"):
        parse_key_path(".a*x")


@given(_ELEMENTS)
def test_key_survives_its_path_form(elements):
    key = key_from_elements(elements)

    assert parse_key_path(key_path_text(key)) == key


@given(_ELEMENTS)
def test_key_of_an_old_client_is_read(elements):
    text = ".".join(element.replace(".", "\x1d") for element in elements)

    assert parse_key_path(text) == key_from_elements(elements)


def test_elements_of_a_body_are_checked():
    with pytest.raises(RefusedError, match="element 2 is empty"):
        key_from_elements(["a", ""])
