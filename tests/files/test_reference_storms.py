"""Hundreds of commits at once, under the eyes of an auditor; and what becomes of them when PostgreSQL is killed."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import TypeVar

import pytest
from reference_stores import assignment, commit_of, fresh_scope, make_file

from headwater import Settings, open_store
from headwater.clock import Micros
from headwater.errors import UnavailableError, UnknownOutcomeError
from headwater.files import (
    AddFiles,
    CommitJob,
    FileScope,
    FileTableClosedError,
    RequestState,
    open_file_references,
)
from headwater.files.sql_references import SqlReferenceStore
from headwater.store import Store
from servers.postgresql import PostgresqlServer

pytestmark = pytest.mark.long

LEAVES = [f"r{number:06b}" for number in range(64)]
INPUTS = ("a", "b", "c")
ROWS = 10 * len(LEAVES) * len(INPUTS)
KILLS = 40 if os.environ.get("HEADWATER_SOAK") == "1" else 2
T = TypeVar("T")


@pytest.fixture
def scope() -> FileScope:
    return fresh_scope()


@pytest.fixture
def store(postgresql_url: str) -> Iterator[Store]:
    with open_store(postgresql_url, settings=Settings(files_connections=8)) as opened:
        yield opened


def fill(store: Store, scope: FileScope) -> SqlReferenceStore:
    """Three files in 64 leaves, and a job for each leaf."""
    references = open_file_references(store, scope, create=True)
    assert isinstance(references, SqlReferenceStore)
    references.add_files([make_file(name, *LEAVES) for name in INPUTS])
    references.assign_jobs([assignment(f"job-{leaf}", leaf, *INPUTS) for leaf in LEAVES])
    return references


def commits() -> list[CommitJob]:
    shuffled = [commit_of(f"job-{leaf}", leaf, *INPUTS) for leaf in LEAVES]
    Random(7).shuffle(shuffled)
    return shuffled


def violations(references: SqlReferenceStore) -> list[str]:
    """What is wrong: rows lost or doubled, a leaf half committed, a reference to a file that is not tracked, a marked file with one."""
    snapshot = references.snapshot()
    rows = sum(each.rows for each in snapshot.references)
    names: dict[str, list[str]] = {}
    for each in snapshot.references:
        names.setdefault(each.partition, []).append(each.filename)
    faults = [f"{leaf}: {there}" for leaf, there in names.items() if there not in (list(INPUTS), [f"out-job-{leaf}"])]
    return [
        *faults,
        *(name for group in references.find_faults(9) for name in group),
        *([f"{rows} rows"] if rows != ROWS else []),
    ]


class Auditor:
    """Reads a snapshot every 50 ms until it is told to stop."""

    def __init__(self, references: SqlReferenceStore) -> None:
        self.faults: list[str] = []
        self.looks = 0
        self._references = references
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def _watch(self) -> None:
        while not self._end.is_set():
            try:
                self.faults += violations(self._references)
                self.looks += 1
            except UnavailableError:
                pass  # the server is being killed
            self._end.wait(0.05)

    def __enter__(self) -> Auditor:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()


def patiently(act: Callable[[], T]) -> T:
    """Repeat until the server is there again: that is what a request's id is for."""
    until = time.monotonic() + 60
    while True:
        try:
            return act()
        except (UnavailableError, UnknownOutcomeError):
            if time.monotonic() > until:
                raise
            time.sleep(0.02)


def test_storm_of_commits_loses_nothing(store: Store, scope: FileScope) -> None:
    references = fill(store, scope)

    with Auditor(references) as auditor, ThreadPoolExecutor(24) as workers:
        # each job twice: a queue delivers at least once
        done = list(workers.map(lambda commit: references.apply_requests([commit]), commits() * 2))

    assert {outcome.state for [outcome] in done} == {RequestState.APPLIED}
    assert auditor.faults == []
    assert auditor.looks > 0
    assert sorted(each.filename for each in references.references()) == sorted(f"out-job-{leaf}" for leaf in LEAVES)


def test_storm_with_collections_forgets_only_the_inputs(store: Store, scope: FileScope) -> None:
    references = fill(store, scope)
    end = threading.Event()

    def collect() -> None:
        references.mark_unreferenced(Micros(1))
        for name in references.collectable_files(Micros(2)):
            references.forget_files([name])

    def collect_often() -> None:
        while not end.is_set():
            collect()

    collector = threading.Thread(target=collect_often)
    collector.start()
    try:
        with Auditor(references) as auditor, ThreadPoolExecutor(16) as workers:
            list(workers.map(lambda commit: references.commit_jobs([commit]), commits()))
    finally:
        end.set()
        collector.join()

    collect()
    assert auditor.faults == []
    assert [each.filename for each in references.report(9).files] == [f"out-job-{leaf}" for leaf in LEAVES]


def test_closed_scope_stops_a_storm(store: Store, scope: FileScope) -> None:
    references = fill(store, scope)
    refused: list[str] = []

    def commit(request: CommitJob) -> None:
        try:
            references.commit_jobs([request])
        except FileTableClosedError:
            refused.append(request.job)

    with ThreadPoolExecutor(16) as workers:
        running = [workers.submit(commit, request) for request in commits()]
        references.close_scope()
        at_the_close = references.references()
        for each in running:
            each.result()

    assert references.references() == at_the_close
    applied = [request.job for request in commits() if request.job not in refused]
    assert sorted(references.find_outcomes([each.job for each in commits()])) == sorted(applied)


def test_killed_server_leaves_every_outcome_known(scope: FileScope) -> None:
    with PostgresqlServer() as server, open_store(server.url("headwater")) as store:
        references = fill(store, scope)

        def kill_often() -> None:
            random = Random()
            for _ in range(KILLS):
                time.sleep(random.uniform(0.02, 0.15))
                server.kill()
                server.start()

        def work(request: CommitJob) -> RequestState:
            time.sleep(0.01 * KILLS)  # so that the storm lasts for all kills
            return patiently(lambda: references.apply_requests([request]))[0].state

        killer = threading.Thread(target=kill_often)
        with Auditor(references) as auditor, ThreadPoolExecutor(4) as workers:
            killer.start()
            states = list(workers.map(work, commits()))
            killer.join()

        assert set(states) == {RequestState.APPLIED}
        assert auditor.faults == []
        assert violations(references) == []
        assert len(references.find_outcomes([each.job for each in commits()])) == len(LEAVES)


def test_concurrent_additions_of_a_file_have_one_winner(store: Store, scope: FileScope) -> None:
    references = open_file_references(store, scope, create=True)
    requests = [AddFiles(files=(make_file("a", "r"),), request=f"add-{number}") for number in range(16)]

    with ThreadPoolExecutor(16) as workers:
        done = [outcome for [outcome] in workers.map(lambda request: references.apply_requests([request]), requests)]

    assert sorted(outcome.state for outcome in done) == [RequestState.APPLIED] + [RequestState.REFUSED] * 15
    assert {outcome.error for outcome in done} == {"", "FileExistsInTableError"}
