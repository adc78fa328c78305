"""Rows that were truncated, altered, mixed up or made by strangers: an error with realm, id and type, and never wrong data."""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable, Iterator

import msgspec
import pytest
from notes import Counter, Note

from fake_clock import FakeClock
from headwater.errors import CorruptionError, RefusedError
from headwater.settings import Settings
from headwater.store import ROW_BYTES, ObjectId, ObjectRow, RealmId, RealmKey, RealmStore, Store, StoredObject, UnknownObject
from headwater.store.backends.memory import MemoryBackend
from headwater.store.stored_objects import MOST_PARTS, OBJECT_BYTES, decode_object, encode_object
from specimens import reference

ID = ObjectId(0x0123456789ABCDEF)
PLAIN = Note(text="hello", number=5, data=b"\0\xff", more={"a": [1, None, 2.5]})
PACKED = Note(text="hello " * 200, number=-1)
GOLDEN = {
    "plain": (
        PLAIN,
        "010024d293e284a474657874a568656c6c6fa66e756d62657205a464617461c40200ffa46d6f726581a1619301c0cb4004000000000000",
    ),
    "an integer beyond 64 bits": (Note(number=1 << 70), "01001563559d81a66e756d626572c70901400000000000000000"),
}
both = pytest.mark.parametrize("note", [PLAIN, PACKED], ids=["plain", "compressed"])


@pytest.fixture
def rows(settings: Settings, clock: FakeClock) -> Iterator[RealmStore]:
    """A realm in memory, whose rows are easily got at."""
    with Store(MemoryBackend(), url="memory://", settings=settings, clock=clock) as store:
        yield store.rows(RealmId("acme"), RealmKey(77))


@pytest.fixture
def big() -> Note:
    """An object of three rows that does not compress."""
    return Note(data=random.Random(1).randbytes(2 * ROW_BYTES + 100))


def envelope(name: str, body: bytes, *, flags: int = 0, version: int = 1) -> bytes:
    """As docs/reference/formats.md has it, done by hand."""
    checked = ID.to_bytes(8, "big") + name.encode() + bytes([flags]) + body
    return bytes([version, flags]) + zlib.crc32(checked).to_bytes(4, "big") + body


def opened(value: bytes, name: str = "test-note", cls: type[StoredObject] = Note) -> StoredObject:
    return decode_object(ID, name, value, cls, realm="acme")


def stored(rows: RealmStore, part: int = 0) -> ObjectRow:
    [row] = rows.store.backend.read_objects(rows.key, [(ID, part)])
    assert row is not None
    return row


def put(rows: RealmStore, *changed: ObjectRow) -> None:
    """Each row as it is, whatever belongs to it: row by row, because a bulk write keeps parts together."""
    for row in changed:
        rows.delete_unchanged(
            [key for batch in rows.scan_objects() for key in batch if (key.id, key.part) == (row.id, row.part)]
        )
        rows.store.backend.insert_object(row)


@both
def test_envelope_cut_at_any_length_is_noticed(note: Note) -> None:
    _, whole = encode_object(ID, note)
    for length in range(len(whole)):
        with pytest.raises(CorruptionError):
            opened(whole[:length])


@both
def test_flipped_bit_is_noticed_anywhere(note: Note) -> None:
    _, whole = encode_object(ID, note)
    for bit in range(8 * len(whole)):
        altered = bytearray(whole)
        altered[bit // 8] ^= 1 << bit % 8
        with pytest.raises(CorruptionError):
            opened(bytes(altered))


@both
def test_bytes_behind_an_envelope_are_noticed(note: Note) -> None:
    with pytest.raises(CorruptionError, match="altered"):
        opened(encode_object(ID, note)[1] + b"\0")


def test_bytes_behind_the_body_are_noticed_despite_the_checksum() -> None:
    with pytest.raises(CorruptionError, match="trailing"):
        opened(envelope("test-note", msgspec.msgpack.encode(PLAIN) + b"\xc0"))


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda packed: packed + b"more", "4 bytes stand behind"),
        (lambda packed: packed[:-5], "end too early"),
        (lambda packed: b"no zlib at all", "incorrect header"),
    ],
    ids=["more", "less", "foreign"],
)
def test_compressed_bytes_that_are_not_one_whole_are_noticed(spoil: Callable[[bytes], bytes], reason: str) -> None:
    with pytest.raises(CorruptionError, match=reason):
        opened(envelope("test-note", spoil(zlib.compress(msgspec.msgpack.encode(PLAIN))), flags=1))


@pytest.mark.long
def test_bytes_that_swell_beyond_an_objects_bound_are_refused() -> None:
    swollen = zlib.compressobj(9)
    bomb = b"".join(swollen.compress(bytes(1 << 20)) for _ in range((OBJECT_BYTES >> 20) + 1)) + swollen.flush()
    assert len(bomb) < 350 * 1024
    with pytest.raises(CorruptionError, match=f"more than {OBJECT_BYTES} bytes"):
        opened(envelope("test-note", bomb, flags=1))


