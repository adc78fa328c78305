"""A long change beside short ones of the same process: it is not beaten for ever."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest

from headwater.clock import SystemClock
from headwater.commits import CommitResult, Transaction, commit_change, read_log
from headwater.errors import CommitTimeoutError
from headwater.index import IndexValue
from headwater.settings import Settings
from headwater.store import RealmId, RealmKey, RealmStore, open_store


@pytest.fixture
def rows() -> Iterator[RealmStore]:
    settings = Settings(commit_timeout_seconds=2.0, commit_member_seconds=0.005, commit_backoff_limit_seconds=0.01)
    with open_store("memory://", settings=settings, clock=SystemClock()) as store:
        made = store.rows(RealmId("acme"), RealmKey(store.new_id()))
        made.ensure_reference("main")
        yield made


def put_slowly(rows: RealmStore, key: bytes, seconds: float) -> CommitResult[None]:
    def change(tx: Transaction) -> None:
        time.sleep(seconds)
        tx.index("things").put(key, IndexValue(None, b""))

    return commit_change(rows, "main", change, message=key.decode())


@pytest.fixture
def crowd(rows: RealmStore) -> Iterator[list[Exception]]:
    """Two threads that commit all the time; the list has what they were told instead."""
    is_over, faults = threading.Event(), list[Exception]()

    def work(name: int) -> None:
        for number in range(1_000_000):
            if is_over.is_set():
                return
            try:
                put_slowly(rows, b"%d %d" % (name, number), 0)
            except Exception as fault:  # noqa: BLE001  the test looks at it
                faults.append(fault)

    threads = [threading.Thread(target=work, args=(name,)) for name in range(2)]
    for thread in threads:
        thread.start()
    yield faults
    is_over.set()
    for thread in threads:
        thread.join()


@pytest.mark.long
@pytest.mark.parametrize("seconds", [0.1, 0.55])
def test_long_change_is_committed_beside_short_ones(rows: RealmStore, crowd: list[Exception], seconds: float) -> None:
    done = put_slowly(rows, b"slow", seconds)

    assert done.changed
    assert sum(head.commit.message == "slow" for head in read_log(rows, rows.read_reference("main", fresh=True).pointer)) == 1
    assert crowd == []


@pytest.mark.long
def test_change_that_hangs_in_its_long_turn_loses_it(rows: RealmStore) -> None:
    """Those who wait for it get their turn while they have time left."""
    is_over, runs = threading.Event(), list[float]()

    def change(tx: Transaction) -> None:
        runs.append(time.monotonic())
        is_over.wait(0.55 if len(runs) == 1 else 30)
        tx.index("things").put(b"slow", IndexValue(None, b""))

    def commit_late() -> None:
        with suppress(CommitTimeoutError):
            commit_change(rows, "main", change)

    slow = threading.Thread(target=commit_late, daemon=True)
    slow.start()
    waits = []
    while not waits or time.monotonic() < runs[0] + 2.5:
        begun = time.monotonic()
        put_slowly(rows, b"%d" % len(waits), 0)
        waits.append(time.monotonic() - begun)
    is_over.set()
    slow.join()

    assert len(runs) >= 2
    assert max(waits) < 1.9
