"""Content keys: what is one, and its two other forms."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.catalogs import ContentKey
from headwater.catalogs.content import check_namespace_key
from headwater.errors import CorruptionError, RefusedError

characters = st.characters(min_codepoint=0x20, exclude_characters="\x7f", exclude_categories=["Cs"])
element = st.text(characters | st.sampled_from(r".\/ %"), min_size=1, max_size=6)
keys = st.lists(element, min_size=1, max_size=6).map(tuple).map(ContentKey)


@given(keys)
def test_key_survives_its_text(key: ContentKey) -> None:
    assert ContentKey.parse(str(key)) == key


@given(keys)
def test_key_survives_its_index_bytes(key: ContentKey) -> None:
    assert ContentKey.from_index(key.to_index()) == key


@given(keys, keys)
def test_order_of_bytes_is_the_order_of_elements(one: ContentKey, other: ContentKey) -> None:
    assert (one.to_index() < other.to_index()) == (one < other)


@given(keys, keys)
def test_prefix_finds_what_is_below_and_nothing_else(one: ContentKey, other: ContentKey) -> None:
    assert other.to_index().startswith(one.child_prefix()) == other.is_below(one)


@given(keys, element)
def test_child_is_below_its_parent(key: ContentKey, name: str) -> None:
    assert key.child(name).is_below(key)
    assert key.child(name).parent == key


@pytest.mark.parametrize(
    ("elements", "text"),
    [
        (("sales", "orders"), "sales.orders"),
        (("sales.eu", "orders"), r"sales\.eu.orders"),
        (("a\\", "b"), r"a\\.b"),
        ((".",), r"\."),
        (("he/llo", "wörld"), "he/llo.wörld"),
    ],
)
def test_dots_and_backslashes_inside_an_element_are_escaped(elements: tuple[str, ...], text: str) -> None:
    assert str(ContentKey(elements)) == text


@pytest.mark.parametrize("text", ["", ".a", "a.", "a..b", "a\\", r"a\b", "a\nb"])
def test_text_that_is_no_key_is_refused(text: str) -> None:
    with pytest.raises(RefusedError):
        ContentKey.parse(text)


def test_refusal_of_a_huge_key_is_short() -> None:
    for elements in (("a" * 9,) * 1000, ("b" * 5000 + "\n", "c" * 5000)):
        with pytest.raises(RefusedError) as refused:
            ContentKey(elements)
        assert len(str(refused.value)) < 300


@pytest.mark.parametrize(
    ("elements", "complaint"),
    [
        ((), "at least one element"),
        (("a", ""), "element 2 is empty"),
        (("a", "b\x1f"), r"element 2 .* contains the control character '\\x1f'"),
        (("\x7f",), "element 1 .* contains the control character"),
        (("\ud800",), "element 1 .* contains the half of a surrogate pair"),
        (("a",) * 21, "21 elements; 20 are allowed"),
        (("x" * 300, "y" * 201), "501 characters; 500 are allowed in all, and element 1 is the longest, with 300"),
        (("x" * 250, "y" * 250), "501 bytes in UTF-8"),
        (("ü" * 251,), "502 bytes in UTF-8"),
        (("a", "ü" * 250), "502 bytes in UTF-8.* element 2 is the longest, with 250 characters in 500 bytes"),
    ],
)
def test_key_beyond_the_rules_is_refused_with_its_element(elements: tuple[str, ...], complaint: str) -> None:
    with pytest.raises(RefusedError, match=complaint):
        ContentKey(elements)


def test_key_at_the_limits_is_a_key() -> None:
    assert len(ContentKey(("x" * 24,) * 20).to_index()) == 499
    assert len(ContentKey(("x" * 500,)).to_index()) == 500


def test_namespace_is_not_called_dot() -> None:
    with pytest.raises(RefusedError, match="must not be"):
        check_namespace_key(ContentKey.of("a", "."))


def test_ancestors_come_innermost_first() -> None:
    assert [str(key) for key in ContentKey.of("a", "b", "c").ancestors()] == ["a.b", "a"]


@pytest.mark.parametrize("data", [b"", b"a\0", b"\xff", b"a\x01b"])
def test_index_bytes_that_are_no_key_are_unreadable(data: bytes) -> None:
    with pytest.raises(CorruptionError):
        ContentKey.from_index(data)


def test_string_is_not_taken_for_a_list_of_letters() -> None:
    with pytest.raises(RefusedError, match="'abc' is one string"):
        ContentKey("abc")  # type: ignore[arg-type]
