"""Objects of a realm: written, read in bulk, and changed by compare-and-swap."""

from __future__ import annotations

import pytest
from notes import Counter, Note

from fake_clock import FakeClock
from faulty_backend import FaultyBackend
from headwater.errors import NotFoundError, RefusedError, SwapConflictError, UnavailableError
from headwater.store import ObjectId, RealmId, RealmKey, RealmStore


def test_read_many_answers_in_order_with_holes(rows: RealmStore) -> None:
    one, two = rows.new_id(), rows.new_id()
    rows.write_objects([(one, Note(text="1")), (two, Note(text="2"))])

    assert rows.read_many([two, ObjectId(9), one, two], Note) == [Note(text="2"), None, Note(text="1"), Note(text="2")]


def test_read_many_is_one_round_trip_and_then_none(faulty: RealmStore, faults: FaultyBackend) -> None:
    ids = [faulty.new_id() for _ in range(50)]
    faulty.write_objects([(object_id, Note()) for object_id in ids])
    faulty.store.cache.clear()
    faults.calls.clear()
    for _ in range(2):
        faulty.read_many(ids, Note)

    assert faults.calls == ["read_objects"]


def test_absent_object_is_missing_with_its_id_and_realm(rows: RealmStore) -> None:
    assert rows.find_object(ObjectId(5), Note) is None
    with pytest.raises(NotFoundError, match=r"0000000000000005 \(Note\) is not in realm 'acme'"):
        rows.read_object(ObjectId(5), Note)


def test_absent_updateable_object_is_missing(rows: RealmStore) -> None:
    assert rows.find_versioned(ObjectId(5), Counter) is None
    with pytest.raises(NotFoundError, match="Counter"):
        rows.read_versioned(ObjectId(5), Counter)


def test_update_gives_a_new_token_and_beats_the_old(rows: RealmStore) -> None:
    seen = rows.insert_object(rows.new_id(), Counter(count=1))
    newer = rows.update_object(seen, Counter(count=2))
    with pytest.raises(SwapConflictError):
        rows.update_object(seen, Counter(count=3))

    assert newer.token != seen.token
    assert rows.read_versioned(seen.id, Counter) == newer


def test_second_insert_is_beaten(rows: RealmStore) -> None:
    seen = rows.insert_object(rows.new_id(), Counter(count=1))
    with pytest.raises(SwapConflictError):
        rows.insert_object(seen.id, Counter(count=2))

    assert rows.read_versioned(seen.id, Counter) == seen


def test_delete_of_what_another_changed_is_beaten(rows: RealmStore) -> None:
    seen = rows.insert_object(rows.new_id(), Counter())
    newer = rows.update_object(seen, Counter(count=1))
    with pytest.raises(SwapConflictError):
        rows.delete_object(seen)
    rows.delete_object(newer)

    assert rows.find_versioned(seen.id, Counter) is None


def test_updateable_objects_are_never_read_from_the_cache(faulty: RealmStore, faults: FaultyBackend) -> None:
    seen = faulty.insert_object(faulty.new_id(), Counter())
    faults.calls.clear()
    for _ in range(3):
        faulty.read_versioned(seen.id, Counter)

    assert faults.calls == ["read_objects"] * 3


def test_immutable_object_cannot_be_inserted_or_updated(rows: RealmStore) -> None:
    with pytest.raises(RefusedError, match="immutable"):
        rows.insert_object(rows.new_id(), Note())

    assert rows.is_empty()


def test_write_that_failed_leaves_nothing_in_the_cache(faulty: RealmStore, faults: FaultyBackend) -> None:
    object_id = faulty.new_id()
    faults.fail("write_objects")
    with pytest.raises(UnavailableError):
        faulty.write_objects([(object_id, Note())])

    assert faulty.find_object(object_id, Note) is None


def test_deleted_object_is_not_remembered(rows: RealmStore) -> None:
    keys = rows.write_objects([(ObjectId(5), Note())])

    assert rows.delete_unchanged(keys) == 1
    assert rows.find_object(ObjectId(5), Note) is None


def test_row_rewritten_after_its_scan_is_spared(rows: RealmStore, clock: FakeClock) -> None:
    (key,) = rows.write_objects([(ObjectId(5), Note())])
    clock.advance(1)
    rows.write_objects([(ObjectId(5), Note())])

    assert rows.delete_unchanged([key]) == 0


def test_handle_deletes_no_other_realms_rows(rows: RealmStore) -> None:
    other = rows.store.rows(RealmId("other"), RealmKey(77))
    keys = other.write_objects([(ObjectId(5), Note())])
    with pytest.raises(RefusedError, match="'acme'"):
        rows.delete_unchanged(keys)

    assert other.find_object(ObjectId(5), Note) == Note()


def test_rows_of_a_realms_older_incarnation_are_not_seen(rows: RealmStore) -> None:
    late = rows.store.rows(rows.realm, RealmKey(rows.key - 1))
    late.write_objects([(ObjectId(5), Note())])
    late.create_reference("root")

    assert rows.is_empty()
    assert (rows.find_object(ObjectId(5), Note), rows.find_reference("root")) == (None, None)


def test_deleting_a_realms_rows_takes_them_in_batches(rows: RealmStore) -> None:
    rows.write_objects([(ObjectId(number), Note()) for number in range(1, 6)])
    rows.create_reference("root")

    assert [rows.delete_rows(4) for _ in range(3)] == [4, 2, 0]
    assert rows.is_empty()
    assert rows.find_object(ObjectId(1), Note) is None


class Closed:
    def check_write(self) -> None:
        raise RefusedError("closed")


def test_closed_gate_refuses_every_write_and_no_read(rows: RealmStore) -> None:
    seen = rows.insert_object(ObjectId(5), Counter())
    alive, dead = rows.create_reference("alive"), rows.delete_reference(rows.create_reference("dead"))
    gated = rows.store.rows(rows.realm, rows.key, Closed())
    writes = [
        lambda: gated.write_objects([(ObjectId(6), Note())]),
        lambda: gated.insert_object(ObjectId(6), Counter()),
        lambda: gated.update_object(seen, Counter(count=1)),
        lambda: gated.delete_object(seen),
        lambda: gated.create_reference("new"),
        lambda: gated.create_reference("dead"),
        lambda: gated.advance_reference(alive, ObjectId(7)),
        lambda: gated.move_reference(alive, ObjectId(7)),
        lambda: gated.delete_reference(alive),
        lambda: gated.raise_version(alive),
        lambda: gated.bury_reference("new"),
        lambda: gated.remove_tombstone(dead),
        lambda: gated.delete_rows(10),
    ]
    for write in writes:
        with pytest.raises(RefusedError, match="closed"):
            write()

    assert gated.read_versioned(ObjectId(5), Counter) == seen
    assert gated.find_rows([key.name for key in gated.scan_references()]) == [alive, dead]