def test_object_beyond_the_largest_is_refused_before_anything_is_written(rows: RealmStore) -> None:
    with pytest.raises(RefusedError, match=f"may have {OBJECT_BYTES}"):
        rows.write_objects([(ObjectId(5), Note()), (ID, Note(data=bytes(OBJECT_BYTES)))])

    assert rows.is_empty()


def test_flags_of_the_future_are_named() -> None:
    with pytest.raises(CorruptionError, match="flags 2; this release knows 241"):
        opened(envelope("test-note", msgspec.msgpack.encode(PLAIN), flags=2))


def test_format_of_the_future_is_named() -> None:
    with pytest.raises(CorruptionError, match="format 2; this release reads 1"):
        opened(envelope("test-note", msgspec.msgpack.encode(PLAIN), version=2))


@pytest.mark.parametrize("name", ["", "x", "Note", "a" * 33, "test note", "test\0", "\ud800x"])
def test_row_of_an_impossible_type_is_not_a_newer_releases(name: str) -> None:
    value = envelope(name, b"\x80") if name != "\ud800x" else envelope("ab", b"\x80")
    with pytest.raises(CorruptionError, match=r"realm 'acme'"):
        opened(value, name, StoredObject)


@pytest.mark.parametrize("name", ["ab", "a" * 32, "x-9"])
def test_type_of_a_newer_release_has_2_to_32_characters(name: str) -> None:
    assert opened(envelope(name, b"\x80"), name, StoredObject) == UnknownObject(name=name, body=b"\x80")


def test_row_whose_type_was_altered_is_unreadable(rows: RealmStore) -> None:
    rows.write_objects([(ID, PLAIN)])
    put(rows, msgspec.structs.replace(stored(rows), type="test-counter"))

    with pytest.raises(CorruptionError, match=r"0123456789abcdef of type 'test-counter' in realm 'acme'.*altered"):
        rows.read_object(ID, StoredObject)


@pytest.mark.parametrize("parts", [-1, 0, 2, MOST_PARTS + 1, 1 << 62])
def test_row_whose_number_of_parts_was_altered_is_unreadable(rows: RealmStore, parts: int) -> None:
    rows.write_objects([(ID, PLAIN)])
    put(rows, msgspec.structs.replace(stored(rows), parts=parts))

    with pytest.raises(CorruptionError, match=r"0123456789abcdef of type 'test-note' in realm 'acme'.* parts"):
        rows.read_object(ID, Note)


def test_object_that_says_too_few_parts_is_unreadable(rows: RealmStore, big: Note) -> None:
    rows.write_objects([(ID, big)])
    for parts in (1, 2):
        put(rows, msgspec.structs.replace(stored(rows), parts=parts))
        with pytest.raises(CorruptionError, match="altered"):
            rows.read_object(ID, Note)


def test_swapped_parts_are_unreadable(rows: RealmStore, big: Note) -> None:
    rows.write_objects([(ID, big)])
    one, two = stored(rows, 1), stored(rows, 2)
    put(rows, msgspec.structs.replace(one, part=2), msgspec.structs.replace(two, part=1))

    with pytest.raises(CorruptionError, match="altered"):
        rows.read_object(ID, Note)


def test_parts_of_two_writings_are_unreadable(rows: RealmStore, big: Note, clock: FakeClock) -> None:
    rows.write_objects([(ID, big)])
    old = stored(rows, 1)
    clock.advance(1)
    rows.write_objects([(ID, msgspec.structs.replace(big, data=big.data[::-1]))])
    put(rows, old)

    with pytest.raises(CorruptionError, match="altered"):
        rows.read_object(ID, Note)


def test_parts_of_two_writings_are_one_object(rows: RealmStore, big: Note, clock: FakeClock) -> None:
    rows.write_objects([(ID, big)])
    old = stored(rows, 1)
    clock.advance(1)
    rows.write_objects([(ID, big)])
    put(rows, old)

    assert rows.read_object(ID, Note) == big


class Overtaken(MemoryBackend):
    """Lets others act between part 0 and the other parts."""

    act: Callable[[], object] | None = None

    def read_objects(self, realm: RealmKey, keys: object) -> list[ObjectRow | None]:
        found = super().read_objects(realm, keys)  # type: ignore[arg-type]
        act, self.act = self.act, None
        if act is not None:
            act()
        return found


@pytest.fixture
def overtaken(settings: Settings, clock: FakeClock) -> Iterator[RealmStore]:
    with Store(Overtaken(), url="memory://", settings=settings, clock=clock) as store:
        yield store.rows(RealmId("acme"), RealmKey(77))


