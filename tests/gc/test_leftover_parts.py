"""Parts that an interrupted rewriting left of an object that stays: found, counted, and deleted, but never a part that is read."""

from __future__ import annotations

import msgspec
import pytest

from fake_clock import FakeClock
from faulty_backend import FaultyBackend
from headwater.catalogs import Catalog
from headwater.fsck import check_store
from headwater.fsck.explanation import explain
from headwater.gc import collect_realm
from headwater.gc.live_set import LeftoverParts
from headwater.store import ObjectId, ObjectKey, ObjectRow, RealmStore, Store, fixed_id
from lakes import HOUR, put


def row_of(rows: RealmStore, object_id: ObjectId, part: int = 0) -> ObjectRow | None:
    return rows.store.backend.read_objects(rows.key, [(object_id, part)])[0]


def cut_in_two(rows: RealmStore, object_id: ObjectId) -> None:
    """Store an object in two parts, as a large one is."""
    row = row_of(rows, object_id)
    assert row is not None
    first = msgspec.structs.replace(row, value=row.value[:20], parts=2)
    rows.store.backend.write_objects([first, msgspec.structs.replace(first, value=row.value[20:], part=1)])


def leave_part(rows: RealmStore, object_id: ObjectId, part: int, *, created: int = 0) -> None:
    """What is there when a rewriting with fewer parts was cut off before it deleted the others."""
    row = row_of(rows, object_id)
    assert row is not None
    late = {} if not created else {"created": created}
    rows.store.backend.insert_object(msgspec.structs.replace(row, part=part, parts=part + 1, value=b"x" * 1000, **late))  # type: ignore[arg-type]


@pytest.fixture
def table(lake: Catalog, realm_rows: RealmStore, old_commits: list[ObjectId]) -> ObjectId:
    """The object of the table that HEAD leads to, an hour old and in two parts."""
    head = lake.resolve()
    assert head is not None
    found = next(iter(head.commit.points_to()))
    cut_in_two(realm_rows, found)
    return found


def test_left_over_part_is_deleted_and_the_object_stays(store: Store, realm_rows: RealmStore, table: ObjectId) -> None:
    leave_part(realm_rows, table, 2)
    done = collect_realm(store, "acme")

    assert done.leftover_parts == 1
    assert [row_of(realm_rows, table, part) is not None for part in range(3)] == [True, True, False]


def test_collection_without_left_over_parts_counts_none(store: Store, realm_rows: RealmStore, table: ObjectId) -> None:
    done = collect_realm(store, "acme")

    assert (done.leftover_parts, row_of(realm_rows, table, 1) is None) == (0, False)


def test_left_over_parts_count_as_garbage_of_their_type(store: Store, realm_rows: RealmStore, table: ObjectId) -> None:
    collect_realm(store, "acme")
    for part in (2, 3, 7):
        leave_part(realm_rows, table, part)
    done = collect_realm(store, "acme")

    kind = explain(store, "acme", table).type
    assert (done.leftover_parts, done.types[kind]["garbage"], done.deleted) == (3, 3, done.garbage)


def test_dry_run_tells_of_left_over_parts_and_leaves_them(store: Store, realm_rows: RealmStore, table: ObjectId) -> None:
    leave_part(realm_rows, table, 2)
    planned = collect_realm(store, "acme", dry_run=True)

    assert (planned.as_plain()["leftoverParts"], row_of(realm_rows, table, 2) is None) == (1, False)


def test_part_younger_than_the_writers_grace_is_left_alone(
    store: Store, realm_rows: RealmStore, table: ObjectId, clock: FakeClock
) -> None:
    leave_part(realm_rows, table, 2, created=clock.now())

    assert collect_realm(store, "acme").leftover_parts == 0
    assert "PART_LEFT_OVER" not in {finding.code for finding in check_store(store, realm="acme")}
    assert row_of(realm_rows, table, 2) is not None


