"""What every backend promises of references."""

from __future__ import annotations

import dataclasses
import unicodedata

import pytest

from headwater.clock import Micros
from headwater.errors import SwapConflictError
from headwater.store import Backend, ObjectId, RealmKey, ReferenceMove, ReferenceRow
from specimens import LARGEST, OTHER, REALM, find_reference, race, reference, reference_key, scan_names

NAMES = [
    "a",
    "A",
    "main",
    "Main",
    "main ",
    " main",
    "main/",
    "main//",
    "b/1",
    "b/10",
    "b/2",
    ".",
    "..",
    "$set",
    "a.b",
    "%",
    "_",
    "*",
    "'; --",
    '"',
    "\\",
    "\\x00",
    "\x01",
    "\t",
    "line\nbreak",
    "0",
    "1e3",
    "null",
    unicodedata.normalize("NFC", "é"),
    unicodedata.normalize("NFD", "é"),
    "ß",
    "ss",
    "ı",
    "i",
    "\ufeffmain",
    "\uffff",
    "\U0001f30a",
    "x" * 500,
    "x" * 499,
    "é" * 250,
    "\U0001f30a" * 125,
]
"""Names that a database might take for one another, or put in an order of its own; up to 500 bytes of UTF-8."""


class TestCreation:
    def test_created_reference_is_read_back_whole(self, backend: Backend) -> None:
        made = dataclasses.replace(
            reference(version=1 << 62),
            recent=(ObjectId(6), ObjectId(LARGEST), ObjectId(0)),
            moves=(ReferenceMove(ObjectId(9), Micros(77)), ReferenceMove(ObjectId(LARGEST), Micros(0))),
            deleted=Micros(99),
        )
        backend.create_reference(made)

        assert find_reference(backend) == made

    @pytest.mark.parametrize("realm", [0, LARGEST - 1, LARGEST])
    def test_least_and_the_largest_numbers_are_kept(self, backend: Backend, realm: int) -> None:
        made = dataclasses.replace(reference(realm=realm, pointer=realm, version=realm), created=Micros(0), deleted=Micros(0))
        backend.create_reference(made)

        assert find_reference(backend, realm=realm) == made

    def test_second_creation_is_beaten_and_changes_nothing(self, backend: Backend) -> None:
        backend.create_reference(reference())
        with pytest.raises(SwapConflictError):
            backend.create_reference(reference(pointer=8))

        assert find_reference(backend) == reference()

    def test_creation_over_a_tombstone_is_beaten(self, backend: Backend) -> None:
        buried = dataclasses.replace(reference(), deleted=Micros(9))
        backend.create_reference(buried)
        with pytest.raises(SwapConflictError):
            backend.create_reference(reference(version=6))

        assert find_reference(backend) == buried

    def test_same_name_in_another_realm_is_another_reference(self, backend: Backend) -> None:
        backend.create_reference(reference())
        backend.create_reference(reference(realm=OTHER, pointer=8))

        assert find_reference(backend) == reference()
        assert find_reference(backend, realm=OTHER) == reference(realm=OTHER, pointer=8)

    def test_reference_keeps_thousands_of_moves(self, backend: Backend) -> None:
        moves = tuple(ReferenceMove(ObjectId(LARGEST - number), Micros(number)) for number in range(4000))
        made = dataclasses.replace(reference(), moves=moves, recent=tuple(ObjectId(number) for number in range(20)))
        backend.create_reference(made)
        moved = dataclasses.replace(made, moves=moves[1:], version=6)
        backend.swap_reference(made, moved)

        assert find_reference(backend) == moved

    def test_one_of_many_racing_creations_wins(self, backend: Backend) -> None:
        won = race(8, lambda number: backend.create_reference(reference(pointer=number)) or number)
        found = find_reference(backend)

        assert found is not None
        assert [number for number in won if number is not SwapConflictError] == [found.pointer]


class TestBulkCreation:
    def test_creation_says_in_order_which_names_were_free(self, backend: Backend) -> None:
        backend.create_reference(reference("b"))
        rows = [reference("c", pointer=1), reference("b", pointer=2), reference("a", pointer=None)]

        assert backend.create_references(rows) == [True, False, True]
        assert backend.read_references(REALM, ["a", "b", "c"]) == [rows[2], reference("b"), rows[0]]

    def test_creation_keeps_every_row_whole(self, backend: Backend) -> None:
        rows = [
            dataclasses.replace(reference("a"), recent=(ObjectId(6),), moves=(ReferenceMove(ObjectId(9), Micros(77)),)),
            dataclasses.replace(reference("b", version=LARGEST), deleted=Micros(4)),
            reference("a", realm=OTHER, pointer=None),
        ]

        assert backend.create_references(rows) == [True, True, True]
        assert [find_reference(backend, made.name, made.realm) for made in rows] == rows

    def test_none_is_made_of_none(self, backend: Backend) -> None:
        assert backend.create_references([]) == []

    def test_thousand_come_at_once(self, backend: Backend) -> None:
        rows = [reference(f"branch/{number}", pointer=number) for number in range(1000)]

        assert backend.create_references(rows) == [True] * 1000
        assert backend.create_references(rows) == [False] * 1000
        assert backend.read_references(REALM, [made.name for made in rows]) == rows

    def test_creations_that_race_make_each_name_once(self, backend: Backend) -> None:
        names = [f"name {number}" for number in range(20)]

        def create(number: int) -> list[bool]:
            order = names if number % 2 else names[::-1]  # in different orders, lest one wait for the other for ever
            made = backend.create_references([reference(name, pointer=number) for name in order])
            return made if number % 2 else made[::-1]

        answers = race(6, create)
        winners = [[number for number in range(6) if answers[number][place]] for place in range(len(names))]

        assert [[found.pointer] for found in backend.read_references(REALM, names) if found] == winners


