"""The ordered map, held against a sorted dictionary: through commits at tiny limits, and through editors on editors."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shelves import ROOMY, TINY, Shelf, commit, filled, numbered, reopened

from headwater.index import Index, IndexEditor, IndexLimits, IndexValue, StoredIndex, after_prefix
from headwater.store import ObjectId

Content = dict[bytes, IndexValue]
Changes = dict[bytes, IndexValue | None]
pieces = st.sampled_from([b"a", b"b", b"\0", b"\xff", b"longer.word/"])
keys = (
    st.sampled_from(list(numbered(500)))
    | st.binary(min_size=1, max_size=3)
    | st.lists(pieces, min_size=1, max_size=5).map(b"".join)
)
ids = st.none() | st.integers(1, (1 << 63) - 1).map(ObjectId)
values = st.builds(IndexValue, ids, st.binary(max_size=9) | st.just(b"33" * 16) | st.integers(0, 900).map(bytes))
edits = st.dictionaries(keys, st.none() | values, max_size=40)
bounds = st.none() | keys
counts = st.none() | st.integers(0, 9)


@cache
def _large() -> tuple[Shelf, StoredIndex]:
    shelf = Shelf()
    return shelf, filled(shelf, 500, TINY)


@st.composite
def indexes(draw: Any) -> tuple[Index, Content]:
    """An index after some commits and edits, and what a dictionary makes of the same. Every other one begins with lists of stripes."""
    shelf, index, content = Shelf(), Index(), dict[bytes, IndexValue]()
    size = draw(st.sampled_from([TINY, ROOMY, IndexLimits(embedded_bytes=256, stripe_bytes=1024)]))
    if draw(st.booleans()):
        large, stored = _large()
        shelf, content, size = large.copy(), numbered(500), TINY
        index = reopened(shelf, stored)
    for changes in draw(st.lists(edits, min_size=1, max_size=4)):
        index, content = reopened(shelf, commit(shelf, index, changes, size)), applied(content, changes)
    for changes in draw(st.lists(edits, max_size=2)):
        index, content = edited(index, changes), applied(content, changes)
    return index, content


def applied(content: Content, changes: Changes) -> Content:
    return {key: value for key, value in (content | changes).items() if value is not None}


def edited(index: Index, changes: Changes) -> IndexEditor:
    editor = IndexEditor(index)
    for key, value in changes.items():
        if value is None:
            editor.remove(key)
        else:
            editor.put(key, value)
    return editor


@given(indexes(), st.lists(keys, max_size=5))
def test_lookups_are_those_of_a_dictionary(made: tuple[Index, Content], others: list[bytes]) -> None:
    index, content = made
    wanted = [*others, *content]

    assert len(index) == len(content)
    assert index.get_many(wanted) == {key: content[key] for key in wanted if key in content}
    assert [index.get(key) for key in wanted] == [content.get(key) for key in wanted]
    assert [key in index for key in others] == [key in content for key in others]


@given(indexes(), bounds, bounds, st.booleans(), counts)
def test_ranges_are_those_of_a_sorted_dictionary(
    made: tuple[Index, Content], start: bytes | None, end: bytes | None, reverse: bool, limit: int | None
) -> None:
    index, content = made
    wanted = [
        entry for entry in sorted(content.items()) if (start is None or entry[0] >= start) and (end is None or entry[0] < end)
    ]
    expected = (wanted[::-1] if reverse else wanted)[:limit]

    assert list(index.range(start, end, reverse=reverse, limit=limit)) == expected
    assert list(index.keys(start, end, reverse=reverse, limit=limit)) == [key for key, _ in expected]


@given(indexes(), st.binary(max_size=2) | keys, bounds, st.booleans(), counts)
def test_prefixes_are_read_in_both_directions_after_any_key(
    made: tuple[Index, Content], prefix: bytes, after: bytes | None, reverse: bool, limit: int | None
) -> None:
    index, content = made
    wanted = sorted(
        (key, value)
        for key, value in content.items()
        if key.startswith(prefix) and (after is None or (key < after if reverse else key > after))
    )
    expected = (wanted[::-1] if reverse else wanted)[:limit]

    assert list(index.prefix(prefix, after=after, reverse=reverse, limit=limit)) == expected


@given(indexes(), edits)
def test_changes_are_what_differs_from_the_base(made: tuple[Index, Content], changes: Changes) -> None:
    index, content = made
    after = applied(content, changes)
    differing = sorted(key for key in {*content, *after} if content.get(key) != after.get(key))

    assert edited(index, changes).changes() == [(key, after.get(key)) for key in differing]


@given(indexes(), edits, edits)
def test_absorbed_edits_read_as_if_made_at_once(made: tuple[Index, Content], first: Changes, second: Changes) -> None:
    index, content = made
    lower, at_once = edited(index, first), edited(edited(index, first)._base, first | second)
    lower.absorb(edited(lower, second))

    assert len(lower) == len(applied(applied(content, first), second))
    assert lower.changes() == at_once.changes()
    assert list(lower.range()) == list(at_once.range())


@pytest.mark.parametrize(("prefix", "after"), [(b"a", b"b"), (b"a\xff", b"b"), (b"\xff\xff", None), (b"", None)])
def test_end_of_a_prefix_is_the_smallest_key_beyond(prefix: bytes, after: bytes | None) -> None:
    assert after_prefix(prefix) == after
