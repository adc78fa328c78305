"""The ordered map, held against a sorted dictionary."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.errors import RefusedError, UnreadableError
from headwater.index import KEY_BYTES, Index, IndexEditor, Value, after_prefix
from headwater.index.layout import BLOCK, EMPTY, packed
from headwater.store import ObjectId

pieces = st.sampled_from([b"a", b"b", b"\0", b"\xff"])
keys = st.binary(min_size=1, max_size=6) | st.lists(pieces, min_size=1, max_size=6).map(b"".join)
values = st.builds(Value, st.none() | st.integers(1, (1 << 63) - 1).map(ObjectId), st.binary(max_size=200))
entries = st.dictionaries(keys, values, max_size=60)
many_entries = st.dictionaries(keys, values, min_size=20, max_size=60)
edits = st.lists(st.tuples(keys, st.none() | values), max_size=40)
bounds = st.none() | keys
limits = st.none() | st.integers(0, 9)

GOLDEN = bytes.fromhex(
    "01 00000003 00000001 00000000"  # format 1, three entries, one restart point, at the first of them
    "00 05 612f6f6e65 0000000000000000 00"  # a/one: shares nothing, points to nothing, no data
    "02 03 74776f 0123456789abcdef 02 beef"  # a/two: shares "a/", points to an object
    "00 01 ff 0000000000000001 8101" + "78" * 129  # ff: 129 bytes of data, whose length takes two bytes
)
GOLDEN_ENTRIES = [
    (b"a/one", Value(None)),
    (b"a/two", Value(ObjectId(0x0123456789ABCDEF), b"\xbe\xef")),
    (b"\xff", Value(ObjectId(1), b"x" * 129)),
]


def make(content: dict[bytes, Value]) -> Index:
    return Index(packed(sorted(content.items())))


def edit(content: dict[bytes, Value], changes: list[tuple[bytes, Value | None]]) -> tuple[IndexEditor, dict[bytes, Value]]:
    """The editor after some edits, and what a dictionary makes of the same edits."""
    editor, model = IndexEditor(make(content)), dict(content)
    for key, value in changes:
        if value is None:
            assert editor.remove(key) == (model.pop(key, None) is not None)
        else:
            assert editor.put(key, value) == (key not in model)
            model[key] = value
    return editor, model


def expected(model: dict[bytes, Value], *, reverse: bool, limit: int | None) -> list[tuple[bytes, Value]]:
    return sorted(model.items(), reverse=reverse)[:limit]


@given(entries, edits, keys)
def test_lookups_are_those_of_a_dictionary(content: dict[bytes, Value], changes: list[Any], key: bytes) -> None:
    editor, model = edit(content, changes)
    for index in (editor, Index(editor.packed())):
        assert {k: index.get(k) for k in [*model, key]} == {k: model.get(k) for k in [*model, key]}
        assert index.get_many([*content, key]) == {k: model[k] for k in [*content, key] if k in model}
        assert (key in index, len(index)) == (key in model, len(model))


@given(entries, edits, bounds, bounds, st.booleans(), limits)
def test_ranges_are_those_of_a_sorted_dictionary(
    content: dict[bytes, Value], changes: list[Any], start: bytes | None, end: bytes | None, reverse: bool, limit: int | None
) -> None:
    editor, model = edit(content, changes)
    wanted = {k: v for k, v in model.items() if (start is None or k >= start) and (end is None or k < end)}
    for index in (editor, Index(editor.packed())):
        assert list(index.range(start, end, reverse=reverse, limit=limit)) == expected(wanted, reverse=reverse, limit=limit)


@given(entries, edits, st.binary(max_size=3), bounds, st.booleans(), limits)
def test_prefixes_are_read_in_both_directions_after_any_key(
    content: dict[bytes, Value], changes: list[Any], prefix: bytes, after: bytes | None, reverse: bool, limit: int | None
) -> None:
    editor, model = edit(content, changes)
    wanted = {
        k: v for k, v in model.items() if k.startswith(prefix) and (after is None or (k < after if reverse else k > after))
    }
    for index in (editor, Index(editor.packed())):
        found = list(index.prefix(prefix, after=after, reverse=reverse, limit=limit))
        assert found == expected(wanted, reverse=reverse, limit=limit)


@given(entries, edits)
def test_changes_are_what_differs_from_the_base(content: dict[bytes, Value], changes: list[Any]) -> None:
    editor, model = edit(content, changes)
    differing = sorted(k for k in {*content, *model} if content.get(k) != model.get(k))

    assert editor.changes() == [(k, model.get(k)) for k in differing]


@given(entries, edits)
def test_equal_content_has_equal_bytes(content: dict[bytes, Value], changes: list[Any]) -> None:
    editor, model = edit(content, changes)

    assert editor.packed() == packed(sorted(model.items()))


@given(many_entries, st.data())
def test_truncated_bytes_are_unreadable_and_never_a_shorter_index(content: dict[bytes, Value], draw: Any) -> None:
    data = packed(sorted(content.items()))
    cut = data[: draw.draw(st.integers(0, len(data) - 1))]
    with pytest.raises(UnreadableError):
        list(Index(cut).range())


@given(many_entries, keys, st.data())
def test_a_lookup_in_truncated_bytes_is_right_or_unreadable(content: dict[bytes, Value], key: bytes, draw: Any) -> None:
    data = packed(sorted(content.items()))
    cut = data[: draw.draw(st.integers(0, len(data) - 1))]
    try:
        found = Index(cut).get(key)
    except UnreadableError:
        return

    assert found == content.get(key)


def test_the_format_is_as_documented() -> None:
    assert packed(GOLDEN_ENTRIES) == GOLDEN
    assert list(Index(GOLDEN).range()) == GOLDEN_ENTRIES


def test_an_empty_index_is_its_header() -> None:
    assert bytes.fromhex("01" + "00" * 8) == EMPTY
    assert (len(Index()), list(Index().range()), list(Index().range(reverse=True)), Index().get(b"x")) == (0, [], [], None)


def test_every_sixteenth_key_shares_nothing() -> None:
    data = packed([(b"same/%02d" % number, Value(None)) for number in range(BLOCK + 1)])

    assert data.endswith(b"\x00\x07same/16" + bytes(9))


def test_a_lookup_decodes_one_block() -> None:
    index = make({b"%04d" % number: Value(None) for number in range(1000)})
    index.get(b"0500")

    assert list(index._blocks) == [500 // BLOCK]


def test_another_format_is_named() -> None:
    with pytest.raises(UnreadableError, match="format 7"):
        Index(b"\x07" + EMPTY[1:])


@pytest.mark.parametrize("size", [0, KEY_BYTES + 1])
def test_a_key_of_an_impossible_size_is_refused(size: int) -> None:
    editor = IndexEditor(Index())
    with pytest.raises(RefusedError, match=f"{size} bytes: 1 to 500"):
        editor.put(b"k" * size, Value(None))

    assert len(editor) == 0


def test_any_byte_is_legal_in_a_key_up_to_its_limit() -> None:
    content = {bytes([byte]) * KEY_BYTES: Value(None, bytes([byte])) for byte in range(256)}

    assert dict(make(content).range()) == content


def test_putting_the_same_value_again_is_no_change() -> None:
    editor = IndexEditor(make({b"a": Value(None, b"1")}))
    editor.put(b"a", Value(None, b"2"))
    editor.put(b"a", Value(None, b"1"))

    assert editor.changes() == []


def test_a_range_being_read_is_not_disturbed_by_edits() -> None:
    editor = IndexEditor(make({b"a": Value(None), b"c": Value(None)}))
    editor.put(b"b", Value(None))
    reading = editor.range()
    next(reading)
    editor.remove(b"b")
    editor.put(b"d", Value(None))

    assert [key for key, _ in reading] == [b"b", b"c"]


def test_the_base_of_an_editor_never_changes() -> None:
    base = make({b"a": Value(None)})
    IndexEditor(base).remove(b"a")

    assert b"a" in base


@pytest.mark.parametrize(("prefix", "after"), [(b"a", b"b"), (b"a\xff", b"b"), (b"\xff\xff", None), (b"", None)])
def test_the_end_of_a_prefix_is_the_smallest_key_beyond(prefix: bytes, after: bytes | None) -> None:
    assert after_prefix(prefix) == after
