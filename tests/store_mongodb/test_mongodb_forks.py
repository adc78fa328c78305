"""Connections on both sides of a fork, through real stores."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator

import pytest
from mongo_rows import REALM, find, find_reference, reference, row

from forked_children import run_forked
from headwater.errors import SwapConflictError
from headwater.store import ObjectId, Store, open_store
from headwater.store.backend import ReferenceRow
from headwater.store.backends.mongodb import MongodbBackend
from servers.mongodb import MongodbServer


@pytest.fixture
def store(server: MongodbServer, database: str) -> Iterator[Store]:
    with open_store(server.url(database, timeout="30s")) as store:
        yield store


def client_of(store: Store) -> int:
    """What the server calls the connection that is used next."""
    assert isinstance(store.backend, MongodbBackend)
    return store.backend._calls.run_read("test", lambda c: int(c.client.admin.command("hello")["connectionId"]))


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
    parent = client_of(store)
    children = run_forked(3, lambda _: client_of(store))

    assert len({parent, *children}) == 4
    assert client_of(store) == parent


def test_parent_and_children_lose_nothing_after_a_fork(store: Store) -> None:
    store.backend.create_reference(reference(pointer=0))
    run_forked(3, lambda _: count_up(store, 20), meanwhile=lambda: count_up(store, 20))
    found = find_reference(store.backend)

    assert found is not None
    assert found.pointer == 80


def test_child_that_closes_the_store_does_not_disturb_the_parent(store: Store) -> None:
    parent = client_of(store)
    run_forked(2, lambda number: (store.backend.write_objects([row(number + 1)]), store.close())[1])

    assert client_of(store) == parent
    assert find(store.backend, 2) == row(2)


def test_child_that_does_not_use_the_store_leaves_it_alone(store: Store) -> None:
    parent = client_of(store)
    run_forked(2, lambda _: gc.collect() and None)

    assert client_of(store) == parent


def test_grandchild_works_as_a_child_does(store: Store) -> None:
    def fork_again(number: int) -> bool:
        store.backend.write_objects([row(number + 1)])
        return run_forked(1, lambda _: find(store.backend, number + 1) is not None) == [True]

    assert run_forked(2, fork_again) == [True, True]


def test_forks_while_other_threads_call_disturb_nobody(store: Store) -> None:
    store.backend.create_reference(reference(pointer=0))
    threads = [threading.Thread(target=count_up, args=(store, 15)) for _ in range(3)]
    for thread in threads:
        thread.start()
    answers = [run_forked(1, lambda _: (count_up(store, 5), os.getpid())[1]) for _ in range(3)]
    for thread in threads:
        thread.join(60)
    found = find_reference(store.backend)

    assert len({pid for [pid] in answers}) == 3
    assert found is not None
    assert found.pointer == 60


def test_fork_warns_of_nothing(store: Store) -> None:
    def work(_: int) -> list[str]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            client_of(store)
            gc.collect()
        return [str(warning.message) for warning in caught]

    assert run_forked(2, work) == [[], []]


def test_process_that_forks_ends_without_a_warning(server: MongodbServer, database: str) -> None:
    """Also the child that ends as a program does, with everything freed, and one that never closes its store."""
    program = (
        "import os, sys, warnings\n"
        "from headwater.store import open_store\n"
        f"store = open_store({server.url(database)!r})\n"
        "store.new_id()\n"
        "if os.fork() == 0:\n"
        "    store.new_id()\n"
        "    store.close()\n"
        "    sys.exit()\n"
        "assert os.wait()[1] == 0\n"
        "store.new_id()\n"
        "store.close()\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], check=False, capture_output=True, text=True, timeout=60
    )

    assert (done.returncode, done.stderr) == (0, "")


def test_closing_ends_all_threads_of_the_store(server: MongodbServer, database: str) -> None:
    before = {thread.ident for thread in threading.enumerate()}
    store = open_store(server.url(database))
    store.new_id()
    store.close()
    ours = [thread for thread in threading.enumerate() if thread.ident not in before]
    for thread in ours:
        thread.join(10)

    assert [thread.name for thread in ours if thread.is_alive()] == []
