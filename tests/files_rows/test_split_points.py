"""Split points: keys of the table, such that every part has rows, as even as the keys allow."""

from __future__ import annotations

from bisect import bisect_right

from hypothesis import given
from hypothesis import strategies as st

from headwater.files.data_files import KeySample
from headwater.files.leaf_splits import choose_points, even_limits

SAMPLES = st.lists(st.builds(KeySample, st.binary(max_size=2), st.integers(1, 100)), max_size=50)


@given(samples=SAMPLES, children=st.integers(2, 8))
def test_split_points_leave_no_part_empty(samples: list[KeySample], children: int) -> None:
    points = choose_points(samples, children=children)

    parts = {bisect_right(points, sample.key) for sample in samples}
    assert len(points) < children and points == sorted(set(points))
    assert not points or parts == set(range(len(points) + 1))


@given(samples=SAMPLES)
def test_leaf_with_two_keys_has_a_split_point(samples: list[KeySample]) -> None:
    keys = {sample.key for sample in samples}

    assert bool(choose_points(samples, children=2)) == (len(keys) > 1)


def test_split_point_follows_the_rows() -> None:
    samples = [KeySample(bytes([number]), 1) for number in range(100)] + [KeySample(b"\x5a", 1000)]

    assert choose_points(samples, children=2) == [b"\x5a"]


def test_even_keys_make_even_parts() -> None:
    samples = [KeySample(bytes([number]), 10) for number in range(100)]

    assert choose_points(samples, children=4) == [b"\x19", b"\x32", b"\x4b"]


def test_key_too_long_for_a_tree_is_no_split_point() -> None:
    samples = [KeySample(b"a", 10), KeySample(b"b" * 5000, 10), KeySample(b"c", 1)]

    assert choose_points(samples, children=2) == [b"c"]


@given(weights=st.lists(st.integers(0, 50), min_size=1, max_size=40), groups=st.integers(1, 10))
def test_even_limits_make_at_most_so_many_groups(weights: list[int], groups: int) -> None:
    limits = even_limits(weights, groups)

    assert len(limits) < groups or not limits
    assert limits == sorted(set(limits)) and all(0 < limit < len(weights) for limit in limits)


def test_even_limits_divide_even_weights_evenly() -> None:
    assert even_limits([10] * 8, 4) == [2, 4, 6]
