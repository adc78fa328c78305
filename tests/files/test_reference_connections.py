"""Connections to file references on PostgreSQL: few, on demand, closed when idle, and never shared with a forked child."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from reference_stores import assignment, fresh_scope, make_file

from forked_children import run_forked
from headwater import Settings, open_store
from headwater.files import AssignmentCheck, FileReferenceStore, PartitionId, open_file_references
from headwater.files.postgresql_references import PostgresqlReferences
from headwater.store import Store
from headwater.store.backends.postgresql import PostgresqlBackend
from headwater.store.backends.postgresql.pool import ConnectionPool, PoolLimits
from servers.postgresql import PostgresqlServer

CHECK = AssignmentCheck(job="job", partition=PartitionId("r"), filenames=("a",))


@pytest.fixture
def store(postgresql_url: str) -> Iterator[Store]:
    with open_store(postgresql_url, settings=Settings(files_connections=3)) as opened:
        yield opened


@pytest.fixture
def references(store: Store) -> FileReferenceStore:
    """One file, assigned to a job."""
    references = open_file_references(store, fresh_scope(), create=True)
    references.add_files([make_file("a", "r")])
    references.assign_jobs([assignment("job", "r", "a")])
    return references


@pytest.fixture
def pool(store: Store) -> Iterator[ConnectionPool]:
    """Connections that are closed after a minute, by whoever asks."""
    assert isinstance(store.backend, PostgresqlBackend)
    pool = store.backend.open_pool(PoolLimits(size=3, idle_seconds=60))
    yield pool
    pool.close()


def sessions_of(server: PostgresqlServer, name: str) -> int:
    [(count,)] = server.execute("SELECT count(*) FROM pg_stat_activity WHERE application_name = %s", (name,))
    return int(count)


def test_connection_is_closed_when_it_was_idle_for_long(pool: ConnectionPool) -> None:
    connection = pool.borrow()
    pool.give_back(connection)
    now = time.monotonic()

    assert pool.close_expired(now + 30) is not None
    assert not connection.closed
    assert pool.close_expired(now + 61) is None
    assert connection.closed


def test_idle_connection_is_closed_though_nobody_calls(store: Store) -> None:
    assert isinstance(store.backend, PostgresqlBackend)
    pool = store.backend.open_pool(PoolLimits(size=3, idle_seconds=0.05))
    connection = pool.borrow()

    pool.give_back(connection)

    until = time.monotonic() + 20
    while not connection.closed and time.monotonic() < until:
        time.sleep(0.02)
    assert connection.closed
    pool.close()


def test_thread_that_closes_idle_connections_ends_with_them(store: Store) -> None:
    assert isinstance(store.backend, PostgresqlBackend)
    before = set(threading.enumerate())
    pool = store.backend.open_pool(PoolLimits(size=3, idle_seconds=600))
    pool.give_back(pool.borrow())
    [reaper] = set(threading.enumerate()) - before

    pool.close()

    reaper.join(20)
    assert not reaper.is_alive()


def test_handles_of_a_store_share_their_connections(store: Store, references: FileReferenceStore) -> None:
    other = open_file_references(store, fresh_scope(), create=True)

    assert isinstance(references, PostgresqlReferences)
    assert isinstance(other, PostgresqlReferences)
    assert references.tables is other.tables


@pytest.mark.long
def test_hundreds_of_checking_jobs_share_a_few_connections(postgresql_server: PostgresqlServer, postgresql_url: str) -> None:
    url = f"{postgresql_url}&application_name=checkers"
    with open_store(url, settings=Settings(files_connections=3)) as store:
        references = open_file_references(store, fresh_scope(), create=True)
        references.add_files([make_file("a", "r")])
        references.assign_jobs([assignment("job", "r", "a")])

        most = 0
        with ThreadPoolExecutor(100) as jobs:
            running = [jobs.submit(references.is_assigned, [CHECK]) for _ in range(500)]
            while not all(each.done() for each in running):
                most = max(most, sessions_of(postgresql_server, "checkers"))
        assert all(each.result() for each in running)
        assert most <= 3 + 2  # and those of the store itself


@pytest.mark.long
def test_forked_children_use_connections_of_their_own(references: FileReferenceStore) -> None:
    answers = run_forked(3, lambda _: [references.is_assigned([CHECK]) for _ in range(20)], meanwhile=lambda: check(references))

    assert answers == [[True] * 20] * 3
    assert references.is_assigned([CHECK])


@pytest.mark.long
def test_fork_in_the_middle_of_commits_loses_nothing(references: FileReferenceStore) -> None:
    end = threading.Event()

    def add_often() -> None:
        while not end.is_set():
            references.add_files([make_file(f"b{next(numbers)}")])

    numbers = iter(range(1_000_000))
    thread = threading.Thread(target=add_often)
    thread.start()
    try:
        names = run_forked(4, lambda number: references.add_files([make_file(f"child{number}", "r")]))
    finally:
        end.set()
        thread.join()

    assert names == [None] * 4
    assert sorted(each.filename for each in references.references()) == ["a", *(f"child{number}" for number in range(4))]
    assert len(references.report(1_000_000).unreferenced) == next(numbers)


def check(references: FileReferenceStore) -> None:
    for _ in range(20):
        assert references.is_assigned([CHECK])
