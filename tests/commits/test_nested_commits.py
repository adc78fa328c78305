"""A commit that is begun while this thread commits."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from faulty_backend import FaultyBackend
from headwater import open_store
from headwater.commits import CommitResult, Transaction, commit_change, read_head
from headwater.errors import FencedError, RefusedError
from headwater.index import IndexValue
from headwater.store import RealmId, RealmKey, RealmStore

Increment = Callable[[RealmStore], CommitResult[int]]
Put = Callable[..., CommitResult[None]]


def put_one(tx: Transaction) -> None:
    tx.index("things").put(b"k", IndexValue(None))


@pytest.mark.parametrize("reference", ["main", "other"])
def test_commit_within_a_change_is_refused(rows: RealmStore, reference: str) -> None:
    rows.ensure_reference("other")
    with pytest.raises(RefusedError, match=rf"'{reference}'.*inside a change for reference 'main'.*or commit after it"):
        commit_change(rows, "main", lambda tx: commit_change(rows, reference, put_one))

    assert read_head(rows, reference) is None


def test_commit_to_another_store_within_a_change_is_refused(rows: RealmStore) -> None:
    with open_store("memory://") as store:
        others = store.rows(RealmId("acme"), RealmKey(5))
        others.ensure_reference("main")
        with pytest.raises(RefusedError, match="to no reference of any store"):
            commit_change(rows, "main", lambda tx: commit_change(others, "main", put_one))


def test_thread_may_commit_again_after_its_change_was_refused(rows: RealmStore, put: Put) -> None:
    with pytest.raises(RefusedError):
        commit_change(rows, "main", lambda tx: put(rows))

    assert put(rows).changed


def test_commit_of_another_thread_is_not_nested(rows: RealmStore, put: Put) -> None:
    rows.ensure_reference("other")
    done: list[CommitResult[None]] = []

    def change(tx: Transaction) -> None:
        thread = threading.Thread(target=lambda: done.append(put(rows, reference="other")))
        thread.start()
        thread.join()
        put_one(tx)

    commit_change(rows, "main", change)
    assert done[0].changed


def test_fence_may_commit(rows: RealmStore, increment: Increment, put: Put) -> None:
    fences = [increment]

    def fence() -> None:
        if fences:
            fences.pop()(rows)

    done = commit_change(rows, "main", put_one, fence=fence)
    assert (done.attempts, read_head(rows, "main").commit.seq) == (2, 2)


def test_handler_that_interrupts_a_commit_may_commit(faulty: RealmStore, faults: FaultyBackend, increment: Increment) -> None:
    faults.intervene("write_objects", lambda: increment(faulty))  # as a signal's handler runs on the thread that it meets

    assert increment(faulty).result == 2


def test_fence_that_closes_is_told_and_holds_nobody_up(rows: RealmStore, put: Put) -> None:
    def fence() -> None:
        raise FencedError("taken over")

    with pytest.raises(FencedError):
        commit_change(rows, "main", put_one, fence=fence)
    assert put(rows).changed
