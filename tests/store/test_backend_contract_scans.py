"""What every backend promises of scans, splits and of deleting a realm."""

from __future__ import annotations

import dataclasses
import pickle
import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from headwater.clock import Micros
from headwater.errors import RefusedError
from headwater.store import Backend, ObjectId, ObjectKey, ObjectRow, RealmKey, ReferenceRow, ScanSplit
from specimens import LARGEST, OTHER, REALM, in_parts, key, reference, reference_key, row, scan, scan_names
from tiers import long_but_for

ROWS = [
    *in_parts(1, b""),
    *in_parts(2, b"x" * 300, b"y", b""),
    row(1 << 40, token="t"),
    row(LARGEST, token=""),
    row(0, realm=OTHER),
    row(3, realm=OTHER),
]
"""Rows of two realms in key order; written in another one."""
NAMES = [reference("a"), reference("b/1", pointer=None), reference("b/10"), reference("é"), reference("a", realm=OTHER)]


@pytest.fixture
def rows(backend: Backend) -> list[ObjectRow]:
    shuffled = random.Random(3).sample(ROWS, len(ROWS))
    backend.write_objects([made for made in shuffled if made.parts == 1])
    backend.write_objects([made for made in shuffled if made.parts > 1])
    return ROWS


@pytest.fixture
def names(backend: Backend) -> list[ReferenceRow]:
    for made in NAMES[::-1]:
        backend.create_reference(made)
    return NAMES


@pytest.fixture
def ordered(backend: Backend) -> Backend:
    if not backend.capabilities.ordered_keys:
        pytest.skip("it declares no order of keys")
    return backend


class TestWholeScans:
    def test_scan_tells_everything_but_the_value(self, backend: Backend, rows: list[ObjectRow]) -> None:
        found = scan(backend)

        assert sorted(found) == [key(made) for made in rows]
        assert all(type(one) is ObjectKey for one in found)

    def test_scan_of_references_tells_everything_but_the_lists(self, backend: Backend) -> None:
        made = dataclasses.replace(reference(pointer=LARGEST), recent=(ObjectId(1),), deleted=Micros(8))
        backend.create_reference(made)

        assert scan_names(backend) == [reference_key(made)]

    @pytest.mark.parametrize("limit", [1, 2, 5, 1000])
    def test_scan_gives_the_same_with_any_limit(
        self, backend: Backend, rows: list[ObjectRow], names: list[ReferenceRow], limit: int
    ) -> None:
        found, found_names = scan(backend, limit=limit), scan_names(backend, limit=limit)

        assert (found, found_names) == (scan(backend), scan_names(backend))
        assert sorted(found) == [key(made) for made in rows]
        assert {one.position for one in found_names} == {(made.realm, made.name) for made in names}

    def test_page_is_full_unless_it_is_the_last(self, backend: Backend, rows: list[ObjectRow]) -> None:
        assert len(backend.scan_objects(ScanSplit(), None, len(rows) - 1)) == len(rows) - 1

    def test_empty_store_has_an_empty_scan(self, backend: Backend) -> None:
        assert scan(backend) == scan_names(backend) == []

    def test_objects_are_no_references(self, backend: Backend, rows: list[ObjectRow]) -> None:
        assert scan_names(backend) == []

    def test_scan_goes_on_behind_rows_that_were_deleted(self, backend: Backend, rows: list[ObjectRow]) -> None:
        whole = scan(backend)
        for gone in (whole[:3], whole[3:4]):
            backend.delete_objects(gone)

            assert backend.scan_objects(ScanSplit(), gone[-1].position, 100) == [
                one for one in whole[whole.index(gone[-1]) + 1 :] if one in scan(backend)
            ]

    def test_scan_goes_on_behind_references_that_were_removed(self, backend: Backend, names: list[ReferenceRow]) -> None:
        whole = scan_names(backend)
        for made in names:
            if made.name != "b/1":
                backend.remove_reference(made)
        left = [one for one in whole if one.name == "b/1"]

        assert [backend.scan_references(ScanSplit(), one.position, 9) for one in whole] == [
            left if place < whole.index(left[0]) else [] for place in range(len(whole))
        ]

    def test_scan_sees_rows_once_whatever_comes_and_goes(self, backend: Backend) -> None:
        lasting = [row(number) for number in range(0, 300, 3)]
        backend.write_objects(lasting)
        found: list[ObjectKey] = []
        for step in range(300):
            page = backend.scan_objects(ScanSplit(), found[-1].position if found else None, 7)
            if not page:
                break
            found += page
            backend.write_objects([row(step * 3 + 1)])
            backend.delete_objects([key(row(max(1, step * 3 - 20)))])
        seen = [one.id for one in found]

        assert len(set(seen)) == len(seen)
        assert {made.id for made in lasting} <= set(seen)

    def test_repeated_write_does_not_move_a_row_in_the_scan(self, backend: Backend, rows: list[ObjectRow]) -> None:
        before = scan(backend)
        backend.write_objects([made for made in rows if made.parts == 1][::-1])

        assert scan(backend) == before


