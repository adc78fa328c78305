"""Fields that only a later release knows: ignored where they are read, and still there after an older release changed the object."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from notes import Counter, Note

from headwater.errors import CorruptionError, RefusedError
from headwater.store import (
    ObjectId,
    RealmStore,
    StoredObject,
    StoredPart,
    UnknownObject,
    Versioned,
    object_type,
    unknown_pointers_reason,
)
from headwater.store.stored_objects import _sealed, decode_object, encode_object
from newer_release import INVENTED, body_of, rewrite

ID = ObjectId(0x0123456789ABCDEF)


class Part(StoredPart, frozen=True, kw_only=True):
    number: int = 0


class Stop(StoredPart, frozen=True, kw_only=True):
    known_by = ("name",)

    name: str
    open: bool = False
    inner: Part | None = None


class Owner(StoredPart, frozen=True, kw_only=True):
    known_by = ("name", "uid")

    name: str
    uid: str = ""
    rank: int = 0


@object_type("test-line")
class Line(StoredObject, frozen=True, kw_only=True):
    """An object with structs inside of it, in every way in which one can be held."""

    one: Part = Part()
    several: tuple[Stop, ...] = ()
    named: dict[str, Part] = {}
    owner: Owner | None = None
    former: Owner | None = None


def read_newer(name: str, body: dict[str, Any]) -> StoredObject:
    newer = UnknownObject(name=name, body=msgspec.msgpack.encode(body))
    return decode_object(ID, *encode_object(ID, newer), StoredObject, realm="acme")


def stored(value: StoredObject) -> Any:
    return msgspec.msgpack.decode(encode_object(ID, value)[1][6:])


def test_unknown_fields_make_no_difference_to_who_reads() -> None:
    assert read_newer("test-note", {"text": "hello", **INVENTED}) == Note(text="hello")


def test_unknown_fields_survive_a_change() -> None:
    found = read_newer("test-note", {"text": "hello", **INVENTED})

    assert stored(replace(found, text="bye", number=1 << 80))["invented"] == INVENTED["invented"]


def test_unknown_fields_of_inner_structs_survive_a_change() -> None:
    found = read_newer("test-line", {"one": {"number": 1, **INVENTED}, "named": {"a": {"number": 2, **INVENTED}, "b": {}}})
    assert isinstance(found, Line)
    changed = stored(replace(found, one=Part(), named={"a": Part(number=3), "c": Part()}))

    assert changed["one"] == INVENTED
    assert changed["named"] == {"a": {"number": 3, **INVENTED}, "c": {}}


def test_unknown_fields_of_one_among_several_follow_it() -> None:
    found = read_newer("test-line", {"several": [{"name": "a", "inner": INVENTED}, {"name": "b", **INVENTED}]})
    assert isinstance(found, Line)
    first, second = found.several
    changed = stored(replace(found, several=(replace(second, open=True), Stop(name="c"), replace(first, open=True))))

    assert changed["several"] == [
        {"name": "b", "open": True, **INVENTED},
        {"name": "c"},
        {"name": "a", "open": True, "inner": INVENTED},
    ]


def test_unknown_fields_go_with_the_struct_that_held_them() -> None:
    found = read_newer("test-line", {"several": [{"name": "a", "inner": INVENTED}]})
    assert isinstance(found, Line)

    assert stored(replace(found, several=(Stop(name="a"),))) == {"several": [{"name": "a"}]}


def test_unknown_fields_do_not_go_to_a_structs_successor() -> None:
    found = read_newer("test-line", {"owner": {"name": "a", "uid": "1", **INVENTED}})
    assert isinstance(found, Line)

    assert stored(replace(found, owner=Owner(name="a", uid="2"))) == {"owner": {"name": "a", "uid": "2"}}
    assert stored(replace(found, owner=None)) == {}


def test_unknown_fields_follow_a_struct_that_changes_or_moves() -> None:
    found = read_newer("test-line", {"owner": {"name": "a", "uid": "1", **INVENTED}})
    assert isinstance(found, Line)
    changed = replace(found, owner=Owner(name="b"), former=Owner(name="a", uid="1", rank=2))

    assert stored(changed) == {"owner": {"name": "b"}, "former": {"name": "a", "uid": "1", "rank": 2, **INVENTED}}


def test_equal_objects_have_one_hash() -> None:
    found, made = read_newer("test-counter", {"count": 1, **INVENTED}), Counter(count=1)

    assert (found, hash(found)) == (made, hash(made))


@given(st.dictionaries(st.text(max_size=5), st.none() | st.integers(-(1 << 70), 1 << 70) | st.binary(), max_size=4))
def test_unknown_fields_are_written_back_equal(fields: dict[str, Any]) -> None:
    fields = {name: value for name, value in fields.items() if name not in Note.__struct_encode_fields__}
    newer = Note(more=fields)
    as_fields = stored(newer).get("more", {})
    found = read_newer("test-note", {"text": "hello", **as_fields})

    assert stored(found) == {"text": "hello", **as_fields}


def test_update_by_a_fresh_value_keeps_unknown_fields(rows: RealmStore) -> None:
    rows.insert_object(ID, Counter(count=1))
    rewrite(rows, ID, lambda body: body.update(INVENTED))
    rows.update_object(rows.read_versioned(ID, Counter), Counter(count=2))

    assert body_of(rows, ID) == {"count": 2, **INVENTED}


# what points to more than this release knows


def test_type_that_gained_pointers_says_so_in_every_object() -> None:
    @object_type("test-gained", pointing=2)
    class Gained(StoredObject, frozen=True, kw_only=True):
        text: str = ""

    assert encode_object(ID, Gained())[1][1] == 2 << 4
    assert encode_object(ID, Gained(text="x" * 2000))[1][1] == 2 << 4 | 1
    assert encode_object(ID, Note())[1][1] == 0
    assert unknown_pointers_reason(decode_object(ID, *encode_object(ID, Gained()), Gained, realm="acme")) == ""


def test_number_of_pointings_beyond_the_envelope_is_refused() -> None:
    with pytest.raises(ValueError, match="from 0 to 15, not 16"):
        object_type("test-many", pointing=16)


@pytest.mark.parametrize("text", ["", "x" * 2000])
def test_object_that_may_point_to_more_says_so_until_gone(rows: RealmStore, text: str) -> None:
    rows.insert_object(ID, Counter())
    rewrite(rows, ID, lambda body: body.update(INVENTED), pointing=3)
    seen: Versioned[Counter] = rows.read_versioned(ID, Counter)
    rows.update_object(seen, Counter(count=2, data=text.encode()))
    found = rows.read_versioned(ID, Counter).value

    assert "of type 'test-counter' was written by a later release" in unknown_pointers_reason(found)
    [pointing] = rows.read_pointing([ID])
    assert pointing is not None and pointing.targets is None and pointing.why == unknown_pointers_reason(found)


def test_foreign_object_keeps_its_number_of_pointings(rows: RealmStore) -> None:
    rows.insert_object(ID, Counter())
    rewrite(rows, ID, lambda body: None, pointing=5)
    [row] = rows.store.backend.read_objects(rows.key, [(ID, 0)])
    assert row is not None
    newer = decode_object(ID, "test-counter", row.value, StoredObject, realm="acme")

    assert encode_object(ID, newer)[1] == row.value


@pytest.mark.parametrize("flags", [2, 4, 8])
def test_other_flags_than_these_are_not_guessed_at(flags: int) -> None:
    with pytest.raises(CorruptionError, match="envelope flags"):
        decode_object(ID, "test-note", _sealed(ID, "test-note", b"\x80", flags), Note, realm="acme")


def test_object_that_is_no_map_is_unreadable_and_no_bug() -> None:
    name, envelope = encode_object(ID, UnknownObject(name="test-note", body=msgspec.msgpack.encode([1, 2])))
    with pytest.raises(CorruptionError):
        decode_object(ID, name, envelope, Note, realm="acme")
    with pytest.raises(RefusedError):
        encode_object(ID, Note(text=5))  # type: ignore[arg-type]
