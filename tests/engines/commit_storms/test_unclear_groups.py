"""Combined commits whose one swap has an unclear answer: every member happens exactly once, or is told that it is open."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from callers import in_line
from counters import ADD, LOOK, NOT_DONE, OPEN, REFUSE, Answer, assert_exact, count, counted, ids_of, tell
from grounds import HASTY, LOST_ANSWER, Ground, both_ways
from groups import a_group
from others import two_hundred

from headwater.commits import Transaction, read_log
from headwater.errors import UnavailableError
from headwater.settings import Settings


@both_ways
def test_group_with_an_unclear_answer_happens_exactly_once(ground: Ground, fault: dict[str, Any]) -> None:
    journal = a_group(ground.rows, [ADD] * 6, lambda: ground.faults.fail(ground.swap, **fault))

    assert [answer.number for answer in journal] == [1, 2, 3, 4, 5, 6]
    assert assert_exact(ground.rows, journal, deleted=ground.witness.deleted) == 6


@both_ways
def test_group_is_found_out_under_two_hundred_commits_of_others(ground: Ground, fault: dict[str, Any]) -> None:
    journal: list[Answer] = []
    others = two_hundred(ground, journal)

    def plan() -> None:
        ground.faults.fail(ground.swap, **fault)
        ground.faults.intervene(ground.swap, others, at=2)

    told = a_group(ground.rows, [ADD, LOOK, ADD, REFUSE, ADD, ADD], plan)
    first = 1 if fault is LOST_ANSWER else 201
    assert [answer.number for answer in told] == [first, first, first + 1, first + 1, first + 2, first + 3]
    assert assert_exact(ground.rows, [*journal, *told], deleted=ground.witness.deleted) == 204


@both_ways
def test_database_away_until_the_time_out_leaves_every_member_open(
    make_ground: Callable[[Settings], Ground], fault: dict[str, Any]
) -> None:
    ground = make_ground(HASTY)

    def plan() -> None:
        ground.faults.fail(ground.swap, **fault)
        ground.faults.fail(ground.swap, at=2, times=1_000_000, fault=UnavailableError("away"))

    journal = a_group(ground.rows, [ADD] * 4, plan)
    ground.faults.heal()
    found = {one.id for one in read_log(ground.rows, "main")}

    assert [answer.kind for answer in journal] == [OPEN] * 4
    assert len(ids_of(journal, OPEN)) == 4
    assert ground.witness.deleted == []
    assert found == (ids_of(journal, OPEN) if fault is LOST_ANSWER else set())
    assert_exact(ground.rows, journal)


@both_ways
def test_look_on_top_of_an_open_outcome_is_not_answered(
    make_ground: Callable[[Settings], Ground], fault: dict[str, Any]
) -> None:
    ground = make_ground(HASTY)

    def plan() -> None:
        ground.faults.fail(ground.swap, **fault)
        ground.faults.fail(ground.swap, at=2, times=1_000_000, fault=UnavailableError("away"))

    journal = a_group(ground.rows, [ADD, LOOK, REFUSE], plan)
    ground.faults.heal()

    assert [answer.kind for answer in journal] == [OPEN, NOT_DONE, NOT_DONE]


def test_change_of_a_beaten_group_sees_what_beat_it(ground: Ground) -> None:
    others, seen = ground.open(is_safe=True), []

    def watched(tx: Transaction) -> int:
        seen.append(count(tx))
        return counted(ADD)(tx)

    journal: list[Answer] = []
    with in_line() as held:

        def first(tx: Transaction) -> int:
            held.hold(tx)
            return counted(ADD)(tx)

        held.lead(lambda: tell(ground.rows, 0, ADD, first))
        held.call(lambda: tell(ground.rows, 1, ADD, watched))
        held.call(lambda: tell(ground.rows, 2, REFUSE))
        ground.faults.intervene(ground.swap, lambda: journal.append(tell(others, 9)))
    told = [caller.result() for caller in held.callers]

    assert seen == [1, 2]
    assert [answer.number for answer in told] == [2, 3, 3]
    assert assert_exact(ground.rows, [*journal, *told]) == 3