class TestOrder:
    def test_objects_come_by_realm_id_and_part(self, ordered: Backend, rows: list[ObjectRow]) -> None:
        assert scan(ordered, limit=3) == [key(made) for made in rows]

    def test_references_come_by_realm_and_name(self, ordered: Backend, names: list[ReferenceRow]) -> None:
        assert scan_names(ordered, limit=2) == [reference_key(made) for made in names]

    def test_scan_of_one_realm_sees_no_other(self, ordered: Backend, rows: list[ObjectRow], names: list[ReferenceRow]) -> None:
        for realm in (REALM, OTHER, RealmKey(REALM + 1)):
            assert scan(ordered, ScanSplit(realm), limit=2) == [key(made) for made in rows if made.realm == realm]
            assert scan_names(ordered, ScanSplit(realm), limit=2) == [reference_key(n) for n in names if n.realm == realm]

    def test_numbers_are_in_order_of_their_size(self, ordered: Backend) -> None:
        numbers = [0, 9, 10, 255, 256, (1 << 31) - 1, 1 << 31, 1 << 53, (1 << 53) + 1, LARGEST - 1, LARGEST]
        rows = [row(number, realm=realm) for realm in numbers for number in numbers]
        ordered.write_objects(random.Random(1).sample(rows, len(rows)))

        assert scan(ordered, limit=50) == [key(made) for made in rows]

    def test_parts_are_in_order_of_their_number(self, ordered: Backend) -> None:
        made = in_parts(5, *[b""] * 300)
        ordered.write_objects(made[::-1])

        assert scan(ordered, limit=70) == [key(part) for part in made]

    def test_rows_written_behind_a_scan_alone_are_seen(self, ordered: Backend) -> None:
        ordered.write_objects([row(number) for number in (10, 20, 30)])
        first = ordered.scan_objects(ScanSplit(REALM), None, 2)
        ordered.write_objects([row(5), row(25), row(15)])

        assert [one.id for one in ordered.scan_objects(ScanSplit(REALM), first[-1].position, 10)] == [25, 30]


class TestEndsOfSplits:
    """A split begins behind ``after`` and ends with ``until``."""

    @pytest.mark.parametrize("limit", [1, 3, 100])
    def test_every_pair_of_ends_cuts_the_scan_there(self, backend: Backend, rows: list[ObjectRow], limit: int) -> None:
        whole = scan(backend)
        for start in range(-1, len(whole)):
            for end in range(max(start, 0), len(whole) + 1):
                after = whole[start].position if start >= 0 else None
                until = whole[end].position if end < len(whole) else None

                assert scan(backend, ScanSplit(None, after, until), limit=limit) == whole[start + 1 : end + 1]

    def test_same_holds_for_references(self, backend: Backend, names: list[ReferenceRow]) -> None:
        whole = scan_names(backend)
        for start in range(-1, len(whole)):
            for end in range(max(start, 0), len(whole) + 1):
                after = whole[start].position if start >= 0 else None
                until = whole[end].position if end < len(whole) else None

                assert scan_names(backend, ScanSplit(None, after, until), limit=2) == whole[start + 1 : end + 1]

    def test_ends_hold_within_a_realm(self, ordered: Backend, rows: list[ObjectRow], names: list[ReferenceRow]) -> None:
        mine = [key(made) for made in rows if made.realm == REALM]

        assert scan(ordered, ScanSplit(REALM, (REALM, ObjectId(2), 0), (REALM, ObjectId(1 << 40), 0)), limit=2) == mine[2:5]
        assert scan_names(ordered, ScanSplit(REALM, (REALM, "a"), (REALM, "b/10"))) == [reference_key(n) for n in names[1:3]]

    def test_ends_need_not_exist(self, ordered: Backend, rows: list[ObjectRow]) -> None:
        split = ScanSplit(REALM, (REALM, ObjectId(1), 7), (REALM, ObjectId(2), 1))

        assert scan(ordered, split) == [key(made) for made in rows[1:3]]

    def test_ends_in_other_realms_let_no_other_realms_rows_in(self, ordered: Backend, rows: list[ObjectRow]) -> None:
        wide = ScanSplit(REALM, (RealmKey(0), ObjectId(0), 0), (RealmKey(LARGEST), ObjectId(0), 0))

        assert scan(ordered, wide) == [key(made) for made in rows if made.realm == REALM]
        assert scan(ordered, ScanSplit(REALM, (OTHER, ObjectId(0), 0), None)) == []
        assert scan(ordered, ScanSplit(REALM, None, (RealmKey(REALM - 1), ObjectId(LARGEST), 0))) == []

    def test_position_before_the_split_begins_it(self, ordered: Backend, rows: list[ObjectRow]) -> None:
        split = ScanSplit(REALM, (REALM, ObjectId(2), 0), None)

        assert ordered.scan_objects(split, (REALM, ObjectId(0), 0), 1) == [key(rows[2])]

    def test_position_at_the_end_of_a_split_is_the_end(self, backend: Backend, rows: list[ObjectRow]) -> None:
        whole = scan(backend)

        assert backend.scan_objects(ScanSplit(None, None, whole[2].position), whole[2].position, 10) == []


