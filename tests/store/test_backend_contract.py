"""What every backend promises. A new one adds a line to ``backend_fixtures``."""

from __future__ import annotations

import dataclasses
import threading

import pytest

from headwater.clock import Micros
from headwater.errors import BeatenError
from headwater.store import (
    Backend,
    Move,
    ObjectId,
    ObjectKey,
    ObjectRow,
    RealmKey,
    ReferenceKey,
    ReferenceRow,
    Split,
)

REALM, OTHER = RealmKey(10), RealmKey(1 << 60)


def reference(name: str = "main", *, realm: RealmKey = REALM, pointer: int | None = 7, version: int = 5) -> ReferenceRow:
    return ReferenceRow(
        realm=realm, name=name, pointer=None if pointer is None else ObjectId(pointer), version=version, created=Micros(3)
    )


def row(
    object_id: int, part: int = 0, *, realm: RealmKey = REALM, value: bytes = b"value", token: str | None = None, parts: int = 1
) -> ObjectRow:
    return ObjectRow(
        realm=realm, id=ObjectId(object_id), part=part, type="note", value=value, created=Micros(50), token=token, parts=parts
    )


def key(of: ObjectRow) -> ObjectKey:
    return ObjectKey(of.realm, of.id, of.part, of.type, of.created, of.token, of.parts, len(of.value))


def reference_key(of: ReferenceRow) -> ReferenceKey:
    return ReferenceKey(of.realm, of.name, of.pointer, of.version, of.created, of.deleted)


def read(backend: Backend, name: str = "main", realm: RealmKey = REALM) -> ReferenceRow | None:
    return backend.read_references(realm, [name])[0]


def scan_all(backend: Backend, realm: RealmKey | None, limit: int) -> list[ObjectKey]:
    found: list[ObjectKey] = []
    while batch := backend.scan_objects(Split(realm), found[-1].position if found else None, limit):
        found += batch
    return found