@pytest.mark.parametrize("size", [0, ROW_BYTES + 1, 3 * ROW_BYTES], ids=["one part", "two parts", "four parts"])
def test_object_written_anew_while_read_is_one_or_the_other(
    overtaken: RealmStore, big: Note, clock: FakeClock, size: int
) -> None:
    other = Note(data=random.Random(2).randbytes(size))
    overtaken.write_objects([(ID, big)])
    overtaken.store.cache.clear()
    clock.advance(1)
    overtaken.store.backend.act = lambda: overtaken.write_objects([(ID, other)])  # type: ignore[attr-defined]

    assert overtaken.read_object(ID, Note) == other


def test_object_deleted_while_read_is_missing_and_not_damaged(overtaken: RealmStore, big: Note) -> None:
    keys = overtaken.write_objects([(ID, big)])
    overtaken.store.cache.clear()
    overtaken.store.backend.act = lambda: overtaken.delete_unchanged(keys)  # type: ignore[attr-defined]

    assert overtaken.find_object(ID, Note) is None


def foreign(size: int, *, is_updateable: bool = False) -> UnknownObject:
    """As a newer release may have written it, whose zlib compresses otherwise."""
    body = msgspec.msgpack.encode({"data": random.Random(1).randbytes(size), "zeros": bytes(3000)})
    return UnknownObject(name="from-the-future", body=body, packed=zlib.compress(body, 9), is_updateable=is_updateable)


@pytest.mark.parametrize("size", [10, 2 * ROW_BYTES], ids=["one part", "three parts"])
def test_object_of_an_unknown_type_goes_back_byte_for_byte(rows: RealmStore, size: int) -> None:
    rows.write_objects([(ID, foreign(size))])
    before = [stored(rows, part) for part in range(stored(rows).parts)]
    rows.store.cache.clear()
    read = rows.read_object(ID, StoredObject)
    assert read == foreign(size)
    rows.write_objects([(ID, read)])

    assert [stored(rows, part) for part in range(stored(rows).parts)] == before


def test_updateable_object_of_an_unknown_type_stays_updateable(rows: RealmStore, clock: FakeClock) -> None:
    made = rows.insert_object(ID, foreign(10, is_updateable=True))
    before = stored(rows)
    seen = rows.read_versioned(ID, UnknownObject)
    assert seen == made
    again = rows.update_object(seen, seen.value)

    assert stored(rows) == msgspec.structs.replace(before, token=again.token)
    rows.write_objects([(ID, again.value)])
    assert stored(rows).token not in (None, again.token)
    rows.delete_object(rows.read_versioned(ID, UnknownObject))
    assert rows.is_empty()


def test_immutable_object_of_an_unknown_type_cannot_be_inserted(rows: RealmStore) -> None:
    with pytest.raises(RefusedError, match=r"'from-the-future' are immutable.*'acme'"):
        rows.insert_object(ID, foreign(10))


def test_unknown_type_that_becomes_known_is_read_so(rows: RealmStore) -> None:
    rows.write_objects([(ID, UnknownObject(name="test-counter", body=msgspec.msgpack.encode({"count": 3})))])

    assert rows.read_object(ID, StoredObject) == Counter(count=3)


@pytest.mark.parametrize(("note", "golden"), GOLDEN.values(), ids=GOLDEN)
def test_bytes_of_the_first_release_are_read_and_written(note: Note, golden: str) -> None:
    assert encode_object(ID, note) == ("test-note", bytes.fromhex(golden))
    assert opened(bytes.fromhex(golden)) == note


def test_compressed_bytes_of_the_first_release_are_read() -> None:
    golden = "010150b1dee878016b5a52925a51728b6543466a4e4ebec228391a02a321301a02833f0496e595e626a516fd07005fe9c157"

    assert opened(bytes.fromhex(golden)) == PACKED


@pytest.mark.parametrize("value", [{1: object()}, {"a": "\ud800"}, {(1, 2): 3, 4: {1, object()}}])
def test_object_that_cannot_be_stored_is_refused_with_its_id(rows: RealmStore, value: object) -> None:
    with pytest.raises(RefusedError, match=r"0123456789abcdef of type 'test-note' cannot be stored"):
        rows.write_objects([(ID, Note(more=value))])  # type: ignore[arg-type]

    assert rows.is_empty()


def test_object_that_nobody_could_read_is_refused_with_its_field(rows: RealmStore) -> None:
    with pytest.raises(
        RefusedError, match=r"of type 'test-counter' cannot be stored: Expected `int`, got `str` - at `\$.count`"
    ):
        rows.write_objects([(ID, Counter(count="3"))])  # type: ignore[arg-type]

    assert rows.is_empty()


@pytest.mark.parametrize(("pointer", "version"), [(0, 5), (-1, 5), (7, 0), (None, -1)])
def test_reference_with_numbers_that_nobody_writes_is_unreadable(rows: RealmStore, pointer: int | None, version: int) -> None:
    rows.store.backend.create_reference(reference(realm=rows.key, pointer=pointer, version=version))

    with pytest.raises(CorruptionError, match=r"'main' of realm 'acme' is at version .* the row was altered"):
        rows.find_reference("main")
    with pytest.raises(CorruptionError):
        rows.create_reference("main")