IDS: dict[str, Sequence[int]] = {
    "none": [],
    "one": [5],
    "three": [1, 2, 1 << 50],
    "next to each other": range(100_000, 100_900),
    "most in one second": [*range(1 << 50, (1 << 50) + 1000), *range(0, 1 << 55, 1 << 51)],
    "most at the end": [*range(0, 30), *range(LARGEST - 1000, LARGEST + 1)],
    "at random": random.Random(9).sample(range(LARGEST), 900),
}
every_distribution = pytest.mark.parametrize("ids", IDS.values(), ids=IDS)
Cut = Callable[..., list[ScanSplit[Any]]]


class TestSplits:
    @every_distribution
    @pytest.mark.parametrize("count", long_but_for({2}, [1, 2, 4, 7]))
    def test_splits_of_a_store_share_the_scan_fairly(self, backend: Backend, ids: Sequence[int], count: int) -> None:
        backend.write_objects([row(number, realm=REALM + number % 3) for number in ids])
        splits = backend.split_objects(None, count)

        self.check(splits, count, [len(scan(backend, split)) for split in splits], len(ids))
        assert [one for split in splits for one in scan(backend, split, limit=100)] == scan(backend)

    @every_distribution
    @pytest.mark.parametrize("count", long_but_for({5}, [2, 5]))
    def test_splits_of_a_realm_are_its_scan_in_fair_shares(self, ordered: Backend, ids: Sequence[int], count: int) -> None:
        ordered.write_objects([row(number, realm=realm) for number in ids for realm in (REALM, REALM + 1)])
        splits = ordered.split_objects(REALM, count)

        self.check(splits, count, [len(scan(ordered, split)) for split in splits], len(ids))
        assert {split.realm for split in splits} == {REALM}
        assert [one for split in splits for one in scan(ordered, split)] == scan(ordered, ScanSplit(REALM))

    @pytest.mark.parametrize("rows", [0, 1, 3, 400])
    @pytest.mark.parametrize("count", [1, 2, 5])
    def test_splits_of_references_are_the_whole_scan_in_fair_shares(self, backend: Backend, rows: int, count: int) -> None:
        backend.create_references([reference(f"branch/{number}", realm=REALM + number % 2) for number in range(rows)])
        splits = backend.split_references(None, count)

        self.check(splits, count, [len(scan_names(backend, split)) for split in splits], rows)
        assert [one for split in splits for one in scan_names(backend, split, limit=60)] == scan_names(backend)

    def test_splits_of_a_realms_references_are_its_own(self, ordered: Backend) -> None:
        ordered.create_references([reference(f"{number}", realm=REALM + number % 2) for number in range(300)])
        splits = ordered.split_references(REALM, 3)

        self.check(splits, 3, [len(scan_names(ordered, split)) for split in splits], 150)
        assert [one for split in splits for one in scan_names(ordered, split)] == scan_names(ordered, ScanSplit(REALM))

    def check(self, splits: list[ScanSplit[Any]], count: int, sizes: list[int], rows: int) -> None:
        assert 1 <= len(splits) <= count
        assert [split.after for split in splits[1:]] == [split.until for split in splits[:-1]]
        assert (splits[0].after, splits[-1].until) == (None, None)
        assert max(sizes) <= 3 * rows / count + 3

    def test_rows_written_later_fall_into_just_one_split(self, backend: Backend) -> None:
        backend.write_objects([row(number) for number in range(1 << 20, (1 << 20) + 200)])
        splits = backend.split_objects(None, 4)
        later = [row(number, realm=realm) for number in (0, 1 << 19, LARGEST) for realm in (0, REALM, OTHER, LARGEST)]
        backend.write_objects([*later, *in_parts((1 << 20) + 49, b"a", b"b", b"c")])

        assert [one for split in splits for one in scan(backend, split)] == scan(backend)
        assert len(scan(backend)) == 200 + len(later) + 2

    def test_references_created_later_fall_into_just_one_split(self, backend: Backend) -> None:
        backend.create_references([reference(f"m{number:03}") for number in range(100)])
        splits = backend.split_references(None, 4)
        backend.create_references([reference(name, realm=realm) for name in "anxé" for realm in (0, REALM, LARGEST)])

        assert [one for split in splits for one in scan_names(backend, split)] == scan_names(backend)
        assert len(scan_names(backend)) == 112

    def test_splits_can_be_sent_to_other_processes(self, backend: Backend) -> None:
        backend.write_objects([row(number) for number in range(50)])
        backend.create_references([reference(f"{number}") for number in range(50)])
        splits = [*backend.split_objects(None, 3), *backend.split_references(None, 3)]

        assert pickle.loads(pickle.dumps(splits)) == splits
        assert {type(end) for split in splits for end in (split.after, split.until)} <= {tuple, type(None)}


