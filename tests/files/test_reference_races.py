"""What goes wrong in the database of file references: lost races, broken connections, clocks, and stores that keep none."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from reference_stores import assignment, commit_of, fresh_scope, make_file, places

from headwater import Settings, open_store
from headwater.errors import NotFoundError, RefusedError, UnavailableError
from headwater.files import (
    FileScope,
    FileTableClosedError,
    RetryPolicy,
    keeps_file_references,
    list_file_scopes,
    open_file_references,
)
from headwater.files.postgresql_references import PostgresqlReferences
from headwater.store import RealmKey, Store
from servers.postgresql import PostgresqlServer


@pytest.fixture
def store(postgresql_url: str) -> Iterator[Store]:
    with open_store(postgresql_url) as opened:
        yield opened


@pytest.fixture
def pauses() -> list[float]:
    """How long a store waited between attempts."""
    return []


@pytest.fixture
def references(store: Store, pauses: list[float]) -> PostgresqlReferences:
    policy = RetryPolicy(sleep=pauses.append, attempts=10, chance=lambda: 0.5)
    references = open_file_references(store, fresh_scope(), create=True, policy=policy)
    assert isinstance(references, PostgresqlReferences)
    return references


def test_waits_double_up_to_their_limit(pauses: list[float]) -> None:
    policy = RetryPolicy(sleep=pauses.append, chance=lambda: 0.5)
    for attempt in range(1, 10):
        policy.wait_after(attempt)

    assert pauses == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 15.0]


def test_deadlock_is_counted_and_tried_again(references: PostgresqlReferences, postgresql_server: PostgresqlServer) -> None:
    references.add_files([make_file("a", "r0", "r1")])
    table = f'"{references.tables.schema}".file_references'
    with postgresql_server.connect() as other:
        # the other way round than all transactions of the store: they lock in the order of the keys
        other.execute("BEGIN")
        other.execute(f"SELECT FROM {table} WHERE part = 'r1' FOR UPDATE".encode())
        thread = threading.Thread(
            target=references.assign_jobs, args=([assignment("job", "r0", "a"), assignment("two", "r1", "a")],)
        )
        thread.start()
        wait_for_lock(postgresql_server)
        other.execute("SET deadlock_timeout = '60s'")
        other.execute(f"SELECT FROM {table} WHERE part = 'r0' FOR UPDATE".encode())
        other.execute("COMMIT")
        thread.join()

    assert places(references) == [("a", "r0", "job"), ("a", "r1", "two")]
    # the second attempt may lock the first row again before the other transaction wakes up: one more deadlock
    assert references.counts()["40P01"] >= 1
    assert references.counts()["retries"] == references.counts()["40P01"]


def test_attempts_are_bounded(
    references: PostgresqlReferences, pauses: list[float], postgresql_server: PostgresqlServer
) -> None:
    trigger = (
        "CREATE FUNCTION {0}.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE SQLSTATE '40001'; END $$;"
        " CREATE TRIGGER refuse BEFORE INSERT ON {0}.tracked_files EXECUTE FUNCTION {0}.refuse()"
    )
    postgresql_server.execute(trigger.format(f'"{references.tables.schema}"'))

    with pytest.raises(UnavailableError, match="tried 10 times"):
        references.add_files([make_file("a")])
    assert len(pauses) == 9
    assert references.counts()["40001"] == 10


def test_commit_of_a_lost_connection_is_looked_up(
    references: PostgresqlReferences, postgresql_server: PostgresqlServer
) -> None:
    references.add_files([make_file("a", "r")])
    references.assign_jobs([assignment("job", "r", "a")])
    table = f'"{references.tables.schema}".tracked_files'
    with postgresql_server.connect() as other:
        other.execute("BEGIN")
        other.execute(f"LOCK {table} IN SHARE MODE".encode())
        with ThreadPoolExecutor(1) as worker:
            commit = worker.submit(references.commit_jobs, [commit_of("job", "r", "a")])
            [(process,)] = wait_for_lock(postgresql_server)
            other.execute("SELECT pg_terminate_backend(%s)", (process,))
            other.execute("COMMIT")
            commit.result()

    assert places(references) == [("out-job", "r", None)]
    assert references.counts()["unknown"] == 1


def test_closing_waits_for_a_running_commit(references: PostgresqlReferences, postgresql_server: PostgresqlServer) -> None:
    references.add_files([make_file("a", "r")])
    schema = references.tables.schema
    with postgresql_server.connect() as other, ThreadPoolExecutor(2) as workers:
        other.execute("BEGIN")
        other.execute(f'INSERT INTO "{schema}".tracked_files SELECT scope, 1, \'b\' FROM "{schema}".file_scopes'.encode())
        addition = workers.submit(references.add_files, [make_file("b")])
        wait_for_lock(postgresql_server)  # behind the door, for what becomes of the other file of that name
        closing = workers.submit(references.close_scope)
        wait_for_lock(postgresql_server, 2)
        is_closed_early = closing.done()
        other.execute("ROLLBACK")
        addition.result()
        closing.result()

    assert not is_closed_early
    with pytest.raises(FileTableClosedError):
        references.add_files([make_file("c")])
    assert [each.filename for each in references.report(9).files] == ["a", "b"]


def test_time_is_the_servers_where_the_clock_is_the_machines(references: PostgresqlReferences, store: Store) -> None:
    before = store.server_time()
    references.add_files([make_file("a", "r")])
    after = store.server_time()

    [reference] = references.references()
    assert before is not None
    assert after is not None
    assert reference.updated is not None
    assert before <= reference.updated <= after


def test_tables_are_made_once_by_many(postgresql_url: str) -> None:
    scopes = [fresh_scope() for _ in range(6)]

    def open_one(scope: FileScope) -> None:
        with open_store(postgresql_url) as store:
            open_file_references(store, scope, create=True).add_files([make_file("a", "r")])

    with ThreadPoolExecutor(6) as workers:
        list(workers.map(open_one, scopes))

    with open_store(postgresql_url) as store:
        assert list_file_scopes(store, RealmKey(7)) == sorted(scopes)


def test_newer_tables_are_refused(postgresql_url: str, postgresql_server: PostgresqlServer) -> None:
    with open_store(postgresql_url) as store:
        references = open_file_references(store, fresh_scope(), create=True)
        assert isinstance(references, PostgresqlReferences)
        postgresql_server.execute(f'UPDATE "{references.tables.schema}".file_tables_version SET number = 99')

    with open_store(postgresql_url) as store, pytest.raises(RefusedError, match="upgrade this one"):
        open_file_references(store, fresh_scope(), create=True)


def test_unknown_scope_is_not_found(store: Store) -> None:
    with pytest.raises(NotFoundError):
        open_file_references(store, fresh_scope())


def test_store_in_memory_says_that_it_keeps_no_references() -> None:
    with open_store("memory://") as store:
        assert not keeps_file_references(store)
        with pytest.raises(RefusedError, match="HEADWATER_FILES_STORE"):
            open_file_references(store, fresh_scope(), create=True)


def test_references_lie_beside_a_store_in_memory(tmp_path: Path) -> None:
    settings = Settings(files_store=f"sqlite:///{tmp_path}/files.db")
    scope = fresh_scope()
    with open_store("memory://", settings=settings) as store:
        open_file_references(store, scope, create=True).add_files([make_file("a", "r")])

    with open_store("memory://", settings=settings) as store:
        assert keeps_file_references(store)
        assert places(open_file_references(store, scope)) == [("a", "r", None)]


def test_references_beside_a_store_need_sql() -> None:
    store = open_store("memory://", settings=Settings(files_store="memory://"))
    with store, pytest.raises(RefusedError, match="need PostgreSQL or SQLite"):
        open_file_references(store, fresh_scope(), create=True)


def wait_for_lock(server: PostgresqlServer, count: int = 1) -> list[tuple[int]]:
    """The processes of the server that wait for a lock, once there are so many."""
    until = time.monotonic() + 20
    while time.monotonic() < until:
        waiting = server.execute("SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
        if len(waiting) >= count:
            return [(int(process),) for (process,) in waiting]
        time.sleep(0.02)
    raise AssertionError("nobody waits for a lock")
