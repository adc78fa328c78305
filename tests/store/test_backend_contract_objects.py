"""What every backend promises of objects' rows."""

from __future__ import annotations

import random

import msgspec
import pytest

from headwater.clock import Micros
from headwater.errors import SwapConflictError
from headwater.store import BULK_BYTES, ROW_BYTES, Backend, ObjectId, ObjectKey, RealmKey
from specimens import LARGEST, OTHER, REALM, in_parts, key, race, read_back, read_object, row, scan

EVERY_BYTE = bytes(range(256))
LARGE = (EVERY_BYTE * (ROW_BYTES // 256))[:ROW_BYTES]


class TestBulkWrites:
    def test_rows_are_read_in_the_order_asked_with_holes(self, backend: Backend) -> None:
        rows = [row(1), row(2, 0, value=b"first", parts=2), row(2, 1, value=b"", parts=2), row(LARGEST), row(0)]
        backend.write_objects(rows)
        asked = [
            (ObjectId(2), 1),
            (ObjectId(9), 0),
            (ObjectId(LARGEST), 0),
            (ObjectId(2), 0),
            (ObjectId(2), 1),
            (ObjectId(0), 0),
        ]

        assert backend.read_objects(REALM, asked) == [rows[2], None, rows[3], rows[1], rows[2], rows[4]]

    def test_write_replaces_everything_and_may_be_repeated(self, backend: Backend) -> None:
        backend.write_objects([row(1, value=b"old", token="a")])
        new = msgspec.structs.replace(row(1, value=b"new"), type="other", created=Micros(51))
        for _ in range(2):
            backend.write_objects([new])

        assert read_object(backend, 1) == new
        assert scan(backend) == [key(new)]

    def test_call_may_replace_some_and_add_others(self, backend: Backend) -> None:
        backend.write_objects([row(number, value=b"old") for number in (2, 4, 6)])
        new = [row(number, value=b"new") for number in (5, 4, 3, 2, 1)]
        backend.write_objects(new)

        assert read_back(backend, new) == new
        assert read_object(backend, 6) == row(6, value=b"old")

    def test_empty_call_is_fine(self, backend: Backend) -> None:
        backend.write_objects([])

        assert backend.read_objects(REALM, []) == []
        assert backend.delete_objects([]) == 0

    def test_one_call_may_name_several_realms(self, backend: Backend) -> None:
        rows = [row(1, realm=realm, value=str(realm).encode()) for realm in (0, REALM, OTHER, LARGEST)]
        backend.write_objects(rows)

        assert [read_object(backend, 1, realm=made.realm) for made in rows] == rows
        assert read_object(backend, 1, realm=REALM + 1) is None

    @pytest.mark.parametrize("value", [b"", b"\0", EVERY_BYTE, LARGE, b"\0" * ROW_BYTES], ids=len)
    def test_values_of_any_bytes_up_to_the_largest_are_kept(self, backend: Backend, value: bytes) -> None:
        backend.write_objects([row(1, value=value, token="t")])
        backend.insert_object(row(2, value=value, token="t"))
        backend.update_object(row(1, value=value, token="u"), "t")
        expected = [row(1, value=value, token="u"), row(2, value=value, token="t")]

        assert backend.read_objects(REALM, [(ObjectId(1), 0), (ObjectId(2), 0)]) == expected
        assert sorted(found.bytes for found in scan(backend)) == [len(value)] * 2

    def test_moment_zero_is_kept(self, backend: Backend) -> None:
        made = msgspec.structs.replace(row(0, realm=0), created=Micros(0))
        backend.write_objects([made])

        assert read_object(backend, 0, realm=0) == made
        assert backend.delete_objects([key(made)]) == 1

    def test_more_than_fits_one_round_trip_is_written_and_read(self, backend: Backend) -> None:
        count = BULK_BYTES // ROW_BYTES + 5
        rows = [row(number, value=random.Random(number).randbytes(ROW_BYTES)) for number in range(count)]
        backend.write_objects(rows)

        assert read_back(backend, rows) == rows

    def test_rows_by_the_thousand_are_written_read_and_deleted(self, backend: Backend) -> None:
        rows = [row(number, value=b"%d" % number) for number in random.Random(5).sample(range(1 << 40), 2000)]
        backend.write_objects(rows)
        assert read_back(backend, rows) == rows

        again = [msgspec.structs.replace(made, value=made.value * 2) for made in rows]
        backend.write_objects(again[::-1])
        assert read_back(backend, again) == again
        assert backend.delete_objects([key(made) for made in again]) == 2000
        assert scan(backend) == []

    def test_thousand_are_read_with_holes_and_repeats(self, backend: Backend) -> None:
        rows = {ObjectId(number): row(number, value=b"%d" % number) for number in range(0, 1000, 3)}
        backend.write_objects(list(rows.values()))
        ids = [ObjectId(number * 7 % 1000) for number in range(1000)] + [ObjectId(0)] * 3

        assert backend.read_objects(REALM, [(object_id, 0) for object_id in ids]) == [rows.get(object_id) for object_id in ids]

    def test_writers_of_the_same_rows_do_not_hinder_each_other(self, backend: Backend) -> None:
        rows = [row(number) for number in range(50)]

        def write(number: int) -> None:
            for _ in range(5):
                backend.write_objects(rows if number % 2 else rows[::-1])  # in different orders, as a deadlock would have it

        race(6, write)

        assert read_back(backend, rows) == rows


class TestParts:
    @pytest.mark.parametrize("before", [1, 2, 3, 5])
    @pytest.mark.parametrize("after", [1, 2, 3, 5])
    def test_object_has_just_the_parts_of_its_last_write(self, backend: Backend, before: int, after: int) -> None:
        backend.write_objects(in_parts(7, *[b"old"] * before))
        new = in_parts(7, *[b"new %d" % part for part in range(after)])
        backend.write_objects(new)

        assert sorted(scan(backend)) == [key(made) for made in new]
        assert read_back(backend, in_parts(7, *[b""] * 6)) == [*new, *[None] * (6 - after)]

    def test_parts_of_other_objects_stay(self, backend: Backend) -> None:
        others = [
            *in_parts(6, b"a", b"b", b"c"),
            *in_parts(8, b"a", b"b", b"c"),
            *in_parts(7, b"a", b"b", b"c", realm=OTHER),
            *in_parts(7, b"a", b"b", b"c", realm=REALM + 1),
        ]
        backend.write_objects([*others, *in_parts(7, b"a", b"b", b"c")])
        backend.write_objects(in_parts(7, b"new"))

        assert sorted(scan(backend)) == sorted(key(made) for made in [*others, *in_parts(7, b"new")])

    def test_many_objects_shrink_grow_and_come_in_one_call(self, backend: Backend) -> None:
        backend.write_objects([part for number in range(0, 40, 2) for part in in_parts(number, *[b"old"] * (1 + number % 5))])
        new = [part for number in range(40) for part in in_parts(number, *[b"new"] * (1 + number % 3))]
        backend.write_objects(new)

        assert sorted(scan(backend)) == sorted(key(made) for made in new)

    def test_order_of_parts_in_a_call_is_free(self, backend: Backend) -> None:
        backend.write_objects(in_parts(7, *[b"old"] * 4)[::-1])
        new = in_parts(7, b"0", b"1", b"2")
        backend.write_objects(new[::-1])

        assert sorted(scan(backend)) == [key(made) for made in new]

    @pytest.mark.parametrize("gone", [[0], [1], [2], [0, 1], [1, 2], [0, 1, 2]])
    @pytest.mark.parametrize("after", [1, 2])
    def test_parts_behind_a_hole_that_a_deletion_left_go_too(self, backend: Backend, gone: list[int], after: int) -> None:
        old = in_parts(7, *[b"old"] * 5)
        backend.write_objects([*old, *in_parts(6, b"a", b"b"), *in_parts(8, b"a", b"b")])
        backend.delete_objects([key(old[part]) for part in gone])
        new = in_parts(7, *[b"new"] * after)
        backend.write_objects(new)

        assert sorted(scan(backend)) == [key(made) for made in [*in_parts(6, b"a", b"b"), *new, *in_parts(8, b"a", b"b")]]

    def test_large_parts_are_replaced_by_fewer(self, backend: Backend) -> None:
        backend.write_objects(in_parts(7, *[LARGE] * 30))
        new = in_parts(7, LARGE, b"end")
        backend.write_objects(new)

        assert sorted(scan(backend)) == [key(made) for made in new]


class TestConditions:
    def test_insert_is_read_back_whole(self, backend: Backend) -> None:
        backend.insert_object(row(1, token="a"))

        assert read_object(backend, 1) == row(1, token="a")

    @pytest.mark.parametrize("token", [None, "", "a"])
    def test_insert_over_an_object_is_beaten(self, backend: Backend, token: str | None) -> None:
        backend.write_objects([row(1, token=token)])
        with pytest.raises(SwapConflictError):
            backend.insert_object(row(1, token="b", value=b"other"))

        assert read_object(backend, 1) == row(1, token=token)

    def test_objects_of_other_realms_or_ids_hinder_no_insert(self, backend: Backend) -> None:
        backend.write_objects([row(1, realm=OTHER), row(2)])
        backend.insert_object(row(1, token="a"))

        assert read_object(backend, 1) == row(1, token="a")
        assert read_object(backend, 1, realm=OTHER) == row(1, realm=OTHER)

    def test_update_needs_the_token_that_was_seen(self, backend: Backend) -> None:
        backend.insert_object(row(1, token="a"))
        new = msgspec.structs.replace(row(1, token="b", value=b"new"), created=Micros(60), type="other")
        backend.update_object(new, "a")
        with pytest.raises(SwapConflictError):
            backend.update_object(row(1, token="c", value=b"late"), "a")

        assert read_object(backend, 1) == new

    def test_update_by_the_same_row_is_not_beaten(self, backend: Backend) -> None:
        backend.insert_object(row(1, token="a"))
        backend.update_object(row(1, token="a"), "a")

        assert read_object(backend, 1) == row(1, token="a")

    def test_update_leaves_all_others_alone(self, backend: Backend) -> None:
        others = [row(2, token="a"), row(1, realm=OTHER, token="a"), row(0, token="a")]
        backend.write_objects([row(1, token="a"), *others])
        backend.update_object(row(1, token="b"), "a")

        assert [read_object(backend, made.id, realm=made.realm) for made in others] == others

    def test_update_of_an_absent_or_immutable_object_is_beaten(self, backend: Backend) -> None:
        backend.write_objects([row(2)])
        for object_id in (1, 2):
            for seen in ("a", ""):
                with pytest.raises(SwapConflictError):
                    backend.update_object(row(object_id, token="b"), seen)

        assert backend.read_objects(REALM, [(ObjectId(1), 0), (ObjectId(2), 0)]) == [None, row(2)]

    def test_no_token_and_an_empty_one_are_different(self, backend: Backend) -> None:
        backend.write_objects([row(1), row(2, token="")])

        assert backend.delete_objects([key(row(1, token="")), key(row(2))]) == 0
        backend.update_object(row(2, token="", value=b"new"), "")
        assert backend.read_objects(REALM, [(ObjectId(1), 0), (ObjectId(2), 0)]) == [row(1), row(2, token="", value=b"new")]
        assert backend.delete_objects([key(row(1)), key(row(2, token=""))]) == 2

    @pytest.mark.parametrize("token", ["A", "a ", "ä", "x" * 64, "\U0001f30a", "$a.b", "'"])
    def test_tokens_are_compared_to_the_byte(self, backend: Backend, token: str) -> None:
        backend.insert_object(row(1, token=token))
        for other in ("a", token + " ", token.swapcase() + "."):
            with pytest.raises(SwapConflictError):
                backend.update_object(row(1, token="b"), other)
        backend.update_object(row(1, token=token, value=b"new"), token)

        assert read_object(backend, 1) == row(1, token=token, value=b"new")

    def test_one_of_many_racing_inserts_wins(self, backend: Backend) -> None:
        won = race(8, lambda number: backend.insert_object(row(1, token=str(number))) or str(number))
        found = read_object(backend, 1)

        assert found is not None
        assert [token for token in won if token is not SwapConflictError] == [found.token]

    def test_one_of_many_racing_updates_wins(self, backend: Backend) -> None:
        backend.insert_object(row(1, token="seen"))
        won = race(8, lambda number: backend.update_object(row(1, token=str(number)), "seen") or str(number))
        found = read_object(backend, 1)

        assert found is not None
        assert [token for token in won if token is not SwapConflictError] == [found.token]

    def test_race_of_updates_and_deletions_has_one_winner(self, backend: Backend) -> None:
        backend.insert_object(row(1, token="seen"))

        def act(number: int) -> int:
            if number % 2:
                return backend.delete_objects([key(row(1, token="seen"))])
            backend.update_object(row(1, token=str(number)), "seen")
            return 1

        answers = race(8, act)
        winners = [number for number in range(8) if answers[number] == 1]
        found = read_object(backend, 1)

        assert len(winners) == 1
        assert (found and found.token) == (None if winners[0] % 2 else str(winners[0]))


class TestDeletion:
    def test_rows_go_only_if_as_seen(self, backend: Backend) -> None:
        backend.write_objects([row(1), row(2, token="a"), row(3), row(4, token="a"), row(6)])
        keys: list[ObjectKey] = [
            key(row(1)),
            key(row(2, token="a")),
            key(row(3))._replace(created=Micros(49)),
            key(row(4, token="b")),
            key(row(5)),
            key(row(6))._replace(created=Micros(51)),
        ]

        assert backend.delete_objects(keys) == 2
        assert sorted(found.id for found in scan(backend)) == [3, 4, 6]

    def test_immutable_rows_key_spares_one_with_a_token(self, backend: Backend) -> None:
        backend.write_objects([row(1, token="a")])

        assert backend.delete_objects([key(row(1))]) == 0

    def test_key_names_one_part_of_one_object_of_one_realm(self, backend: Backend) -> None:
        rows = [*in_parts(1, b"a", b"b", b"c"), *in_parts(1, b"a", b"b", realm=OTHER), row(2)]
        backend.write_objects(rows)

        assert backend.delete_objects([key(rows[1])]) == 1
        assert sorted(scan(backend)) == sorted(key(made) for made in rows if made is not rows[1])

    def test_type_size_and_count_of_parts_are_not_compared(self, backend: Backend) -> None:
        backend.write_objects([row(1)])

        assert backend.delete_objects([key(row(1))._replace(type="other", bytes=0, parts=9)]) == 1

    def test_one_call_deletes_in_many_realms(self, backend: Backend) -> None:
        rows = [row(number % 7, realm=number) for number in range(50)]
        backend.write_objects(rows)

        assert backend.delete_objects([key(made) for made in rows[::2]]) == 25
        assert sorted(scan(backend)) == [key(made) for made in rows[1::2]]

    def test_racing_deletions_count_each_row_once(self, backend: Backend) -> None:
        rows = [row(number) for number in range(200)]
        backend.write_objects(rows)

        def delete(number: int) -> int:
            shuffled = random.Random(number).sample(rows, len(rows))
            return sum(backend.delete_objects([key(made) for made in shuffled[at : at + 50]]) for at in range(0, 200, 50))

        assert sum(race(4, delete)) == 200
        assert scan(backend) == []

    def test_row_that_was_deleted_can_come_back(self, backend: Backend) -> None:
        backend.insert_object(row(1, token="a"))
        backend.delete_objects([key(row(1, token="a"))])
        backend.insert_object(row(1, token="b"))

        assert read_object(backend, 1) == row(1, token="b")


def test_rows_next_to_each_other_do_not_mix(backend: Backend) -> None:
    numbers = [
        0,
        1,
        (1 << 31) - 1,
        1 << 31,
        (1 << 32) - 1,
        1 << 32,
        (1 << 53) - 1,
        1 << 53,
        (1 << 53) + 1,
        LARGEST - 1,
        LARGEST,
    ]
    rows = [row(number, realm=realm, value=b"%d %d" % (realm, number)) for realm in numbers for number in numbers]
    backend.write_objects(rows)

    for realm in numbers:
        mine = [made for made in rows if made.realm == realm]
        assert backend.read_objects(RealmKey(realm), [(made.id, 0) for made in mine]) == mine
