"""Connections to a server on both sides of a fork, through real stores."""

from __future__ import annotations

import contextlib
import gc
import os
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from backend_fixtures import STORES
from forked_children import run_forked
from headwater.errors import SwapConflictError, UnavailableError
from headwater.store import ObjectId, ReferenceRow, Store, open_store
from servers.proxy import Proxy
from specimens import REALM, find_reference, read_object, reference, row

pytestmark = pytest.mark.long

SERVERS = [name for name in STORES if name in ("postgresql", "mongodb")]


@pytest.fixture(params=SERVERS)
def url(request: pytest.FixtureRequest) -> str:
    """An empty store on each server."""
    return STORES[request.param](request)


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with open_store(url) as store:
        yield store


def connection_of(store: Store) -> int:
    """What the server calls the connection that is used next."""
    if store.url.startswith("mongodb:"):
        hello = store.backend._calls.run_read("test", lambda c: c.client.admin.command("hello"))  # type: ignore[attr-defined]
        return int(hello["connectionId"])
    pool = store.backend._pool  # type: ignore[attr-defined]
    connection = pool.borrow()
    process = connection.only_row("SELECT pg_backend_pid()")[0]
    pool.give_back(connection)
    return int(process)


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


def counted(store: Store) -> int | None:
    stored = find_reference(store.backend)
    assert stored is not None
    return stored.pointer


def test_forked_child_uses_connections_of_its_own(store: Store) -> None:
    parent = connection_of(store)
    children = run_forked(3, lambda _: connection_of(store))

    assert len({parent, *children}) == 4
    assert connection_of(store) == parent


def test_parent_and_children_write_after_a_fork_and_nothing_is_lost(store: Store) -> None:
    store.backend.create_reference(reference(pointer=0))
    run_forked(3, lambda _: count_up(store, 20), meanwhile=lambda: count_up(store, 20))

    assert counted(store) == 80


def test_child_that_closes_the_store_does_not_disturb_the_parent(store: Store) -> None:
    parent = connection_of(store)
    run_forked(2, lambda number: (store.backend.write_objects([row(number + 1)]), store.close())[1])

    assert connection_of(store) == parent
    assert [read_object(store.backend, 1), read_object(store.backend, 2)] == [row(1), row(2)]


def test_parent_that_closes_the_store_does_not_disturb_its_child(url: str) -> None:
    store = open_store(url)
    store.backend.write_objects([row(1)])
    closed_read, closed_write = os.pipe()

    def work(_: int) -> bool:
        os.read(closed_read, 1)
        store.backend.write_objects([row(2)])
        return read_object(store.backend, 1) == row(1)

    def close_and_tell() -> None:
        store.close()
        os.write(closed_write, b"!")

    assert run_forked(1, work, meanwhile=close_and_tell) == [True]
    os.close(closed_read)
    os.close(closed_write)


def test_child_that_does_not_use_the_store_leaves_it_alone(store: Store) -> None:
    parent = connection_of(store)
    run_forked(2, lambda _: gc.collect() and None)

    assert connection_of(store) == parent


def test_grandchild_works_as_a_child_does(store: Store) -> None:
    def fork_again(number: int) -> bool:
        store.backend.write_objects([row(number + 1)])
        return run_forked(1, lambda _: read_object(store.backend, number + 1) is not None) == [True]

    assert run_forked(2, fork_again) == [True, True]


def test_forks_while_other_threads_call_disturb_nobody(store: Store) -> None:
    store.backend.create_reference(reference(pointer=0))
    threads = [threading.Thread(target=count_up, args=(store, 30)) for _ in range(3)]
    for thread in threads:
        thread.start()
    children = [run_forked(1, lambda _: (count_up(store, 5), os.getpid())[1]) for _ in range(5)]
    for thread in threads:
        thread.join(60)

    assert len({pid for [pid] in children}) == 5
    assert counted(store) == 115


@pytest.mark.long
def test_fork_does_not_wait_for_a_server_that_hangs(url: str) -> None:
    place = urlsplit(url)
    with Proxy(str(place.hostname), int(place.port or 0)) as proxy:
        through = url.replace(f":{place.port}", f":{proxy.port}").replace("timeout=60s", "timeout=10s&directConnection=true")
        with open_store(through) as store:
            store.backend.create_reference(reference())
            proxy.hang()
            caller = threading.Thread(target=find_or_fail, args=(store,))
            caller.start()
            while not proxy.drops:
                time.sleep(0.01)
            run_forked(1, lambda _: None)

            assert caller.is_alive()  # until its time is over, which a fork that waits would wait for
            proxy.close()
            caller.join(60)


def find_or_fail(store: Store) -> None:
    with contextlib.suppress(UnavailableError):
        find_reference(store.backend)


def test_fork_warns_of_nothing(store: Store) -> None:
    def work(_: int) -> list[str]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            connection_of(store)
            gc.collect()
        return [str(warning.message) for warning in caught]

    assert run_forked(2, work) == [[], []]


FORK_AND_END = """
import os, sys
from headwater.store import open_store
store = open_store(sys.argv[1])
store.new_id()
if os.fork() == 0:
    store.new_id()
    store.close()
    sys.exit(0)  # as interpreters end: everything is collected
assert os.waitstatus_to_exitcode(os.wait()[1]) == 0
store.new_id()
store.close()
"""


def test_process_that_forks_ends_without_a_warning(url: str) -> None:
    """Also the child that ends as a program does, with everything freed."""
    command = [sys.executable, "-X", "dev", "-W", "error", "-c", FORK_AND_END, url]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)

    assert (done.returncode, done.stderr) == (0, "")


def test_closing_ends_all_threads_of_the_store(url: str) -> None:
    before = {thread.ident for thread in threading.enumerate()}
    store = open_store(url)
    store.new_id()
    store.close()
    ours = [thread for thread in threading.enumerate() if thread.ident not in before]
    for thread in ours:
        thread.join(10)

    assert [thread.name for thread in ours if thread.is_alive()] == []
