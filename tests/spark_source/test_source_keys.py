"""Conditions on texts of content keys, as ranges of the index: never a key too few."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.catalogs import ContentKey
from headwater_workers.pipeline.source.pushdown import KeyRange, of_prefix, of_text, of_texts_between

LETTERS = "aZ.\\-"
"""What sorts before a dot, between a dot and a backslash, and behind both; few and short, so that texts meet."""
KEYS = st.lists(st.text(LETTERS, min_size=1, max_size=2), min_size=1, max_size=3).map(lambda parts: ContentKey(tuple(parts)))
TEXTS = st.text(LETTERS, max_size=4) | KEYS.map(str)


@given(KEYS, TEXTS)
def test_prefix_range_has_its_keys_and_tells_of_others(key: ContentKey, text: str) -> None:
    found = of_prefix(text)

    begins = str(key).startswith(text)
    assert found.has(key.to_index()) or not begins
    assert begins or not (found.is_exact and found.has(key.to_index()))


@given(KEYS, TEXTS)
def test_text_range_has_its_key_and_tells_of_others(key: ContentKey, text: str) -> None:
    found = of_text(text)

    assert found.has(key.to_index()) or str(key) != text
    assert str(key) == text or not (found.is_exact and found.has(key.to_index()))


@pytest.mark.long
@settings(max_examples=1000)
@given(KEYS, TEXTS | st.none(), TEXTS | st.none())
def test_range_between_two_texts_has_all_keys_between_them(key: ContentKey, low: str | None, high: str | None) -> None:
    is_between = (low is None or low <= str(key)) and (high is None or str(key) <= high)

    assert of_texts_between(low, high).has(key.to_index()) or not is_between


def test_range_within_a_namespace_reads_no_more_than_that() -> None:
    assert of_texts_between("sales.a", "sales.c") == KeyRange(b"sales\0a", b"sales\0c\0", False)


def test_empty_text_is_no_key() -> None:
    assert not of_text("").has(b"a")


def test_control_character_is_left_to_spark() -> None:
    assert not of_prefix("sales\0o").is_exact
