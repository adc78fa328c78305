"""Pages to the byte: every release to come must read these, and write them."""

from __future__ import annotations

import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.errors import CorruptionError
from headwater.index import KEY_BYTES, Change, IndexValue
from headwater.index.index_nodes import EMPTY, EntryPage, PageRows, id_row
from headwater.store import ObjectId

keys = st.binary(min_size=1, max_size=6) | st.lists(st.sampled_from([b"a", b"\0", b"\xff", b"word/"]), min_size=1).map(b"".join)
ids = st.none() | st.sampled_from([1, 2, 1 << 62]).map(ObjectId) | st.integers(1, (1 << 63) - 1).map(ObjectId)
values = st.builds(IndexValue, ids, st.sampled_from([b"", b"same"]) | st.binary(max_size=40))
entries = st.dictionaries(keys, values, max_size=40)
edits = st.dictionaries(keys, st.none() | values, max_size=20)
ENTRIES = {
    b"a/one": IndexValue(ObjectId(0x0123456789AB0001), b"xy"),
    b"a/two": IndexValue(ObjectId(0x0123456789AB0203), b"xz"),
    b"b": IndexValue(ObjectId(0x0123456789AB0405), b"xx"),
}


def page_of(content: dict[bytes, IndexValue], *, packed: bool) -> EntryPage:
    items = sorted(content.items())
    rows = PageRows(
        [key for key, _ in items], [id_row(value.object_id) for _, value in items], [value.data for _, value in items]
    )
    return EntryPage.made(rows, packed=packed)


def content_of(page: EntryPage) -> list[Change]:
    return EntryPage(page.raw).between(0, page.count)


def after(content: dict[bytes, IndexValue], changes: dict[bytes, IndexValue | None]) -> dict[bytes, IndexValue]:
    return {key: value for key, value in (content | changes).items() if value is not None}


def test_page_of_plain_keys_is_as_documented() -> None:
    expected = bytes.fromhex(
        "02 00 00000003 00000011"  # format 2, plain keys, three entries, 17 bytes of keys
        "00000008 00000000 0123456789ab0001 0123456789ab0203 0123456789ab0405"  # ids: 8 bytes each, which share none
        "00000002 00000000 7879 787a 7878"  # data: 2 bytes each
        "0005 0005 0001 612f6f6e65 612f74776f 62"  # the lengths of the keys, the keys
    )
    assert page_of(ENTRIES, packed=False).raw == expected
    assert content_of(EntryPage(expected)) == sorted(ENTRIES.items())


def test_page_of_packed_keys_is_as_documented() -> None:
    raw = page_of(ENTRIES, packed=True).raw
    columns = bytes.fromhex(
        "00000008 00000006 0123456789ab 0001 0203 0405"  # ids: 8 bytes each, of which all share the first 6
        "00000002 00000001 78 79 7a 78"  # data: 2 bytes each, of which all share the first
    )
    first = int.from_bytes(raw[10 + len(columns) :][:4], "big")
    parts = raw[14 + len(columns) :]

    assert raw[:6] == bytes.fromhex("02 01 00000003")
    assert raw[10:].startswith(columns)
    assert int.from_bytes(raw[6:10], "big") == 4 + len(parts)
    assert zlib.decompress(parts[:first], -15) == bytes([0, 2, 0, 5, 3, 1])  # shared with the key before; what follows
    assert zlib.decompress(parts[first:], -15) == b"a/one" + b"two" + b"b"


def test_data_of_different_lengths_come_with_their_lengths() -> None:
    content = {b"k": IndexValue(None, b"long"), b"l": IndexValue(None, b""), b"m": IndexValue(None, b"x")}
    expected = bytes.fromhex("ffffffff 00000004 00000000 00000001") + b"longx" + bytes.fromhex("0001 0001 0001") + b"klm"

    assert page_of(content, packed=False).raw.endswith(expected)


def test_lengths_beyond_255_take_two_bytes() -> None:
    raw = page_of({b"k" * 300: IndexValue(None), b"k" * 299 + b"l": IndexValue(None)}, packed=True).raw
    first = int.from_bytes(raw[34:38], "big")  # behind the header and columns that share all their bytes

    assert raw[10:34] == bytes.fromhex("00000008 00000008") + bytes(8) + bytes(8)
    assert zlib.decompress(raw[38 : 38 + first], -15) == bytes.fromhex("0000 012b 012c 0001")


