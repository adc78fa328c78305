"""Where an index can be divided, to be read by several at once."""

from __future__ import annotations

import itertools

import pytest
from shelves import MANY, ROOMY, Shelf, filled, reopened

from headwater.index import IndexLimits


@pytest.mark.parametrize("limits", [ROOMY, MANY])
def test_stretches_between_bounds_are_the_whole_index(limits: IndexLimits) -> None:
    shelf = Shelf()
    index = reopened(shelf, filled(shelf, 2000, limits))
    bounds: list[bytes | None] = [None, *index.bounds(), None]
    found = [list(index.keys(start, end)) for start, end in itertools.pairwise(bounds)]

    assert [key for keys in found for key in keys] == list(index.keys())
    assert len(bounds) > 20 and all(found)


def test_bounds_of_a_range_are_those_within_it() -> None:
    shelf = Shelf()
    index = reopened(shelf, filled(shelf, 2000, MANY))

    assert index.bounds(b"000500", b"000900") == [key for key in index.bounds() if b"000500" < key < b"000900"]


def test_no_stripe_is_read_for_the_bounds() -> None:
    shelf = Shelf()
    index = reopened(shelf, filled(shelf, 2000, MANY))
    index.bounds()

    assert {shelf.rows[object_id][0] for ids in shelf.asked for object_id in ids} == {"stripe-list"}


def test_index_that_has_not_spilled_is_not_divided() -> None:
    shelf = Shelf()

    assert reopened(shelf, filled(shelf, 3, ROOMY)).bounds() == []
