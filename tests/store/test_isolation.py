"""No call on a handle can name another realm's rows, and nothing out of bounds comes as far as the database."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest
from notes import Counter, Note

from faulty_backend import FaultyBackend
from headwater.clock import Micros
from headwater.errors import RefusedError
from headwater.store import (
    SYSTEM_KEY,
    SYSTEM_REALM,
    ObjectId,
    ObjectKey,
    RealmId,
    RealmKey,
    RealmStore,
    Reference,
    ReferenceMove,
    ScanSplit,
)

OTHER = RealmKey(77)


@pytest.fixture
def other(faulty: RealmStore) -> RealmStore:
    """A realm beside ``acme`` in the same store, with an object and two references of the names that ``acme`` has too."""
    made = faulty.store.rows(RealmId("other"), OTHER)
    for rows in (made, faulty):
        rows.write_objects([(ObjectId(5), Note(text=rows.realm))])
        rows.create_reference("branch", ObjectId(100))
        rows.delete_reference(rows.create_reference("dead", ObjectId(50)))
    return made


CALLS: dict[str, Callable[[RealmStore, RealmStore], object]] = {
    "swap from": lambda rows, other: rows.swap(branch(other), bumped(branch(rows))),
    "swap to": lambda rows, other: rows.swap(branch(rows), bumped(branch(other))),
    "advance": lambda rows, other: rows.advance_reference(branch(other), ObjectId(200)),
    "move": lambda rows, other: rows.move_reference(branch(other), ObjectId(200)),
    "record a move": lambda rows, other: rows.record_move(branch(other), ObjectId(200)),
    "raise the version": lambda rows, other: rows.raise_version(branch(other)),
    "delete a reference": lambda rows, other: rows.delete_reference(branch(other)),
    "remove a tombstone": lambda rows, other: rows.remove_tombstone(dead(other)),
    "create over a tombstone": lambda rows, other: rows.create_reference_as_seen("dead", dead(other), ObjectId(200)),
    "delete unchanged": lambda rows, other: rows.delete_unchanged(keys(other)),
    "delete one among ours": lambda rows, other: rows.delete_unchanged([*keys(rows), *keys(other)]),
    "scan objects": lambda rows, other: rows.scan_objects(ScanSplit(other.key)),
    "scan objects of all": lambda rows, other: rows.scan_objects(ScanSplit()),
    "scan objects after": lambda rows, other: rows.scan_objects(ScanSplit(rows.key, after=(other.key, ObjectId(1), 0))),
    "scan objects until": lambda rows, other: rows.scan_objects(ScanSplit(rows.key, until=(other.key, ObjectId(1), 0))),
    "scan references": lambda rows, other: rows.scan_references(ScanSplit(other.key)),
    "scan references of all": lambda rows, other: rows.scan_references(ScanSplit()),
    "scan references after": lambda rows, other: rows.scan_references(ScanSplit(rows.key, after=(other.key, "a"))),
    "scan references until": lambda rows, other: rows.scan_references(ScanSplit(rows.key, until=(other.key, "a"))),
}


def branch(rows: RealmStore) -> Reference:
    return rows.read_reference("branch")


def dead(rows: RealmStore) -> Reference:
    found = rows.find_row("dead")
    assert found is not None
    return found


def bumped(row: Reference) -> Reference:
    return dataclasses.replace(row, version=row.version + 1)


def keys(rows: RealmStore) -> list[ObjectKey]:
    return [key for batch in rows.scan_objects() for key in batch]


def everything(rows: RealmStore) -> object:
    return keys(rows), rows.find_rows(["branch", "dead"])


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_object_of_another_realm_is_refused_and_changes_nothing(
    faulty: RealmStore, other: RealmStore, faults: FaultyBackend, call: Callable[[RealmStore, RealmStore], object]
) -> None:
    before = everything(faulty), everything(other)
    with pytest.raises(RefusedError, match="the handle on realm 'acme'"):
        call(faulty, other)

    assert (everything(faulty), everything(other)) == before


def test_object_seen_in_another_realm_is_not_changed_there(faulty: RealmStore, other: RealmStore) -> None:
    theirs = other.insert_object(ObjectId(6), Counter(count=1))
    ours = faulty.insert_object(ObjectId(6), Counter(count=2))
    for change in (lambda: faulty.update_object(theirs, Counter(count=3)), lambda: faulty.delete_object(theirs)):
        with pytest.raises(Exception, match="changed by another"):
            change()

    assert (other.read_versioned(ObjectId(6), Counter), faulty.read_versioned(ObjectId(6), Counter)) == (theirs, ours)


def test_same_ids_and_names_are_other_rows_in_each_realm(faulty: RealmStore, other: RealmStore) -> None:
    assert (faulty.read_object(ObjectId(5), Note).text, other.read_object(ObjectId(5), Note).text) == ("acme", "other")
    assert {key.realm for key in keys(faulty)} == {faulty.key}
    assert {key.realm for key in other.scan_references()} == {OTHER}


WRONG_IDS = [0, -1, 1 << 63, 1 << 64]


@pytest.mark.parametrize("wrong", WRONG_IDS)
@pytest.mark.parametrize(
    "call",
    [
        lambda rows, wrong: rows.find_object(wrong, Note),
        lambda rows, wrong: rows.read_many([ObjectId(1), wrong], Note),
        lambda rows, wrong: rows.find_versioned(wrong, Counter),
        lambda rows, wrong: rows.write_objects([(ObjectId(1), Note()), (wrong, Note())]),
        lambda rows, wrong: rows.insert_object(wrong, Counter()),
        lambda rows, wrong: rows.create_reference("new", wrong),
        lambda rows, wrong: rows.advance_reference(rows.create_reference("new"), wrong),
        lambda rows, wrong: rows.move_reference(rows.create_reference("new"), wrong),
        lambda rows, wrong: rows.delete_unchanged([ObjectKey(rows.key, wrong, 0, "test-note", Micros(1), None, 1, 1)]),
    ],
    ids=["find", "read many", "find versioned", "write", "insert", "create", "advance", "move", "delete"],
)
def test_id_out_of_bounds_is_refused(
    faulty: RealmStore, faults: FaultyBackend, wrong: ObjectId, call: Callable[[RealmStore, ObjectId], object]
) -> None:
    with pytest.raises(
        RefusedError, match=rf"^{wrong} is not a valid id of an object in realm 'acme': an id is a number from 1 to 2\^63-1$"
    ):
        call(faulty, wrong)

    assert keys(faulty) == []
    assert {"write_objects", "delete_objects", "swap_reference"}.isdisjoint(faults.calls)


@pytest.mark.parametrize("name", ["", "a\0b", "\ud800", "x" * 501, "\xe9" * 251, "\U0001f600" * 126])
@pytest.mark.parametrize(
    "call",
    [
        lambda rows, name: rows.find_reference(name),
        lambda rows, name: rows.find_rows(["a", name]),
        lambda rows, name: rows.create_reference(name),
        lambda rows, name: rows.create_references(["a", name]),
        lambda rows, name: rows.create_reference_as_seen(name, None),
        lambda rows, name: rows.bury_reference(name),
    ],
    ids=["find", "find rows", "create", "create many", "create as seen", "bury"],
)
def test_name_out_of_bounds_is_refused(
    faulty: RealmStore, faults: FaultyBackend, name: str, call: Callable[[RealmStore, str], object]
) -> None:
    faults.calls.clear()
    with pytest.raises(
        RefusedError, match="is not a name of a reference in realm 'acme': a name is 1 to 500 bytes of UTF-8"
    ) as refused:
        call(faulty, name)

    assert len(str(refused.value)) < 600
    assert {"create_reference", "create_references", "read_references"}.isdisjoint(faults.calls)


@pytest.mark.parametrize("name", ["x", "x" * 500, "\xe9" * 250, "\U0001f600" * 125, " ", "../\n%", "\uffff"])
def test_name_of_any_other_kind_is_kept_as_it_is(rows: RealmStore, name: str) -> None:
    made = rows.create_reference(name)

    assert [key.name for key in rows.scan_references()] == [name]
    assert rows.find_reference(name, fresh=True) == made


@pytest.mark.parametrize("largest", [ObjectId((1 << 63) - 1), ObjectId(1)])
def test_first_and_the_last_id_are_ids(rows: RealmStore, largest: ObjectId) -> None:
    rows.write_objects([(largest, Note(text="edge"))])
    rows.store.cache.clear()
    made = rows.create_reference("edge", largest)

    assert rows.read_object(largest, Note) == Note(text="edge")
    assert rows.find_reference("edge", fresh=True) == made


def test_bulk_call_names_everything_once(faulty: RealmStore, faults: FaultyBackend) -> None:
    key = faulty.write_objects([(ObjectId(5), Note())])[0]
    faults.calls.clear()
    for call, twice in (
        (lambda: faulty.write_objects([(ObjectId(6), Note()), (ObjectId(6), Note())]), "object 6"),
        (lambda: faulty.delete_unchanged([key, key]), r"row \(id, part\) \(5, 0\)"),
        (lambda: faulty.create_references(["a", "b", "a"]), "reference 'a'"),
    ):
        with pytest.raises(RefusedError, match=f"{twice} of realm 'acme' stands in one call twice"):
            call()

    assert faults.calls == []


def test_swap_keeps_the_name_and_raises_the_version(rows: RealmStore) -> None:
    seen = rows.create_reference("branch")
    for new in (seen, dataclasses.replace(bumped(seen), name="other"), dataclasses.replace(seen, version=seen.version - 1)):
        with pytest.raises(RefusedError, match="a swap keeps the name and raises the version"):
            rows.swap(seen, new)

    assert rows.find_row("branch") == seen


@pytest.mark.parametrize(
    "change",
    [{"version": 1 << 63}, {"moves": (ReferenceMove(ObjectId(1), Micros(1)),) * 23_000}, {"recent": (ObjectId(1),) * 45_000}],
    ids=["version", "moves", "recent"],
)
def test_row_that_no_database_could_hold_is_refused(rows: RealmStore, change: dict[str, object]) -> None:
    seen = rows.create_reference("branch")
    with pytest.raises(RefusedError, match=r"'branch' of realm 'acme'.*(350|358400|versions are)"):
        rows.swap(seen, dataclasses.replace(bumped(seen), **change))  # type: ignore[arg-type]

    assert rows.find_row("branch") == seen


@pytest.mark.parametrize(
    ("realm", "reason"),
    [
        ("", "1 to 128 of the characters"),
        ("a b", "1 to 128 of the characters"),
        ("caf\xe9", "1 to 128 of the characters"),
        ("a/b", "1 to 128 of the characters"),
        ("acme\n", "1 to 128 of the characters"),
        ("x" * 129, "1 to 128 of the characters"),
        ("::mine::", "is reserved: ids with '::' belong to Headwater itself"),
        ("a::b", "is reserved"),
    ],
)
def test_handle_on_a_malformed_or_reserved_realm_is_refused(rows: RealmStore, realm: str, reason: str) -> None:
    with pytest.raises(RefusedError, match=reason):
        rows.store.rows(RealmId(realm), RealmKey(5))


@pytest.mark.parametrize(
    ("realm", "key"), [(SYSTEM_REALM, 5), ("acme", SYSTEM_KEY), ("acme", 0), ("acme", -5), ("acme", 1 << 63)]
)
def test_handle_on_a_key_of_another_realm_is_refused(rows: RealmStore, realm: str, key: int) -> None:
    with pytest.raises(RefusedError, match=f"realm '{realm}' cannot have the key {key}"):
        rows.store.rows(RealmId(realm), RealmKey(key))


def test_system_realm_has_its_own_key(rows: RealmStore) -> None:
    assert rows.store.rows(SYSTEM_REALM, SYSTEM_KEY).realm == "::system::"


@pytest.mark.parametrize("limit", [0, -1])
def test_rows_are_deleted_one_or_more_at_a_time(rows: RealmStore, limit: int) -> None:
    with pytest.raises(RefusedError, match="only 1 or more"):
        rows.delete_rows(limit)
