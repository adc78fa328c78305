"""Connections on both sides of a fork, through real stores."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest
from pg_rows import REALM, find, find_reference, reference, row

from forked_children import run_forked
from headwater.errors import SwapConflictError
from headwater.store import ObjectId, Store, open_store
from headwater.store.backend import ReferenceRow
from headwater.store.backends.postgresql import PostgresqlBackend
from servers.postgresql import PostgresqlServer


@pytest.fixture
def store(server: PostgresqlServer, schema: str) -> Iterator[Store]:
    with open_store(server.url(schema)) as store:
        yield store


def backend_of(store: Store) -> PostgresqlBackend:
    assert isinstance(store.backend, PostgresqlBackend)
    return store.backend


def server_process(store: Store) -> int:
    """The process that serves the connection which is used next."""
    pool = backend_of(store)._pool
    connection = pool.borrow()
    process: int = connection.only_row("SELECT pg_backend_pid()")[0]
    pool.give_back(connection)
    return process


def count_up(store: Store, times: int) -> None:
    """Raise a reference's pointer by compare-and-swap, however often others are faster."""
    done = 0
    while done < times:
        seen = find_reference(store.backend)
        assert seen is not None
        assert seen.pointer is not None
        new = ReferenceRow(
            realm=REALM, name=seen.name, pointer=ObjectId(seen.pointer + 1), version=seen.version + 1, created=seen.created
        )
        try:
            store.backend.swap_reference(seen, new)
            done += 1
        except SwapConflictError:
            continue


def test_forked_child_uses_connections_of_its_own(store: Store) -> None:
    parent = server_process(store)
    children = run_forked(3, lambda _: server_process(store))

    assert len({parent, *children}) == 4
    assert server_process(store) == parent


def test_parent_and_children_lose_nothing_after_a_fork(store: Store) -> None:
    store.backend.create_reference(reference(pointer=0))
    run_forked(3, lambda _: count_up(store, 30), meanwhile=lambda: count_up(store, 30))
    found = find_reference(store.backend)

    assert found is not None
    assert found.pointer == 120


def test_child_that_closes_the_store_does_not_disturb_the_parent(store: Store) -> None:
    parent = server_process(store)
    run_forked(2, lambda number: (store.backend.write_objects([row(number + 1)]), store.close())[1])

    assert server_process(store) == parent
    assert [find(store.backend, 1), find(store.backend, 2)] == [row(1), row(2)]


def test_parent_that_closes_the_store_does_not_disturb_its_child(server: PostgresqlServer, schema: str) -> None:
    store = open_store(server.url(schema))
    store.backend.write_objects([row(1)])
    closed_read, closed_write = os.pipe()

    def work(_: int) -> bool:
        os.read(closed_read, 1)
        store.backend.write_objects([row(2)])
        return find(store.backend, 1) == row(1)

    def close_and_tell() -> None:
        store.close()
        os.write(closed_write, b"!")

    assert run_forked(1, work, meanwhile=close_and_tell) == [True]
    os.close(closed_read)
    os.close(closed_write)


def test_fork_waits_for_the_calls_of_other_threads(store: Store) -> None:
    store.backend.create_reference(reference(pointer=0))
    threads = [threading.Thread(target=count_up, args=(store, 40)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(5):
        run_forked(1, lambda _: count_up(store, 5))
    for thread in threads:
        thread.join()
    found = find_reference(store.backend)

    assert found is not None
    assert found.pointer == 105


FORK_AND_END = """
import os, sys
from headwater.store import open_store
store = open_store(sys.argv[1])
store.system.is_empty()
if os.fork() == 0:
    store.system.is_empty()
    store.close()
    sys.exit(0)  # as interpreters end: everything is collected
assert os.waitstatus_to_exitcode(os.wait()[1]) == 0
store.system.is_empty()
store.close()
"""


def test_child_that_ends_leaves_the_parent_alone(server: PostgresqlServer, schema: str) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", FORK_AND_END, server.url(schema, application_name="ending")],
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")
