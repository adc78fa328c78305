"""History that a collection cut in the middle of a group: what is kept reads as it did, and what is gone is said to be gone."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from callers import in_line
from counters import ADD, counted, tell
from grounds import Ground
from groups import a_group

from engines.index_model.index_sweep import collect_all_but
from fake_clock import FakeClock
from headwater.commits import Head, Transaction, commit_change, read_changes, read_commit, read_log
from headwater.errors import ExpiredError
from headwater.gc import collect_realm
from headwater.settings import Settings
from headwater.store import RealmStore
from headwater.store.backends.memory import MemoryBackend
from lakes import make_realm, open_on, rows_of

DEPTHS = [0, 0, 1, 2, 3, 4, 5, 6, 7, 0, 0, 0]


class Cut(NamedTuple):
    """Twelve commits that count: two alone, eight in a group, two alone. Those before the ``first`` that was kept were collected.

    rows          those of somebody who remembers nothing
    commits       as they were, oldest first
    """

    rows: RealmStore
    commits: list[Head]
    first: int


@pytest.fixture(params=range(1, 12), ids=lambda first: f"depth {DEPTHS[first]}")
def cut(request: pytest.FixtureRequest, ground: Ground) -> Cut:
    for alone in (True, False, True):
        if alone:
            tell(ground.rows, 0)
            tell(ground.rows, 0)
        else:
            a_group(ground.rows, [ADD] * 8)
    commits = list(read_log(ground.rows, "main", oldest_first=True))
    assert [one.commit.depth for one in commits] == DEPTHS
    collect_all_but(ground.rows, [one.id for one in commits[request.param :]])
    return Cut(ground.rows.without_cache(), commits, request.param)


def number_at(found: Head) -> int:
    seen = found.index("counters").get(b"n")
    assert seen is not None
    return int(seen.data)


def test_log_of_a_cut_group_has_all_that_was_kept(cut: Cut) -> None:
    up = [one.id for one in read_log(cut.rows, "main", oldest_first=True)]
    kept = [one.id for one in cut.commits[cut.first :]]

    assert up[-len(kept) :] == kept
    assert [one.id for one in read_log(cut.rows, "main")] == up[::-1]


def test_kept_part_of_a_group_reads_as_it_did(cut: Cut) -> None:
    found = [read_commit(cut.rows, one.id) for one in cut.commits[cut.first :]]

    assert [number_at(one) for one in found] == list(range(cut.first + 1, 13))


def test_feed_goes_on_from_every_kept_member(cut: Cut) -> None:
    for since in range(cut.first, 12):
        told = [int(operation.data) for _, operation in read_changes(cut.rows, "main", cut.commits[since].id)]
        assert told == list(range(since + 2, 13))


def test_feed_says_that_what_was_before_the_cut_is_gone(cut: Cut) -> None:
    with pytest.raises(ExpiredError):
        list(read_changes(cut.rows, "main"))


def test_cut_group_takes_commits_as_if_nothing_had_been(cut: Cut, ground: Ground) -> None:
    fresh = ground.open()

    assert tell(fresh, 0).number == 13
    assert [answer.number for answer in a_group(fresh, [ADD] * 3)] == [14, 15, 16]


@pytest.mark.parametrize("keep", [1, 2, 4, 6])
def test_retained_part_of_a_group_stays_readable(keep: int) -> None:
    settings = Settings(
        unsafe_short_graces=True,
        writer_grace_seconds=60,
        reader_grace_seconds=60,
        purge_hold_seconds=60,
        commit_member_seconds=60,
    )
    backend, clock = MemoryBackend(), FakeClock()
    store = open_on(backend, settings, clock)
    make_realm(store, reference_commits=keep)
    group = a_group_of_principals(rows_of(store))
    clock.advance(3600)
    collect_realm(store, "acme")
    fresh = rows_of(open_on(backend, settings, clock))
    kept = list(read_log(fresh.without_cache(), "principals"))[:keep]

    assert [one.id for one in kept] == [one.id for one in group][:keep]
    assert [number_at(one) for one in kept] == [6, 5, 4, 3, 2, 1][:keep]
    assert commit_change(fresh, "principals", counted(ADD)).result == 7


def a_group_of_principals(rows: RealmStore) -> list[Head]:
    """Six commits of one group, newest first."""
    with in_line() as held:

        def first(tx: Transaction) -> int:
            held.hold(tx)
            return counted(ADD)(tx)

        held.lead(lambda: commit_change(rows, "principals", first))
        for _ in range(5):
            held.call(lambda: commit_change(rows, "principals", counted(ADD)))
    group = list(read_log(rows, "principals"))
    assert [one.commit.depth for one in group] == [0, 5, 4, 3, 2, 1]
    return group