class TestNames:
    def test_names_that_resemble_one_another_are_different_references(self, backend: Backend) -> None:
        rows = [reference(name, pointer=place) for place, name in enumerate(NAMES)]

        assert backend.create_references(rows) == [True] * len(rows)
        assert backend.read_references(REALM, NAMES) == rows

    def test_name_is_no_pattern(self, backend: Backend) -> None:
        backend.create_reference(reference("main"))

        assert backend.read_references(REALM, ["m%", "m*", "main ", "MAIN", "_ain", "^main$", ".*"]) == [None] * 7

    def test_every_name_can_be_swapped_and_removed(self, backend: Backend) -> None:
        for name in NAMES:
            backend.create_reference(reference(name))
        for name in NAMES:
            backend.swap_reference(reference(name), reference(name, version=6))
        for name in NAMES[1:]:
            backend.remove_reference(reference(name, version=6))

        assert scan_names(backend) == [reference_key(reference(NAMES[0], version=6))]

    def test_scans_tell_every_name_by_its_bytes_in_order(self, backend: Backend) -> None:
        backend.create_references([reference(name) for name in NAMES])
        found = [made.name for made in scan_names(backend, limit=7)]
        in_order = sorted(NAMES, key=str.encode)

        assert (found if backend.capabilities.ordered_keys else sorted(found, key=str.encode)) == in_order


class TestReads:
    def test_bulk_reads_answer_in_order_with_holes_and_repeats(self, backend: Backend) -> None:
        backend.create_reference(reference("a"))
        backend.create_reference(reference("c"))
        backend.create_reference(reference("b", realm=OTHER))

        assert backend.read_references(REALM, ["c", "b", "a", "c"]) == [reference("c"), None, reference("a"), reference("c")]
        assert backend.read_references(REALM, []) == []

    def test_thousand_are_read_at_once(self, backend: Backend) -> None:
        rows = [reference(f"{number:04}", pointer=number) for number in range(0, 1000, 3)]
        backend.create_references(rows)
        names = [f"{number * 7 % 1000:04}" for number in range(1000)] + ["0000", "0001", "0000"]
        there = {made.name: made for made in rows}

        assert backend.read_references(REALM, names) == [there.get(name) for name in names]


