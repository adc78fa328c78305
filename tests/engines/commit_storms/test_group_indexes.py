"""Whatever the members of groups do to indexes that spill, each commit holds what the operations up to it make of nothing."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from callers import at_once, in_line
from grounds import LENGTH, LOST_ANSWER, LOST_REQUEST, Ground

from headwater.commits import Transaction, commit_change, read_log
from headwater.index import IndexValue
from headwater.settings import Settings
from headwater.store import ObjectId, RealmStore

Contents = dict[str, dict[bytes, IndexValue]]
NAMES = ("things", "others")
TINY = Settings(
    commit_timeout_seconds=20,
    commit_member_seconds=20,
    index_embedded_bytes=256,
    index_stripe_bytes=512,
    commit_group_members=9,
)


class Unwilling(Exception):
    """Raised by changes now and then, after they have edited."""


def editing(seed: int, seen: dict[ObjectId, Contents]) -> Callable[[RealmStore], None]:
    """A member that edits at random, and notes under its commit what it saw at the end of its last run."""

    def act(rows: RealmStore) -> None:
        mine: Contents = {}

        def change(tx: Transaction) -> None:
            chance = Random(seed)
            for _ in range(chance.choice((1, 2, 5, 30))):
                edit(tx, chance)
            if chance.random() < 0.15:
                raise Unwilling
            mine.clear()
            mine.update({name: dict(tx.index(name).range()) for name in NAMES})

        try:
            done = commit_change(rows, "main", change)
        except Unwilling:
            return
        if done.changed and done.commit_id is not None:
            seen[done.commit_id] = mine

    return act


def edit(tx: Transaction, chance: Random) -> None:
    index = tx.index(chance.choice(NAMES))
    key = b"%02d/%02d" % (chance.randrange(40), chance.randrange(20))
    what = chance.random()
    if what < 0.6:
        index.put(key, IndexValue(None, chance.randbytes(chance.choice((0, 8, 24, 24, 90)))))
    elif what < 0.8:
        index.remove(key)
    else:
        for found, _ in list(index.prefix(key[:3], limit=chance.randint(1, 20))):
            index.remove(found)


def assert_replayed(rows: RealmStore, seen: dict[ObjectId, Contents]) -> int:
    """Each commit, read cold, holds what its own change saw, and what all operations up to it make; returns how many there are."""
    cold = rows.without_cache(budget_bytes=1 << 24)
    now: Contents = {name: {} for name in NAMES}
    found = list(read_log(cold, "main", oldest_first=True))
    for one in found:
        for done in one.commit.operations:
            before = now[done.index].get(done.key)
            after = None if done.removed else IndexValue(done.object_id, done.data)
            assert before != after, "an operation that changes nothing"
            if after is None:
                del now[done.index][done.key]
            else:
                now[done.index][done.key] = after
        for name in NAMES:
            index = one.index(name)
            assert dict(index.range()) == now[name]
            assert len(index) == len(now[name])
        assert seen[one.id] == now
    assert len(found) == len(seen)
    return len(found)


@pytest.mark.parametrize("seed", range(3 * LENGTH))
def test_groups_in_line_hold_what_their_operations_make(make_ground: Callable[[Settings], Ground], seed: int) -> None:
    ground, seen, chance = make_ground(TINY), dict[ObjectId, Contents](), Random(seed)
    for _ in range(6):
        if chance.random() < 0.3:
            ground.faults.fail(ground.swap, **chance.choice((LOST_ANSWER, LOST_REQUEST)))
        with in_line() as held:
            held.lead(lambda: commit_change(ground.rows, "main", held.hold))
            for _ in range(chance.randint(1, 12)):
                act = editing(chance.randrange(1 << 30), seen)
                held.call(lambda act=act: act(ground.rows))  # type: ignore[misc]
        for caller in held.callers:
            caller.result()

    assert assert_replayed(ground.rows, seen) > 10


@pytest.mark.parametrize("seed", range(2 * LENGTH))
def test_storms_of_two_stores_hold_what_their_operations_make(make_ground: Callable[[Settings], Ground], seed: int) -> None:
    ground, seen, chance = make_ground(TINY), dict[ObjectId, Contents](), Random(seed)
    stores = [ground.rows, ground.open()]
    for at in chance.sample(range(2, 25), 6):
        ground.faults.fail(ground.swap, at=at, **chance.choice((LOST_ANSWER, LOST_REQUEST)))

    def work(client: int) -> Callable[[], Any]:
        seeds = [client * 1000 + number for number in range(8)]
        return lambda: [editing(seed * 100_000 + one, seen)(stores[client % 2]) for one in seeds]

    at_once([work(client) for client in range(6)])
    ground.faults.heal()

    assert assert_replayed(ground.rows, seen) > 25
