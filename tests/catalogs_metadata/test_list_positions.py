from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.catalogs.stored_metadata import place_elements

elements = st.lists(st.sampled_from([b"a", b"b", b"c", b"d", b"e"]), max_size=9)


def stays(before: list[bytes], after: list[bytes]) -> int:
    """How many elements of a list keep the position that they had."""
    held = place_elements([], [], before)
    now = place_elements(held, before, after)
    there = dict(zip(held, before, strict=True))
    return sum(there.get(position) == element for position, element in zip(now, after, strict=True))


def longest_common(before: list[bytes], after: list[bytes]) -> int:
    row = [0] * (len(after) + 1)
    for one in before:
        above, row = row, [0]
        for at, other in enumerate(after):
            row.append(above[at] + 1 if one == other else max(row[at], above[at + 1]))
    return row[-1]


@given(st.lists(elements, min_size=1, max_size=6))
def test_positions_ascend_through_all_versions(versions: list[list[bytes]]) -> None:
    held: list[int] = []
    before: list[bytes] = []
    for after in versions:
        held = place_elements(held, before, after)
        before = after
        assert len(held) == len(after)
        assert held == sorted(set(held))


@given(st.lists(st.integers(0, 30), unique=True), st.lists(st.integers(0, 30), unique=True))
def test_unique_elements_stay_as_many_as_can(before: list[int], after: list[int]) -> None:
    one, other = [[b"%d" % number for number in numbers] for numbers in (before, after)]

    assert stays(one, other) >= longest_common(one, other)


@pytest.mark.parametrize(("after", "staying"), [
    (b"bcdefgh", 7),
    (b"abcdefghij", 8),
    (b"cdefghij", 6),
    (b"abcXefgh", 7),
    (b"abcXYefgh", 7),
    (b"Xabcdefgh", 8),
    (b"abcdXefgh", 8),
    (b"bcdefgha", 7),
    (b"habcdefg", 7),
    (b"", 0),
])  # fmt: skip
def test_element_that_stays_keeps_its_position(after: bytes, staying: int) -> None:
    assert stays([bytes([one]) for one in b"abcdefgh"], [bytes([one]) for one in after]) == staying


def test_duplicates_keep_their_places_in_turn() -> None:
    assert stays([b"a", b"a", b"b", b"a"], [b"a", b"b", b"a", b"a"]) == 3


def test_elements_without_room_are_all_placed_anew() -> None:
    assert place_elements([5, 6], [b"a", b"b"], [b"a", b"x", b"b"]) == place_elements([], [], [b"a", b"x", b"b"])


def test_element_before_the_first_position_is_placed_anew() -> None:
    assert place_elements([0], [b"a"], [b"x", b"a"]) == place_elements([], [], [b"x", b"a"])
