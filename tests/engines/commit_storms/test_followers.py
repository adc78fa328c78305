"""Readers in the middle of a storm: what they are told at any moment is whole, and a feed that is followed misses and repeats nothing."""

from __future__ import annotations

import threading

import pytest
from callers import Caller, at_once
from counters import ADD, assert_exact, counted, tell
from grounds import LENGTH, LOST_ANSWER, Ground
from groups import a_group

from headwater.commits import (
    assign_reference,
    commit_change,
    create_reference_at,
    read_changes,
    read_commit,
    read_head,
    read_log,
)
from headwater.index import IndexValue
from headwater.store import RealmStore

COMMITS = 30 * LENGTH


def follow(rows: RealmStore, is_over: threading.Event) -> list[int]:
    """The feed, piece by piece, each from the last commit of the piece before; until the storm is over, and once more."""
    told: list[int] = []
    since = None
    while True:
        is_last = is_over.is_set()
        for found, operation in read_changes(rows, "main", since):
            told.append(int(operation.data))
            since = found.id
        if is_last:
            return told


def look_back(rows: RealmStore, is_over: threading.Event) -> int:
    """Reads the log and the state of some of its commits, over and over; returns how often."""
    times = 0
    while not is_over.is_set():
        found = list(read_log(rows, "main", limit=30))
        seqs = [one.commit.seq for one in found]
        assert seqs == list(range(seqs[0], seqs[0] - len(seqs), -1)) if seqs else True
        for one in found[::7]:
            assert one.index("counters").get(b"n") == IndexValue(None, b"%d" % one.commit.seq)
        times += 1
    return times


def test_followers_are_told_everything_once_and_in_order(ground: Ground) -> None:
    is_over, second = threading.Event(), ground.open()
    readers = [Caller(lambda rows=rows: follow(rows, is_over)) for rows in (ground.rows, ground.open(is_safe=True))]  # type: ignore[misc]
    looker = Caller(lambda: look_back(ground.open(is_safe=True), is_over))
    ground.faults.fail(ground.swap, at=10, **LOST_ANSWER)
    stores = [ground.rows, second]
    works = [lambda client=client: [tell(stores[client % 2], client) for _ in range(COMMITS)] for client in range(6)]  # type: ignore[misc]
    journal = [answer for answers in at_once(works) for answer in answers]
    is_over.set()
    total = assert_exact(ground.rows, journal)

    assert [reader.result() for reader in readers] == [list(range(1, total + 1))] * 2
    assert looker.result() > 0


@pytest.mark.parametrize("at", range(6))
def test_reference_made_on_a_member_goes_on_from_there(ground: Ground, at: int) -> None:
    tell(ground.rows, "beneath")
    member = a_group(ground.rows, [ADD] * 6)[at]
    assert member.commit_id is not None
    create_reference_at(ground.rows, "side", member.commit_id, among=["main"])
    done = [commit_change(ground.rows, "side", counted(ADD)).result for _ in range(2)]
    cold = ground.rows.without_cache()

    assert done == [at + 3, at + 4]
    assert [int(operation.data) for _, operation in read_changes(cold, "side")] == list(range(1, at + 5))
    assert read_commit(cold, member.commit_id).index("counters").get(b"n") == IndexValue(None, b"%d" % (at + 2))


@pytest.mark.parametrize("at", range(6))
def test_reference_put_back_on_a_member_is_as_then(ground: Ground, at: int) -> None:
    journal = a_group(ground.rows, [ADD] * 6)
    member, last = journal[at].commit_id, journal[-1].commit_id
    assert member is not None
    assign_reference(ground.rows, "main", member, expected=last, among=[])
    newest = read_head(ground.rows.without_cache(), "main", fresh=True)

    assert newest is not None
    assert newest.index("counters").get(b"n") == IndexValue(None, b"%d" % (at + 1))
    assert [answer.number for answer in a_group(ground.rows, [ADD] * 3)] == [at + 2, at + 3, at + 4]