class TestSwaps:
    def test_swap_replaces_everything(self, backend: Backend) -> None:
        old = dataclasses.replace(
            reference(), recent=(ObjectId(1), ObjectId(2)), moves=(ReferenceMove(ObjectId(1), Micros(2)),), deleted=Micros(9)
        )
        new = dataclasses.replace(reference(pointer=8, version=6), created=Micros(4), recent=(ObjectId(7),))
        backend.create_reference(old)
        backend.swap_reference(old, new)

        assert find_reference(backend) == new

    def test_swap_leaves_all_others_alone(self, backend: Backend) -> None:
        others = [reference("mai"), reference("main/"), reference("Main"), reference(realm=OTHER), reference(realm=REALM + 1)]
        backend.create_references([reference(), *others])
        backend.swap_reference(reference(), reference(pointer=8, version=6))

        assert [find_reference(backend, made.name, made.realm) for made in others] == others

    @pytest.mark.parametrize(
        "seen",
        [reference(version=4), reference(version=6), reference(pointer=8), reference(pointer=None), reference(realm=OTHER)],
    )
    def test_beaten_swap_leaves_the_reference_alone(self, backend: Backend, seen: ReferenceRow) -> None:
        backend.create_reference(reference())
        with pytest.raises(SwapConflictError):
            backend.swap_reference(seen, reference(pointer=9, version=6))

        assert scan_names(backend) == [reference_key(reference())]

    def test_no_pointer_and_pointer_zero_are_different(self, backend: Backend) -> None:
        backend.create_reference(reference(pointer=None))
        with pytest.raises(SwapConflictError):
            backend.swap_reference(reference(pointer=0), reference(version=6))
        backend.swap_reference(reference(pointer=None), reference(pointer=0, version=6))
        with pytest.raises(SwapConflictError):
            backend.swap_reference(reference(pointer=None, version=6), reference(version=7))

        assert find_reference(backend) == reference(pointer=0, version=6)

    def test_swap_may_take_the_pointer_away(self, backend: Backend) -> None:
        backend.create_reference(reference())
        backend.swap_reference(reference(), reference(pointer=None, version=6))
        backend.swap_reference(reference(pointer=None, version=6), reference(pointer=None, version=7))

        assert find_reference(backend) == reference(pointer=None, version=7)

    def test_swap_by_the_same_row_is_not_beaten(self, backend: Backend) -> None:
        backend.create_reference(reference())
        backend.swap_reference(reference(), reference())

        assert find_reference(backend) == reference()

    def test_swap_compares_pointer_and_version_alone(self, backend: Backend) -> None:
        backend.create_reference(dataclasses.replace(reference(), recent=(ObjectId(4),)))
        backend.swap_reference(dataclasses.replace(reference(), created=Micros(1)), reference(version=6))

        assert find_reference(backend) == reference(version=6)

    def test_largest_versions_are_told_apart(self, backend: Backend) -> None:
        backend.create_reference(reference(version=LARGEST - 1))
        with pytest.raises(SwapConflictError):
            backend.swap_reference(reference(version=LARGEST), reference())
        with pytest.raises(SwapConflictError):
            backend.swap_reference(reference(version=LARGEST - 2), reference())
        backend.swap_reference(reference(version=LARGEST - 1), reference(version=LARGEST))

        assert find_reference(backend) == reference(version=LARGEST)

    def test_swap_of_an_absent_reference_is_beaten(self, backend: Backend) -> None:
        with pytest.raises(SwapConflictError):
            backend.swap_reference(reference(), reference(version=6))

        assert find_reference(backend) is None

    def test_tombstone_is_a_row_like_any_other(self, backend: Backend) -> None:
        buried = dataclasses.replace(reference(version=6), deleted=Micros(60))
        backend.create_reference(reference())
        backend.swap_reference(reference(), buried)

        assert find_reference(backend) == buried
        assert scan_names(backend) == [reference_key(buried)]

    def test_one_of_many_racing_swaps_wins(self, backend: Backend) -> None:
        backend.create_reference(reference())
        won = race(8, lambda number: backend.swap_reference(reference(), reference(pointer=number, version=6)) or number)

        assert [reference(pointer=number, version=6) for number in won if number is not SwapConflictError] == [
            find_reference(backend)
        ]

    def test_counter_that_many_swap_loses_nothing(self, backend: Backend) -> None:
        backend.create_reference(reference(version=0))

        def count(_: int) -> int:
            swapped = 0
            for _ in range(10_000):
                seen = find_reference(backend)
                assert seen is not None
                try:
                    backend.swap_reference(seen, dataclasses.replace(seen, version=seen.version + 1))
                    swapped += 1
                except SwapConflictError:
                    continue
                if swapped == 10:
                    break
            return swapped

        assert race(5, count) == [10] * 5
        assert find_reference(backend) == reference(version=50)


class TestRemoval:
    def test_removal_takes_the_row_away_and_no_other(self, backend: Backend) -> None:
        others = [reference("main "), reference(realm=OTHER)]
        backend.create_references([reference(), *others])
        backend.remove_reference(reference())

        assert find_reference(backend) is None
        assert [find_reference(backend, made.name, made.realm) for made in others] == others

    def test_name_that_was_removed_is_free(self, backend: Backend) -> None:
        backend.create_reference(reference())
        backend.remove_reference(reference())
        backend.create_reference(reference(pointer=9, version=1))

        assert find_reference(backend) == reference(pointer=9, version=1)

    def test_row_without_pointer_can_be_removed(self, backend: Backend) -> None:
        backend.create_reference(reference(pointer=None))
        backend.remove_reference(reference(pointer=None))

        assert find_reference(backend) is None

    @pytest.mark.parametrize(
        "seen",
        [reference(version=4), reference(pointer=8), reference(pointer=None), reference("absent"), reference(realm=OTHER)],
    )
    def test_beaten_removal_leaves_the_row(self, backend: Backend, seen: ReferenceRow) -> None:
        backend.create_reference(reference())
        with pytest.raises(SwapConflictError):
            backend.remove_reference(seen)

        assert find_reference(backend) == reference()

    def test_race_of_a_swap_and_removals_has_one_winner(self, backend: Backend) -> None:
        backend.create_reference(reference())

        def act(number: int) -> int:
            if number % 2:
                backend.remove_reference(reference())
            else:
                backend.swap_reference(reference(), reference(version=6))
            return number

        won = [number for number in race(8, act) if number is not SwapConflictError]

        assert len(won) == 1
        assert find_reference(backend) == (None if won[0] % 2 else reference(version=6))


def test_realm_keys_next_to_each_other_do_not_mix(backend: Backend) -> None:
    realms = [0, 1, (1 << 32) - 1, 1 << 32, LARGEST - 1, LARGEST]
    rows = [reference(realm=realm, pointer=place) for place, realm in enumerate(realms)]
    backend.create_references(rows)

    assert [backend.read_references(RealmKey(realm), ["main"]) for realm in realms] == [[made] for made in rows]
