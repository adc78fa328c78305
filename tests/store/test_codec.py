"""Objects to bytes and back."""

from __future__ import annotations

import pickle
import random
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from notes import Counter, Note, Packed

from headwater.errors import CommitTimeoutError, CorruptionError, RefusedError
from headwater.store import ROW_BYTES, ObjectId, ObjectKey, RealmStore, StoredObject, UnknownObject, object_type
from headwater.store.stored_objects import decode_object, encode_object, object_parts

ID = ObjectId(0x0123456789ABCDEF)
plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(1 << 200), 1 << 200)
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary(max_size=40),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner, max_size=4),
    max_leaves=12,
)
notes = st.builds(
    Note,
    text=st.text(),
    number=st.integers(),
    data=st.binary(max_size=2000),
    more=st.dictionaries(st.text(), plain, max_size=5),
)


def read_back(value: StoredObject) -> StoredObject:
    name, envelope = encode_object(ID, value)
    return decode_object(ID, name, envelope, type(value), realm="acme")


@given(notes)
def test_encoded_object_is_decoded_equal(note: Note) -> None:
    assert read_back(note) == note


@pytest.mark.parametrize("number", [1 << 63, (1 << 64) - 1, 1 << 64, -(1 << 63), -(1 << 63) - 1, 1 << 500])
def test_integer_of_any_size_survives(number: int) -> None:
    note = Note(number=number, data=b"\0\xff", more={"deep": [{"er": number}]})

    assert read_back(note) == note


def test_integer_beyond_64_bits_is_refused_as_a_key() -> None:
    with pytest.raises(RefusedError, match="key"):
        encode_object(ID, Note(more={"deep": {1 << 64: "x"}}))


def test_attributes_that_this_release_does_not_know_are_ignored() -> None:
    newer = UnknownObject(name="test-note", body=msgspec.msgpack.encode({"text": "hello", "invented": {"later": 1}}))
    name, envelope = encode_object(ID, newer)

    assert decode_object(ID, name, envelope, Note, realm="acme") == Note(text="hello")


def test_object_of_an_unknown_type_is_written_back_unchanged(rows: RealmStore) -> None:
    foreign = UnknownObject(name="from-the-future", body=msgspec.msgpack.encode({"text": "x" * 600}))
    rows.write_objects([(ID, foreign)])
    rows.store.cache.clear()
    before = rows.store.backend.read_objects(rows.key, [(ID, 0)])
    rows.write_objects([(ID, rows.read_object(ID, StoredObject))])

    assert rows.read_object(ID, UnknownObject) == foreign
    assert rows.store.backend.read_objects(rows.key, [(ID, 0)]) == before


@given(st.binary(min_size=1, max_size=1500), st.data())
def test_altered_byte_is_noticed_anywhere(data: bytes, draw: Any) -> None:
    name, envelope = encode_object(ID, Note(data=data))
    at = draw.draw(st.integers(0, len(envelope) - 1))
    altered = bytearray(envelope)
    altered[at] ^= draw.draw(st.integers(1, 255))

    with pytest.raises(CorruptionError):
        decode_object(ID, name, bytes(altered), Note, realm="acme")


@given(st.binary(max_size=1500), st.data())
def test_truncation_is_noticed_anywhere(data: bytes, draw: Any) -> None:
    name, envelope = encode_object(ID, Note(data=data))
    with pytest.raises(CorruptionError):
        decode_object(ID, name, envelope[: draw.draw(st.integers(0, len(envelope) - 1))], Note, realm="acme")


def test_unreadable_object_is_named_by_realm_id_and_type() -> None:
    name, envelope = encode_object(ID, Note(text="hello"))
    with pytest.raises(CorruptionError, match=r"0123456789abcdef.*'test-note'.*'acme'"):
        decode_object(ID, name, envelope[:-1], Note, realm="acme")


def test_bytes_under_another_id_are_not_taken_for_that_object() -> None:
    name, envelope = encode_object(ID, Note(text="hello"))
    with pytest.raises(CorruptionError, match="altered"):
        decode_object(ObjectId(ID + 1), name, envelope, Note, realm="acme")


