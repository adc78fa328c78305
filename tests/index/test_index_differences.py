"""What differs between two indexes is told in key order, and what they share is not read."""

from __future__ import annotations

import random

import pytest
from shelves import MANY, TINY, Shelf, commit, filled, numbered, reopened

from headwater.index import Index, IndexDifference, IndexEditor, IndexLimits, IndexValue, StoredIndex, index_differences
from headwater.store import ObjectId


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


def expected(before: Index, after: Index, start: bytes | None = None, end: bytes | None = None) -> list[IndexDifference]:
    """The same, found by reading everything."""
    one, other = dict(before.range(start, end)), dict(after.range(start, end))
    keys = sorted({*one, *other})
    return [IndexDifference(key, one.get(key), other.get(key)) for key in keys if one.get(key) != other.get(key)]


def changes(chance: random.Random, count: int, number: int) -> dict[bytes, IndexValue | None]:
    """Some keys removed, some with another value, some new, and some as they are."""
    there = numbered(count)
    some = chance.sample(sorted(there), min(30, count))
    edits = [None, IndexValue(ObjectId(1), b"%d" % number)]
    return {key: chance.choice([*edits, there[key]]) for key in some} | {
        b"%06d+%d" % (number, number): IndexValue(None, b"new")
    }


def versions(shelf: Shelf, limits: IndexLimits, count: int, seed: int) -> list[StoredIndex]:
    chance = random.Random(seed)
    found = [filled(shelf, count, limits)]
    for number in range(12):
        found.append(commit(shelf, reopened(shelf, found[-1]), changes(chance, count, number), limits))
    return found


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("limits", "count"), [(TINY, 3), (TINY, 120), (MANY, 1500)])
def test_every_difference_of_any_two_versions_is_told_in_order(
    shelf: Shelf, limits: IndexLimits, count: int, seed: int
) -> None:
    made = versions(shelf, limits, count, seed)
    for at in (0, 1, 5, 11):
        before, after = reopened(shelf, made[at]), reopened(shelf, made[-1])

        assert list(index_differences(before, after)) == expected(before, after)
        assert list(index_differences(after, before)) == expected(after, before)


@pytest.mark.long
@pytest.mark.parametrize("limits", [TINY, MANY])
def test_range_has_the_differences_within_it(shelf: Shelf, limits: IndexLimits) -> None:
    made = versions(shelf, limits, 1500, 7)
    before, after = reopened(shelf, made[0]), reopened(shelf, made[-1])
    bounds = [None, b"", b"000000", b"000400", b"000401", b"000400+", b"001499", b"9"]
    for start, end in [(one, other) for one in bounds for other in bounds]:
        assert list(index_differences(before, after, start=start, end=end)) == expected(before, after, start, end)


def test_indexes_of_unlike_depth_are_compared(shelf: Shelf) -> None:
    few, many = filled(shelf, 5, TINY), filled(shelf, 2500, MANY)
    middle = filled(shelf, 100, TINY)
    assert [one.container.levels for one in (few, middle, many)] == [0, 1, 2]
    for one, other in ((few, middle), (middle, many), (few, many)):
        before, after = reopened(shelf, one), reopened(shelf, other)

        assert list(index_differences(before, after)) == expected(before, after)


def test_edits_that_are_not_stored_are_compared(shelf: Shelf) -> None:
    base = reopened(shelf, filled(shelf, 120, TINY))
    editor = IndexEditor(base)
    editor.remove(b"000007")
    above = IndexEditor(editor)
    above.put(b"000008", IndexValue(None, b"edited"))

    assert [found.key for found in index_differences(base, above)] == [b"000007", b"000008"]
    assert [found.key for found in index_differences(above, editor)] == [b"000008"]


def test_index_does_not_differ_from_itself_and_reads_no_stripe(shelf: Shelf) -> None:
    stored = filled(shelf, 2500, MANY)
    shelf.asked.clear()

    assert list(index_differences(reopened(shelf, stored), reopened(shelf, stored))) == []
    assert not any(shelf.asked)


def test_one_changed_key_among_many_reads_a_handful_of_parts(shelf: Shelf) -> None:
    stored = filled(shelf, 2500, MANY)
    after = commit(shelf, reopened(shelf, stored), {b"001234": IndexValue(None, b"changed")}, MANY)
    parts = len(shelf.rows)
    shelf.asked.clear()

    assert [found.key for found in index_differences(reopened(shelf, stored), reopened(shelf, after))] == [b"001234"]
    assert len({one for asked in shelf.asked for one in asked}) <= 8 < parts / 10