def test_removal_has_all_bits_of_its_id_set() -> None:
    page = EntryPage(EMPTY).changed([(b"gone", None)], keeps_removals=True)

    assert page.raw[18:26] == b"\xff" * 8
    assert content_of(page) == [(b"gone", None)]


def test_empty_page_has_empty_columns() -> None:
    assert bytes.fromhex("02 00 00000000 00000000") + bytes(16) == EMPTY


def test_every_sixteenth_packed_key_shares_nothing() -> None:
    raw = page_of({b"same/%02d" % number: IndexValue(None) for number in range(17)}, packed=True).raw
    shared = zlib.decompressobj(-15).decompress(raw[38:])[:17]

    assert [at for at, count in enumerate(shared) if count == 0] == [0, 16]


@given(entries, edits, st.booleans())
def test_changed_page_is_the_page_of_what_it_holds_then(content: dict[bytes, IndexValue], changes: Any, packed: bool) -> None:
    changed = page_of(content, packed=packed).changed(sorted(changes.items()))

    assert changed.raw == page_of(after(content, changes), packed=packed).raw


@given(entries, edits)
def test_removals_are_kept_where_something_lies_deeper(content: dict[bytes, IndexValue], changes: Any) -> None:
    changed = page_of(content, packed=False).changed(sorted(changes.items()), keeps_removals=True)

    assert content_of(changed) == sorted((content | changes).items())


@given(entries, keys, st.booleans())
def test_key_is_found_where_it_is_or_would_be(content: dict[bytes, IndexValue], key: bytes, packed: bool) -> None:
    page = page_of(content, packed=packed)
    ordered = sorted({*content, key})
    at = page.position(key)

    assert (at if at >= 0 else -1 - at) == ordered.index(key)
    assert (at >= 0) == (key in content)


@given(st.dictionaries(keys, values, min_size=1, max_size=6), st.booleans())
def test_page_cut_anywhere_is_unreadable(content: dict[bytes, IndexValue], packed: bool) -> None:
    raw = page_of(content, packed=packed).raw
    for length in range(len(raw)):
        with pytest.raises(CorruptionError):
            content_of(EntryPage(raw[:length]))


@given(st.dictionaries(keys, values, min_size=1, max_size=10), st.booleans(), st.data())
def test_page_with_another_byte_reads_or_is_unreadable(content: dict[bytes, IndexValue], packed: bool, draw: Any) -> None:
    """What it holds then nobody can tell: that is for the checksum of the envelope around it."""
    raw = bytearray(page_of(content, packed=packed).raw)
    raw[draw.draw(st.integers(0, len(raw) - 1))] ^= draw.draw(st.integers(1, 255))
    try:
        page = EntryPage(bytes(raw))
        page.between(0, page.count)
    except CorruptionError:
        return


@pytest.mark.parametrize("packed", [False, True])
def test_key_may_have_any_byte_up_to_its_limit(packed: bool) -> None:
    content = {bytes([byte]) * KEY_BYTES: IndexValue(None, bytes([byte])) for byte in range(256)}

    assert dict(content_of(page_of(content, packed=packed))) == content


@pytest.mark.parametrize(("at", "byte", "named"), [(0, 1, "format 1; this release reads 2"), (1, 7, "kind 7")])
def test_another_format_is_named(at: int, byte: int, named: str) -> None:
    with pytest.raises(CorruptionError, match=named):
        EntryPage(EMPTY[:at] + bytes([byte]) + EMPTY[at + 1 :])


def test_keys_that_swell_beyond_what_keys_may_have_are_unreadable() -> None:
    deflater = zlib.compressobj(9, zlib.DEFLATED, -15)
    bomb = deflater.compress(bytes(10_000_000)) + deflater.flush()
    page = page_of({b"a": IndexValue(None)}, packed=True)
    area = (2).to_bytes(4, "big") + b"\3\0" + bomb
    columns = page.raw[10 : len(page.raw) - page.key_bytes]

    with pytest.raises(CorruptionError):
        EntryPage(page.raw[:6] + len(area).to_bytes(4, "big") + columns + area).position(b"a")