def test_another_envelope_format_is_named() -> None:
    name, envelope = encode_object(ID, Note())
    with pytest.raises(CorruptionError, match="format 9"):
        decode_object(ID, name, b"\x09" + envelope[1:], Note, realm="acme")


def test_body_that_does_not_fit_its_class_is_unreadable() -> None:
    name, envelope = encode_object(ID, UnknownObject(name="test-note", body=msgspec.msgpack.encode({"text": 5})))
    with pytest.raises(CorruptionError, match=r"\$\.text"):
        decode_object(ID, name, envelope, Note, realm="acme")


def test_object_read_as_another_type_names_both(rows: RealmStore) -> None:
    rows.write_objects([(ID, Counter())])
    with pytest.raises(CorruptionError, match=r"Counter.*Note|Note.*Counter"):
        rows.read_object(ID, Note)


def test_class_without_a_name_is_refused() -> None:
    class Nameless(StoredObject, frozen=True, kw_only=True):
        pass

    with pytest.raises(RefusedError, match="Nameless"):
        encode_object(ID, Nameless())


def test_type_name_belongs_to_one_class() -> None:
    class Other(StoredObject, frozen=True, kw_only=True):
        pass

    with pytest.raises(ValueError, match="taken by notes:Note"):
        object_type("test-note")(Other)
    with pytest.raises(ValueError, match="2 to 32"):
        object_type("x")(Other)


def test_compressible_object_is_stored_small() -> None:
    _, envelope = encode_object(ID, Note(text="a" * 10_000))

    assert len(envelope) < 200
    assert read_back(Note(text="a" * 10_000)) == Note(text="a" * 10_000)


def test_type_that_packs_its_bytes_is_stored_as_is() -> None:
    _, envelope = encode_object(ID, Packed(data=bytes(10_000)))

    assert len(envelope) > 10_000
    assert read_back(Packed(data=bytes(10_000))) == Packed(data=bytes(10_000))


@pytest.mark.parametrize("size", [1, ROW_BYTES, ROW_BYTES + 1, 3 * ROW_BYTES])
def test_no_part_is_larger_than_a_row(size: int) -> None:
    parts = object_parts(b"x" * size)

    assert b"".join(parts) == b"x" * size
    assert max(map(len, parts)) <= ROW_BYTES == 350 * 1024


@pytest.fixture
def big() -> Note:
    """An object of three rows that does not compress."""
    return Note(data=random.Random(1).randbytes(2 * ROW_BYTES + 100))


def test_big_object_in_several_rows_is_read_back_whole(rows: RealmStore, big: Note) -> None:
    keys = rows.write_objects([(ID, big)])
    rows.store.cache.clear()

    assert [(key.part, key.bytes) for key in keys[:2]] == [(0, ROW_BYTES), (1, ROW_BYTES)]
    assert len(keys) == 3
    assert rows.read_object(ID, Note) == big


def test_missing_part_is_an_error_and_not_a_shorter_object(rows: RealmStore, big: Note) -> None:
    keys = rows.write_objects([(ID, big)])
    rows.delete_unchanged(keys[1:2])

    with pytest.raises(CorruptionError, match="one of its 3 parts is missing"):
        rows.read_object(ID, Note)


def test_updateable_object_must_fit_one_row(rows: RealmStore, big: Note) -> None:
    too_big = Counter(data=big.data)
    for write in (lambda: rows.insert_object(ID, too_big), lambda: rows.write_objects([(ID, too_big)])):
        with pytest.raises(RefusedError, match=str(ROW_BYTES)):
            write()

    assert rows.is_empty()


def test_errors_travel_between_processes() -> None:
    fault = pickle.loads(pickle.dumps(CommitTimeoutError("late", attempts=3, elapsed_seconds=15.0)))

    assert (str(fault), fault.attempts, fault.elapsed_seconds) == ("late", 3, 15.0)


def test_scanned_key_is_the_written_one(rows: RealmStore, big: Note) -> None:
    written = rows.write_objects([(ID, big), (ObjectId(5), Counter())])
    scanned: list[ObjectKey] = [key for batch in rows.scan_objects() for key in batch]

    assert scanned == sorted(written)