def test_part_that_is_written_anew_before_it_is_deleted_stays(
    store: Store, realm_rows: RealmStore, table: ObjectId, clock: FakeClock
) -> None:
    leave_part(realm_rows, table, 2)
    left, backend = row_of(realm_rows, table, 2), FaultyBackend(store.backend)
    assert left is not None

    def rewrite() -> None:
        _replace(store, left, clock)

    backend.intervene("delete_objects", rewrite)
    done = collect_realm(Store(backend, url="", settings=store.settings, clock=clock), "acme")  # type: ignore[arg-type]

    assert (done.deleted, row_of(realm_rows, table, 2) is None) == (done.garbage - 1, False)


def _replace(store: Store, left: ObjectRow, clock: FakeClock) -> None:
    """Another writer stores the object in three parts, just now."""
    rows = store.backend.read_objects(left.realm, [(left.id, 0), (left.id, 1)])
    store.backend.write_objects([msgspec.structs.replace(row, parts=3, created=clock.now()) for row in (*rows, left) if row])


def test_parts_of_an_unneeded_object_are_no_leftovers(
    store: Store, realm_rows: RealmStore, lake: Catalog, old_commits: list[ObjectId], clock: FakeClock
) -> None:
    garbage = old_commits[0]
    cut_in_two(realm_rows, garbage)
    leave_part(realm_rows, garbage, 2)
    done = collect_realm(store, "acme")

    assert (done.leftover_parts, [row_of(realm_rows, garbage, part) for part in range(3)]) == (0, [None] * 3)


def test_left_over_part_under_a_fixed_id_is_deleted(store: Store, realm_rows: RealmStore, table: ObjectId) -> None:
    collect_realm(store, "acme")
    leave_part(realm_rows, fixed_id(2), 1, created=1)
    done = collect_realm(store, "acme")

    assert (done.leftover_parts, row_of(realm_rows, fixed_id(2)) is None) == (1, False)


def test_fsck_names_each_left_over_part(store: Store, realm_rows: RealmStore, table: ObjectId) -> None:
    leave_part(realm_rows, table, 2)

    [found] = check_store(store, realm="acme")
    assert (found.code, found.subject, "part 2" in found.message) == ("PART_LEFT_OVER", f"{table:016x}", True)


def test_first_part_scanned_after_the_others_is_looked_up(realm_rows: RealmStore, table: ObjectId) -> None:
    leave_part(realm_rows, table, 2)
    further = [key for batch in realm_rows.scan_objects() for key in batch if key.id == table and key.part]

    assert [key.part for key in LeftoverParts(realm_rows).among(further, further)] == [2]


def test_part_without_a_first_one_is_not_judged(realm_rows: RealmStore, table: ObjectId) -> None:
    key = ObjectKey(realm_rows.key, realm_rows.new_id(), 1, "note", realm_rows.clock.now(), None, 2, 10)

    assert not LeftoverParts(realm_rows).among([key], [key])


def test_ordered_scan_looks_nothing_up(store: Store, realm_rows: RealmStore, table: ObjectId, clock: FakeClock) -> None:
    backend = FaultyBackend(store.backend)
    rows = Store(backend, url="", settings=store.settings, clock=clock).rows(realm_rows.realm, realm_rows.key)  # type: ignore[arg-type]
    left_overs = LeftoverParts(rows)
    scanned = (key for batch in realm_rows.scan_objects() for key in batch)
    for key in sorted(scanned, key=lambda key: key.position):  # each batch ends in the worst place
        left_overs.among([key], [key])

    assert backend.calls == []


def test_table_in_two_parts_can_be_changed_afterwards(
    store: Store, realm_rows: RealmStore, lake: Catalog, table: ObjectId, clock: FakeClock
) -> None:
    leave_part(realm_rows, table, 2)
    collect_realm(store, "acme")
    clock.advance(HOUR)

    assert put(lake, 9)
