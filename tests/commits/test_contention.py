"""Many committers on one reference: every acknowledged change happened exactly once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from forked_children import run_forked
from headwater.commits import read_changes, read_log
from headwater.settings import Settings
from headwater.store import RealmId, RealmKey, RealmStore, Store, open_store

PATIENT = Settings(commit_timeout_seconds=60)


def in_threads(work: Callable[[], object], count: int) -> None:
    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def counting(store: Store) -> RealmStore:
    rows = store.rows(RealmId("acme"), RealmKey(5))
    rows.ensure_reference("main")
    return rows


def test_threads_count_to_exactly_their_number(store_url: str, increment: Callable, count: Callable) -> None:
    results: list[int] = []
    with open_store(store_url, settings=PATIENT) as store:
        rows = counting(store)
        in_threads(lambda: results.extend(increment(rows).result for _ in range(10)), 6)

        assert count(rows) == 60
        assert sorted(results) == list(range(1, 61))
        assert [found.commit.seq for found in read_log(rows, "main")] == list(range(60, 0, -1))
        assert [int(operation.data) for _, operation in read_changes(rows, "main")] == list(range(1, 61))


def test_processes_count_to_exactly_their_number(tmp_path: Path, increment: Callable, count: Callable) -> None:
    with open_store(f"sqlite:///{tmp_path}/store.db", settings=PATIENT) as store:
        rows = counting(store)
        answers = run_forked(4, lambda _: [increment(rows).result for _ in range(10)])

        assert sorted(number for answer in answers for number in answer) == list(range(1, 41))
        assert count(rows) == 40


def test_committers_on_different_references_do_not_see_each_other(store_url: str, put: Callable) -> None:
    with open_store(store_url, settings=PATIENT) as store:
        rows = counting(store)
        names = [f"branch-{number}" for number in range(4)]
        for name in names:
            rows.ensure_reference(name)
        waiting, attempts = list(names), []

        def work() -> None:
            name = waiting.pop()
            attempts.extend(put(rows, reference=name).attempts for _ in range(5))

        in_threads(work, 4)

        assert attempts == [1] * 20