class TestReferences:
    def test_a_created_reference_is_read_back_whole(self, backend: Backend) -> None:
        made = dataclasses.replace(
            reference(version=1 << 62),
            recent=(ObjectId(6), ObjectId((1 << 63) - 1)),
            moves=(Move(ObjectId(9), Micros(77)),),
            deleted=Micros(99),
        )
        backend.create_reference(made)

        assert read(backend) == made

    def test_a_second_creation_is_beaten_and_changes_nothing(self, backend: Backend) -> None:
        backend.create_reference(reference())
        with pytest.raises(BeatenError):
            backend.create_reference(reference(pointer=8))

        assert read(backend) == reference()

    def test_the_same_name_in_another_realm_is_another_reference(self, backend: Backend) -> None:
        backend.create_reference(reference())
        backend.create_reference(reference(realm=OTHER, pointer=8))

        assert read(backend) == reference()
        assert read(backend, realm=OTHER) == reference(realm=OTHER, pointer=8)

    def test_bulk_reads_answer_in_order_with_holes(self, backend: Backend) -> None:
        backend.create_reference(reference("a"))
        backend.create_reference(reference("c"))

        assert backend.read_references(REALM, ["c", "b", "a", "c"]) == [reference("c"), None, reference("a"), reference("c")]

    def test_a_swap_replaces_what_was_seen(self, backend: Backend) -> None:
        backend.create_reference(reference())
        new = dataclasses.replace(reference(pointer=8, version=6), recent=(ObjectId(7),))
        backend.swap_reference(reference(), new)

        assert read(backend) == new

    @pytest.mark.parametrize("seen", [reference(version=4), reference(pointer=8), reference(pointer=None)])
    def test_a_beaten_swap_leaves_the_reference_alone(self, backend: Backend, seen: ReferenceRow) -> None:
        backend.create_reference(reference())
        with pytest.raises(BeatenError):
            backend.swap_reference(seen, reference(pointer=9, version=6))

        assert read(backend) == reference()

    def test_a_reference_without_a_pointer_can_be_swapped(self, backend: Backend) -> None:
        backend.create_reference(reference(pointer=None))
        backend.swap_reference(reference(pointer=None), reference(version=6))

        assert read(backend) == reference(version=6)

    def test_a_swap_of_an_absent_reference_is_beaten(self, backend: Backend) -> None:
        with pytest.raises(BeatenError):
            backend.swap_reference(reference(), reference(version=6))

        assert read(backend) is None

    def test_a_tombstone_is_a_row_like_any_other(self, backend: Backend) -> None:
        buried = dataclasses.replace(reference(version=6), deleted=Micros(60))
        backend.create_reference(reference())
        backend.swap_reference(reference(), buried)

        assert read(backend) == buried
        assert backend.scan_references(Split(REALM), None, 10) == [reference_key(buried)]

    def test_removal_takes_the_row_away(self, backend: Backend) -> None:
        backend.create_reference(reference())
        backend.remove_reference(reference())

        assert read(backend) is None

    @pytest.mark.parametrize("seen", [reference(version=4), reference(pointer=8), reference("absent")])
    def test_a_beaten_removal_leaves_the_row(self, backend: Backend, seen: ReferenceRow) -> None:
        backend.create_reference(reference())
        with pytest.raises(BeatenError):
            backend.remove_reference(seen)

        assert read(backend) == reference()

    def test_one_of_many_racing_swaps_wins(self, backend: Backend) -> None:
        backend.create_reference(reference())
        won: list[int] = []

        def race(number: int) -> None:
            try:
                backend.swap_reference(reference(), reference(pointer=100 + number, version=6))
                won.append(100 + number)
            except BeatenError:
                pass

        threads = [threading.Thread(target=race, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert [reference(pointer=pointer, version=6) for pointer in won] == [read(backend)]


class TestObjects:
    def test_bulk_writes_are_read_back_in_the_order_asked_with_holes(self, backend: Backend) -> None:
        rows = [row(1), row(2, 0, value=b"first", parts=2), row(2, 1, value=b"", parts=2), row((1 << 63) - 1)]
        backend.write_objects(rows)
        asked = [(ObjectId(2), 1), (ObjectId(9), 0), (ObjectId((1 << 63) - 1), 0), (ObjectId(2), 0), (ObjectId(1), 0)]

        assert backend.read_objects(REALM, asked) == [rows[2], None, rows[3], rows[1], rows[0]]

    def test_a_write_replaces_and_may_be_repeated(self, backend: Backend) -> None:
        backend.write_objects([row(1, value=b"old")])
        for _ in range(2):
            backend.write_objects([row(1, value=b"new")])

        assert backend.read_objects(REALM, [(ObjectId(1), 0)]) == [row(1, value=b"new")]

    def test_an_empty_bulk_call_is_fine(self, backend: Backend) -> None:
        backend.write_objects([])

        assert backend.read_objects(REALM, []) == []
        assert backend.delete_objects([]) == 0

    def test_objects_of_another_realm_are_not_seen(self, backend: Backend) -> None:
        backend.write_objects([row(1, realm=OTHER)])

        assert backend.read_objects(REALM, [(ObjectId(1), 0)]) == [None]

    def test_an_insert_over_an_object_is_beaten(self, backend: Backend) -> None:
        backend.insert_object(row(1, token="a"))
        with pytest.raises(BeatenError):
            backend.insert_object(row(1, token="b", value=b"other"))

        assert backend.read_objects(REALM, [(ObjectId(1), 0)]) == [row(1, token="a")]

    def test_an_update_needs_the_token_that_was_seen(self, backend: Backend) -> None:
        backend.insert_object(row(1, token="a"))
        backend.update_object(row(1, token="b", value=b"new"), "a")
        with pytest.raises(BeatenError):
            backend.update_object(row(1, token="c", value=b"late"), "a")

        assert backend.read_objects(REALM, [(ObjectId(1), 0)]) == [row(1, token="b", value=b"new")]

    def test_an_update_of_an_absent_or_immutable_object_is_beaten(self, backend: Backend) -> None:
        backend.write_objects([row(2)])
        for object_id in (1, 2):
            with pytest.raises(BeatenError):
                backend.update_object(row(object_id, token="b"), "a")

        assert backend.read_objects(REALM, [(ObjectId(1), 0), (ObjectId(2), 0)]) == [None, row(2)]

    def test_deletion_takes_only_rows_that_are_as_seen(self, backend: Backend) -> None:
        backend.write_objects([row(1), row(2, token="a"), row(3), row(4, token="a")])
        keys = [
            key(row(1)),
            key(row(2, token="a")),
            key(row(3))._replace(created=Micros(49)),
            key(row(4, token="b")),
            key(row(5)),
        ]

        assert backend.delete_objects(keys) == 2
        assert [found.id for found in backend.scan_objects(Split(REALM), None, 10)] == [3, 4]

    def test_deletion_of_an_immutable_row_spares_one_with_a_token(self, backend: Backend) -> None:
        backend.write_objects([row(1, token="a")])

        assert backend.delete_objects([key(row(1))]) == 0


class TestScans:
    @pytest.fixture
    def rows(self, backend: Backend) -> list[ObjectRow]:
        """Rows of two realms in key order, written in another one."""
        rows = [
            row(1),
            row(2, 0, value=b"x" * 300, token="t", parts=2),
            row(2, 1, parts=2),
            row(1 << 40),
            row(1, realm=OTHER, value=b""),
            row(3, realm=OTHER),
        ]
        backend.write_objects(rows[::-1])
        return rows

    def test_a_scan_tells_everything_but_the_value(self, backend: Backend, rows: list[ObjectRow]) -> None:
        assert backend.scan_objects(Split(), None, 100) == [key(found) for found in rows]

    def test_a_scan_of_one_realm_sees_no_other(self, backend: Backend, rows: list[ObjectRow]) -> None:
        assert backend.scan_objects(Split(OTHER), None, 100) == [key(found) for found in rows[4:]]

    @pytest.mark.parametrize("limit", [1, 2, 5])
    def test_a_scan_goes_on_after_any_key(self, backend: Backend, rows: list[ObjectRow], limit: int) -> None:
        assert scan_all(backend, None, limit) == [key(found) for found in rows]

    def test_a_scan_goes_on_after_a_key_that_was_deleted(self, backend: Backend, rows: list[ObjectRow]) -> None:
        backend.delete_objects([key(rows[1])])

        assert backend.scan_objects(Split(REALM), key(rows[1]).position, 100) == [key(found) for found in rows[2:4]]

    def test_references_are_scanned_by_realm_and_name(self, backend: Backend) -> None:
        rows = [reference("a"), reference("b/1"), reference("é"), reference("a", realm=OTHER)]
        for made in rows[::-1]:
            backend.create_reference(made)

        keys = [reference_key(made) for made in rows]
        assert backend.scan_references(Split(), None, 100) == keys
        assert backend.scan_references(Split(REALM), None, 2) == keys[:2]
        assert backend.scan_references(Split(REALM), (REALM, "b/1"), 100) == keys[2:3]

    def test_a_realm_is_deleted_in_bounded_batches(self, backend: Backend, rows: list[ObjectRow]) -> None:
        backend.create_reference(reference())
        backend.create_reference(reference(realm=OTHER))
        assert backend.capabilities.bulk_realm_deletion

        assert [backend.delete_realm(REALM, 3) for _ in range(3)] == [3, 2, 0]
        assert backend.scan_references(Split(), None, 9) == [reference_key(reference(realm=OTHER))]
        assert [found.realm for found in backend.scan_objects(Split(), None, 9)] == [OTHER, OTHER]
