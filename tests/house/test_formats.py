"""What docs/reference/formats.md says, done by hand: these bytes must be understood, and written, by every release to come."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import TypeVar

import msgspec
import pytest

from fake_clock import FakeClock
from headwater import Settings, Store, open_store
from headwater.catalogs import ContentKey
from headwater.commits import Commit, commit_change, read_commit, read_head
from headwater.index import Index, IndexContainer, IndexEditor, IndexLimits, IndexValue, StoredIndex
from headwater.store import SYSTEM_KEY, ObjectId, RealmId, RealmKey, RealmStore, StoredObject, fixed_id, id_of, id_text, id_time

T = TypeVar("T", bound=StoredObject)
ID = id_of("00000000fa001005")
COMMIT = {"seq": 3, "tail": [7, 6], "time": 1_780_000_000_000_000, "message": "by hand"}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def store(file: Path, settings: Settings, clock: FakeClock) -> Iterator[Store]:
    with open_store(f"sqlite:///{file}", settings=settings, clock=clock) as opened:
        yield opened


@pytest.fixture
def rows(store: Store) -> RealmStore:
    return store.rows(RealmId("acme"), RealmKey(77))


def envelope(body: bytes, *, flags: int) -> bytes:
    checked = ID.to_bytes(8, "big") + b"commit" + bytes([flags]) + body
    return bytes([1, flags]) + zlib.crc32(checked).to_bytes(4, "big") + body


def number(value: int) -> bytes:
    return value.to_bytes(4, "big")


def stored_index(entries: dict[bytes, IndexValue], limits: IndexLimits) -> StoredIndex:
    editor = IndexEditor(Index())
    for key, value in entries.items():
        editor.put(key, value)
    return editor.stored(lambda n: [ObjectId(ID + 1 + at) for at in range(n)], limits)


def packed_keys(raw: bytes) -> tuple[bytes, bytes]:
    first = 4 + int.from_bytes(raw[:4], "big")
    return zlib.decompress(raw[4:first], -15), zlib.decompress(raw[first:], -15)


class StripesOnly:
    """Where the stripes of an index are, by id."""

    def __init__(self, stripes: dict[ObjectId, StoredObject]) -> None:
        self._stripes = stripes

    def read_many(self, object_ids: Sequence[ObjectId], cls: type[T]) -> list[T | None]:
        return [stripe for object_id in object_ids if isinstance(stripe := self._stripes[object_id], cls)]


def put_by_hand(file: Path, value: bytes) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("INSERT INTO objs VALUES (77, ?, 0, 'commit', 0, NULL, 1, ?)", (ID, value))


def test_id_is_41_bits_time_10_node_12_sequence() -> None:
    assert int(ID) == 1000 << 22 | 1 << 12 | 5
    assert id_time(ID) == 1_740_787_200_000_000 + 1000 * 1000
    assert id_text(ID) == "00000000fa001005"


def test_fixed_ids_are_where_the_page_says() -> None:
    assert (fixed_id(0, 9), fixed_id(2)) == (9 << 12 | 1, 2 << 22 | 1)


def test_plain_envelope_is_read(rows: RealmStore, file: Path) -> None:
    put_by_hand(file, envelope(msgspec.msgpack.encode(COMMIT), flags=0))

    assert rows.read_object(ID, Commit) == msgspec.convert(COMMIT, Commit)


def test_compressed_envelope_is_read(rows: RealmStore, file: Path) -> None:
    long = COMMIT | {"message": "by hand " * 100}
    put_by_hand(file, envelope(zlib.compress(msgspec.msgpack.encode(long)), flags=1))

    assert rows.read_object(ID, Commit) == msgspec.convert(long, Commit)


def test_fields_of_a_newer_release_are_ignored(rows: RealmStore, file: Path) -> None:
    put_by_hand(file, envelope(msgspec.msgpack.encode(COMMIT | {"later": [1, 2]}), flags=0))

    assert rows.read_object(ID, Commit) == msgspec.convert(COMMIT, Commit)


def test_object_is_written_as_the_page_says(rows: RealmStore, file: Path) -> None:
    rows.write_objects([(ID, msgspec.convert(COMMIT, Commit))])

    with closing(sqlite3.connect(file)) as connection:
        found = connection.execute("SELECT realm, id, part, type, token, parts, value FROM objs WHERE realm = 77").fetchall()
    assert found == [(77, ID, 0, "commit", None, 1, envelope(msgspec.msgpack.encode(COMMIT), flags=0))]


def test_changes_of_an_index_are_written_as_the_page_says() -> None:
    stored = stored_index(
        {b"sales": IndexValue(ID, b"xy"), b"sales.orders": IndexValue(None, b"")},
        IndexLimits(embedded_bytes=999, stripe_bytes=999),
    )

    header = b"\2\0" + number(2) + number(2 * 2 + 5 + 12)
    ids = number(8) + number(0) + ID.to_bytes(8, "big") + bytes(8)
    data = b"\xff\xff\xff\xff" + number(2) + number(0) + b"xy"
    keys = b"\0\5\0\x0c" + b"sales" + b"sales.orders"
    assert stored.container == IndexContainer(2, header + ids + data + keys)


def test_stripe_and_its_parent_are_written_as_the_page_says() -> None:
    keys = [b"key%02d" % at for at in range(17)]
    stored = stored_index({key: IndexValue(ID, b"xy") for key in keys}, IndexLimits(embedded_bytes=64, stripe_bytes=999))
    ((stripe_id, stripe),) = stored.objects
    page = msgspec.msgpack.decode(msgspec.msgpack.encode(stripe))["entries"]

    ids, data = number(8) + number(8) + ID.to_bytes(8, "big"), number(2) + number(2) + b"xy"
    assert page.startswith(b"\2\1" + number(17))
    assert page[10:].startswith(ids + data)
    shared = [0, *[4] * 9, 3, *[4] * 5, 0]
    rest = [key[count:] for key, count in zip(keys, shared, strict=True)]
    assert packed_keys(page[10 + len(ids + data) :]) == (bytes(shared) + bytes(map(len, rest)), b"".join(rest))

    parent = stored.container.spilled
    ids, data = number(8) + number(8) + stripe_id.to_bytes(8, "big"), number(4) + number(4) + number(len(page))
    assert (stored.container.length, stored.container.levels) == (17, 1)
    assert parent.startswith(b"\2\1" + number(1))
    assert parent[10:].startswith(ids + data)
    assert packed_keys(parent[10 + len(ids + data) :]) == (b"\0\0", b"")


def test_removal_hides_what_lies_deeper() -> None:
    limits = IndexLimits(embedded_bytes=999, stripe_bytes=999)
    spilled = stored_index({b"a": IndexValue(ID), b"b": IndexValue(ID)}, IndexLimits(embedded_bytes=1, stripe_bytes=999))
    stripe_id, stripe = spilled.objects[0]
    shelf = StripesOnly({stripe_id: stripe})
    editor = IndexEditor(Index(spilled.container, shelf))
    editor.remove(b"a")
    embedded = editor.stored(lambda n: [ID] * n, limits).container.embedded

    assert embedded == b"\2\0" + number(1) + number(3) + number(8) + number(0) + b"\xff" * 8 + number(0) * 2 + b"\0\1a"


def test_reference_is_written_as_the_page_says(rows: RealmStore, file: Path) -> None:
    rows.ensure_reference("catalogs")
    first = commit_change(rows, "catalogs", lambda tx: tx.index("by-name").put(b"a", IndexValue(None))).commit_id
    second = commit_change(rows, "catalogs", lambda tx: tx.index("by-name").put(b"b", IndexValue(None))).commit_id
    assert first is not None

    with closing(sqlite3.connect(file)) as connection:
        statement = "SELECT name, pointer, recent, moves, deleted FROM refs WHERE realm = 77"
        found = connection.execute(statement).fetchall()
    assert found == [("catalogs", second, first.to_bytes(8, "big"), b"", None)]


def test_commit_tells_what_changed_and_what_holds(rows: RealmStore) -> None:
    rows.ensure_reference("catalogs")
    commit_change(rows, "catalogs", lambda tx: tx.index("by-name").put(b"a", IndexValue(None, b"1")), message="one")
    commit_change(rows, "catalogs", lambda tx: tx.index("by-name").put(b"b", IndexValue(None, b"2")), message="two")

    found = read_head(rows, "catalogs")
    assert found is not None
    plain = msgspec.msgpack.decode(msgspec.msgpack.encode(found.commit))
    assert plain["operations"] == [{"index": "by-name", "key": b"b", "data": b"2"}]
    container = msgspec.convert(plain["indexes"]["by-name"], IndexContainer)
    assert (container.length, container.levels, container.spilled) == (2, 0, b"")
    assert list(Index(container).range()) == [(b"a", (None, b"1")), (b"b", (None, b"2"))]


def test_inner_member_is_read_as_the_page_says(rows: RealmStore, file: Path) -> None:
    rows.ensure_reference("main")
    commit_change(rows, "main", lambda tx: tx.index("things").put(b"a", IndexValue(None, b"1")))
    base = commit_change(rows, "main", lambda tx: tx.index("things").put(b"b", IndexValue(None, b"2"))).commit_id
    first = rows.new_id()
    put = {"index": "things", "key": b"c", "data": b"3"}
    outer = {"seq": 3, "tail": [base], "time": 1, "operations": [put], "base": base, "depth": 1}
    inner = {"seq": 4, "tail": [first, base], "time": 2, "base": base, "depth": 2}
    removal = {"index": "things", "key": b"a", "removed": True}
    rows.write_objects([(first, msgspec.convert(outer, Commit))])
    put_by_hand(file, envelope(msgspec.msgpack.encode(inner | {"operations": [removal]}), flags=0))

    assert list(read_commit(rows, ID).index("things").range()) == [(b"b", (None, b"2")), (b"c", (None, b"3"))]


def test_content_key_is_its_elements_joined_by_a_zero_byte() -> None:
    assert ContentKey.of("sales", "größe").to_index() == "sales\0größe".encode()


def test_system_realm_has_key_1() -> None:
    assert SYSTEM_KEY == 1
