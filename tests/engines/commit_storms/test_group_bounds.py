"""How large a group becomes: so many members, and so many bytes, as the settings say."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from callers import in_line
from counters import ADD, assert_exact, count, counted, tell
from grounds import Ground
from groups import a_group, groups_in
from test_group_members import Burden

from headwater.commits import Transaction, commit_change, read_log
from headwater.index import IndexValue
from headwater.settings import Settings

Make = Callable[[Settings], Ground]


def bounded(**bounds: int) -> Settings:
    return Settings(commit_timeout_seconds=20, commit_member_seconds=20, **bounds)  # type: ignore[arg-type]


def test_sixty_four_members_at_most(make_ground: Make) -> None:
    ground = make_ground(bounded())
    journal = a_group(ground.rows, [ADD] * 100)

    assert [len(group) for group in groups_in(ground.rows)] == [64, 36]
    assert assert_exact(ground.rows, journal) == 100


@pytest.mark.parametrize(("members", "sizes"), [(1, [1] * 7), (3, [3, 3, 1]), (7, [7])])
def test_members_of_a_group_are_as_many_as_set(make_ground: Make, members: int, sizes: list[int]) -> None:
    ground = make_ground(bounded(commit_group_members=members))
    journal = a_group(ground.rows, [ADD] * 7)

    assert [len(group) for group in groups_in(ground.rows)] == sizes
    assert assert_exact(ground.rows, journal) == 7


def carrying(size: int) -> Callable[[Transaction], int]:
    def change(tx: Transaction) -> int:
        number = counted(ADD)(tx)
        tx.index("burdens").put(b"%05d" % number, IndexValue(tx.add_object(Burden(data=Random(number).randbytes(size)))))
        return number

    return change


def a_heavy_group(ground: Ground, sizes: list[int]) -> list[Any]:
    with in_line() as held:

        def first(tx: Transaction) -> int:
            held.hold(tx)
            return carrying(sizes[0])(tx)

        held.lead(lambda: tell(ground.rows, 0, ADD, first))
        for client, size in enumerate(sizes[1:], 1):
            held.call(lambda client=client, size=size: tell(ground.rows, client, ADD, carrying(size)))  # type: ignore[misc]
    return [caller.result() for caller in held.callers]


def test_bytes_of_a_group_are_as_many_as_set(make_ground: Make) -> None:

    ground = make_ground(bounded(commit_group_bytes=100_000))
    journal = a_heavy_group(ground, [30_000] * 12)
    sizes = [len(group) for group in groups_in(ground.rows)]

    assert max(sizes) <= 4, "a fourth member is what took it beyond"
    assert sum(sizes) == 12
    assert assert_exact(ground.rows, journal) == 12


def test_member_beyond_the_bytes_is_committed_all_the_same(make_ground: Make) -> None:
    ground = make_ground(bounded(commit_group_bytes=10_000))
    journal = a_heavy_group(ground, [10, 1_000_000, 10])

    assert assert_exact(ground.rows, journal) == 3


def test_lone_commit_has_no_company(make_ground: Make) -> None:
    ground = make_ground(bounded())
    for client in range(3):
        tell(ground.rows, client)

    assert [(one.commit.base, one.commit.depth) for one in read_log(ground.rows, "main")] == [(None, 0)] * 3


def test_depths_count_from_the_base_beneath(make_ground: Make) -> None:
    ground = make_ground(bounded(commit_group_members=3))
    beneath = tell(ground.rows, "beneath").commit_id
    a_group(ground.rows, [ADD] * 6)
    groups = groups_in(ground.rows)

    assert [[one.commit.depth for one in group] for group in groups] == [[0], [1, 2, 0], [1, 2, 0]]
    assert [one.commit.base for one in groups[1][:2]] == [beneath] * 2
    assert [one.commit.base for one in groups[2][:2]] == [groups[1][-1].id] * 2


def test_first_group_has_no_base(make_ground: Make) -> None:
    ground = make_ground(bounded())
    a_group(ground.rows, [ADD] * 3)

    assert [one.commit.base for one in read_log(ground.rows, "main")] == [None] * 3
    assert commit_change(ground.rows, "main", count).result == 3


def test_group_of_long_commits_spills_as_lone_ones_do(make_ground: Make) -> None:
    ground = make_ground(bounded(index_embedded_bytes=1024, index_stripe_bytes=1024))

    def wide(tx: Transaction) -> int:
        number = counted(ADD)(tx)
        for key in range(40):
            tx.index("wide").put(b"%03d/%03d" % (key, number), IndexValue(None, b"v%d" % number))
        return number

    with in_line() as held:

        def first(tx: Transaction) -> int:
            held.hold(tx)
            return wide(tx)

        held.lead(lambda: tell(ground.rows, 0, ADD, first))
        for client in range(1, 8):
            held.call(lambda client=client: tell(ground.rows, client, ADD, wide))  # type: ignore[misc]
    cold = ground.rows.without_cache()

    for number, one in enumerate(read_log(cold, "main", oldest_first=True), 1):
        assert [key for key, _ in one.index("wide").range()] == [
            b"%03d/%03d" % (k, n) for k in range(40) for n in range(1, number + 1)
        ]
    assert assert_exact(ground.rows, [caller.result() for caller in held.callers]) == 8
