"""A visit to indexes that share their stripes: what each holds is told, what is shared is read once, what is hidden is not told."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from shelves import MANY, TINY, Shelf, commit, filled, numbered, reopened

from headwater.errors import CorruptionError
from headwater.index import IndexContainer, IndexLimits, IndexValue, SharedIndexScan, StoredIndex, count_first_bytes
from headwater.store import ObjectId


class Visitor:
    def __init__(self, shelf: Shelf) -> None:
        self.met: set[ObjectId] = set()
        self.visit = SharedIndexScan(shelf, is_new=self._meet, was_met=self.met.__contains__)

    def _meet(self, object_id: ObjectId) -> bool:
        assert object_id not in self.met
        self.met.add(object_id)
        return True

    def told(self, stored: StoredIndex) -> set[bytes]:
        held = stored.container
        fresh = IndexContainer(held.length, held.embedded, held.spilled, held.levels)
        return {data for some in self.visit.data(fresh) for data in some}


def held(shelf: Shelf, stored: StoredIndex) -> set[bytes]:
    return {value.data for _, value in reopened(shelf, stored).range()}


def changes(chance: random.Random, count: int, number: int) -> dict[bytes, IndexValue | None]:
    """Some keys removed and some with another value."""
    keys = chance.sample(sorted(numbered(count)), 12)
    return {key: None if chance.random() < 0.5 else IndexValue(ObjectId(1), b"%d %s" % (number, key)) for key in keys}


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


@pytest.mark.parametrize(("limits", "count", "levels"), [(TINY, 4, 0), (TINY, 120, 1), (MANY, 2500, 2)])
def test_all_that_one_index_holds_is_told(shelf: Shelf, limits: IndexLimits, count: int, levels: int) -> None:
    stored = filled(shelf, count, limits)

    assert stored.container.levels == levels
    assert Visitor(shelf).told(stored) == held(shelf, stored)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("limits", "count"), [(TINY, 120), (MANY, 1500)])
def test_visits_to_many_versions_tell_just_what_any_holds(shelf: Shelf, limits: IndexLimits, count: int, seed: int) -> None:
    chance = random.Random(seed)
    versions = [filled(shelf, count, limits)]
    for number in range(12):
        below = reopened(shelf, chance.choice(versions))
        versions.append(commit(shelf, below, changes(chance, count, number), limits))
    visited = chance.sample(versions, 6)
    visitor = Visitor(shelf)

    assert set().union(*(visitor.told(one) for one in visited)) == set().union(*(held(shelf, one) for one in visited))


def test_second_visit_reads_only_that_of_which_something_is_hidden(shelf: Shelf) -> None:
    stored, visitor = filled(shelf, 1500, MANY), Visitor(shelf)
    visitor.told(stored)
    first = sum(map(len, shelf.asked))
    shelf.asked.clear()
    visitor.told(stored)

    assert sum(map(len, shelf.asked)) == first - len(visitor.met)


def test_part_that_is_missing_ends_the_visit(shelf: Shelf) -> None:
    stored = filled(shelf, 120, TINY)
    shelf.rows.clear()

    with pytest.raises(CorruptionError):
        Visitor(shelf).told(stored)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("limits", "count"), [(TINY, 120), (MANY, 1500)])
def test_entries_are_counted_by_their_first_byte(shelf: Shelf, limits: IndexLimits, count: int, seed: int) -> None:
    """Whatever is hidden, added and removed above the stripes."""
    chance = random.Random(seed)
    stored = filled(shelf, count, limits)
    for number in range(12):
        stored = commit(shelf, reopened(shelf, stored), changes(chance, count, number), limits)
        walked = Counter(value.data[:1] for _, value in reopened(shelf, stored).range())

        assert count_first_bytes(shelf, stored.container) == walked
        assert walked.total() == stored.container.length