class TestWithoutOrder:
    @pytest.mark.parametrize("call", ["scan_objects", "scan_references", "split_objects", "split_references"])
    def test_realm_alone_cannot_be_scanned_where_keys_have_no_order(self, backend: Backend, call: str) -> None:
        if backend.capabilities.ordered_keys:
            pytest.skip("it keeps keys in order")

        with pytest.raises(RefusedError):
            getattr(backend, call)(REALM, 3) if call.startswith("split") else getattr(backend, call)(ScanSplit(REALM), None, 3)


class TestRealmDeletion:
    @pytest.fixture
    def deleting(self, backend: Backend) -> Backend:
        if not backend.capabilities.bulk_realm_deletion:
            pytest.skip("it declares no deletion of realms")
        return backend

    @pytest.mark.parametrize("limit", [1, 3, 100])
    def test_realm_goes_in_batches_that_tell_how_many_went(
        self, deleting: Backend, rows: list[ObjectRow], names: list[ReferenceRow], limit: int
    ) -> None:
        counts: list[int] = []
        while not counts or (counts[-1] and len(counts) < 100):
            counts.append(deleting.delete_realm(REALM, limit))

        assert sum(counts) == len([made for made in [*rows, *names] if made.realm == REALM])
        assert max(counts) <= limit
        assert scan(deleting) == [key(made) for made in rows if made.realm == OTHER]
        assert scan_names(deleting) == [reference_key(made) for made in names if made.realm == OTHER]

    def test_batches_are_full_while_rows_are_left(self, deleting: Backend) -> None:
        deleting.write_objects([row(number) for number in range(100)])

        assert [deleting.delete_realm(REALM, 30) for _ in range(5)] == [30, 30, 30, 10, 0]

    def test_tombstones_and_large_rows_go_too(self, deleting: Backend) -> None:
        deleting.create_reference(dataclasses.replace(reference(), deleted=Micros(4)))
        deleting.write_objects(in_parts(1, *[b"x" * 300_000] * 20))

        assert deleting.delete_realm(REALM, 1000) + deleting.delete_realm(REALM, 1000) == 21
        assert (scan(deleting), scan_names(deleting)) == ([], [])

    @pytest.mark.parametrize("parts", [1, 2])
    def test_parts_half_deleted_do_not_outlive_the_next_write(self, deleting: Backend, parts: int) -> None:
        deleting.write_objects(in_parts(1, b"a", b"b", b"c", b"d"))
        deleting.delete_realm(REALM, 1)
        written = in_parts(1, *[b"x", b"y"][:parts])
        deleting.write_objects(written)

        assert scan(deleting) == [key(made) for made in written]

    def test_realm_without_rows_is_deleted_at_once(self, deleting: Backend, rows: list[ObjectRow]) -> None:
        assert deleting.delete_realm(RealmKey(REALM + 1), 10) == 0
        assert len(scan(deleting)) == len(rows)

    def test_it_is_refused_where_it_is_not_declared(self, backend: Backend) -> None:
        if backend.capabilities.bulk_realm_deletion:
            pytest.skip("it deletes realms")
        backend.write_objects([row(1)])
        with pytest.raises(RefusedError):
            backend.delete_realm(REALM, 10)

        assert scan(backend) == [key(row(1))]
