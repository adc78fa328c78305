"""A counter incremented by many through answers that are lost ends exactly, or the callers were told which of theirs are open."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from callers import at_once
from counters import ADD, LOOK, NOT_DONE, OPEN, REFUSE, Answer, assert_exact, ids_of, tell
from grounds import HASTY, LENGTH, LOST_ANSWER, LOST_REQUEST, Ground
from others import two_hundred

from headwater.errors import UnavailableError
from headwater.settings import Settings
from headwater.store import RealmStore
from tiers import long_but_for

READS = ("read_references", "read_objects")
WISHES = (ADD, ADD, ADD, ADD, LOOK, REFUSE)


def work_of(rows: RealmStore, client: int, commits: int) -> Callable[[], list[Answer]]:
    chance = random.Random(client)
    return lambda: [tell(rows, client, chance.choice(WISHES)) for _ in range(commits)]


def test_database_that_cannot_be_read_leaves_nothing_open(make_ground: Callable[[Settings], Ground]) -> None:
    ground = make_ground(HASTY)
    ground.faults.fail("read_references", times=1_000_000)
    journal = at_once([lambda client=client: tell(ground.rows, client) for client in range(4)])  # type: ignore[misc]
    ground.faults.heal()

    assert [answer.kind for answer in journal] == [NOT_DONE] * 4
    assert assert_exact(ground.rows, [*journal, tell(ground.rows, 9)]) == 1


def test_waiter_behind_an_open_outcome_has_its_own_time_out(make_ground: Callable[[Settings], Ground]) -> None:
    ground = make_ground(HASTY)
    ground.faults.fail(ground.swap, **LOST_ANSWER)
    ground.faults.fail(ground.swap, at=2, times=1_000_000, fault=UnavailableError("away"))
    journal = at_once([lambda client=client: tell(ground.rows, client) for client in range(12)])  # type: ignore[misc]
    ground.faults.heal()

    assert {answer.kind for answer in journal} <= {OPEN, NOT_DONE}
    assert assert_exact(ground.rows, journal, deleted=ground.witness.deleted) == len(ids_of(journal, OPEN)) > 0


def lay_faults(ground: Ground, chance: random.Random, calls: int) -> None:
    """Faults of every kind among so many calls of each kind."""
    for method in ("write_and_swap", "swap_reference", "write_objects", "delete_objects", *READS):
        for at in chance.sample(range(1, calls), calls // 6):
            kinds: list[dict[str, Any]] = [{"before": True}, LOST_ANSWER, *([] if method in READS else [LOST_REQUEST])]
            ground.faults.fail(method, at=at, **chance.choice(kinds))


@pytest.mark.parametrize("seed", long_but_for({0}, range(4 * LENGTH)))
def test_storm_of_threads_through_lost_answers_ends_exactly(ground: Ground, seed: int) -> None:
    chance = random.Random(seed)
    second = ground.open()
    lay_faults(ground, chance, 60)
    works = [work_of(rows, client, 12) for client, rows in enumerate([ground.rows, second] * 4)]
    journal = [answer for answers in at_once(works) for answer in answers]
    ground.faults.heal()

    assert assert_exact(ground.rows, journal, deleted=ground.witness.deleted) > 20, f"seed {seed}"


@pytest.mark.parametrize("seed", long_but_for({0}, range(4 * LENGTH)))
def test_storm_with_outages_tells_which_commits_are_open(make_ground: Callable[[Settings], Ground], seed: int) -> None:
    ground, chance = make_ground(Settings(commit_timeout_seconds=0.15)), random.Random(seed)
    others: list[Answer] = []
    act = two_hundred(ground, others)
    for begin in chance.sample(range(2, 40), 2):
        ground.faults.fail(ground.swap, at=begin, **chance.choice([LOST_REQUEST, LOST_ANSWER]))
        ground.faults.fail(ground.swap, at=begin + 1, times=12, fault=UnavailableError("away"))
    ground.faults.intervene(ground.swap, act, at=60)
    journal = [answer for answers in at_once([work_of(ground.rows, client, 8) for client in range(8)]) for answer in answers]
    ground.faults.heal()
    total = assert_exact(ground.rows, [*journal, *others], deleted=ground.witness.deleted)

    told = sum(answer.kind == "told" and answer.wish == ADD for answer in [*journal, *others])
    assert told <= total <= told + len(ids_of(journal, OPEN)), f"seed {seed}"
