"""Concurrent changes of a few rows, from threads and processes, with faults and killed processes: all are linearizable.

Each run has a seed of its own, which a failure shows; HEADWATER_SEED=number runs with that one. HEADWATER_SOAK=1 makes histories
twenty times as long.
"""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import history_process
import pytest
from broken_backends import BROKEN
from cas_clients import LENGTH, Entry, Work, anomalies, assert_linearizable, look, run_client, run_threads

from backend_fixtures import STORES
from faulty_backend import FaultyBackend
from forked_children import run_forked
from headwater import open_store
from headwater.errors import UnknownOutcomeError
from headwater.store import Backend, open_backend
from headwater.store.backends.memory import MemoryBackend
from headwater.store.urls import parse_url
from tiers import long_but_for

pytestmark = pytest.mark.timeout(300 * LENGTH)
WRITES = [
    "create_reference",
    "create_references",
    "swap_reference",
    "remove_reference",
    "write_objects",
    "insert_object",
    "update_object",
    "delete_objects",
]
on_shared_databases = pytest.mark.parametrize("name", long_but_for({"sqlite"}, [name for name in STORES if name != "memory"]))


@pytest.fixture
def switching() -> Iterator[None]:
    """Threads that take turns after a few instructions, so that those in memory meet at all."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(usual)


@pytest.fixture
def open_on(request: pytest.FixtureRequest) -> Iterator[Callable[[str], Backend]]:
    """Opens a backend of an empty store by the name of its kind."""
    opened: list[Backend] = []

    def open_it(name: str) -> Backend:
        opened.append(open_backend(parse_url(STORES[name](request))))
        return opened[-1]

    yield open_it
    for backend in opened:
        backend.close()


@pytest.mark.parametrize("name", STORES)
def test_changes_by_threads_are_linearizable(name: str, open_on: Callable[[str], Backend], seed: int, switching: None) -> None:
    backend = open_on(name)
    journal = run_threads(8, backend, Work(seed, 100 * LENGTH))

    assert_linearizable(journal + look(backend), least=50)


@pytest.mark.parametrize("name", STORES)
def test_changes_whose_answers_were_lost_are_linearizable(
    name: str, open_on: Callable[[str], Backend], seed: int, switching: None
) -> None:
    backend = open_on(name)
    faults = FaultyBackend(backend)
    chance = random.Random(seed)
    for method in WRITES:
        for at in chance.sample(range(1, 30 * LENGTH), 4 * LENGTH):
            faults.fail(method, at=at, **chance.choice(FAULTS)())
    journal = run_threads(8, faults, Work(seed, 100 * LENGTH))

    assert_linearizable(journal + look(backend), least=30)


FAULTS: list[Callable[[], dict[str, object]]] = [
    lambda: {"before": True},
    lambda: {"before": False},
    lambda: {"before": True, "fault": UnknownOutcomeError("lost on its way")},
]


@on_shared_databases
def test_changes_by_processes_are_linearizable(
    name: str, open_on: Callable[[str], Backend], request: pytest.FixtureRequest, tmp_path: Path, seed: int
) -> None:
    url = STORES[name](request)
    journal = run_processes(url, tmp_path, Work(seed, 100 * LENGTH), killed=0)

    assert_linearizable(journal, least=30)


@on_shared_databases
def test_changes_by_processes_of_which_some_are_killed_are_linearizable(
    name: str, request: pytest.FixtureRequest, tmp_path: Path, seed: int
) -> None:
    url = STORES[name](request)
    journal = run_processes(url, tmp_path, Work(seed, 100 * LENGTH), killed=2)

    assert_linearizable(journal, least=20)


def run_processes(url: str, folder: Path, work: Work, *, killed: int) -> list[Entry]:
    """The journals of four fresh processes, of which so many are killed in the middle, and of a look afterwards."""
    files = [folder / f"journal-{client}" for client in range(1, 5)]
    endless = work._replace(operations=1_000_000)
    chance = random.Random(work.seed)
    processes = [
        history_process.start(url, number + 1, endless if number < killed else work, file) for number, file in enumerate(files)
    ]
    try:
        history_process.begin(processes)
        for process, file in list(zip(processes, files, strict=True))[:killed]:
            kill_at(process, file, work.operations * chance.random())
        for process in processes:
            process.communicate(timeout=120)
        assert [process.returncode for process in processes] == [-9] * killed + [0] * (4 - killed)
    finally:
        for process in processes:
            process.kill()
            process.communicate()
    backend = open_backend(parse_url(url))
    try:
        return [entry for file in files for entry in history_process.journal_of(file)] + look(backend)
    finally:
        backend.close()


def kill_at(process: subprocess.Popen[bytes], journal: Path, entries: float) -> None:
    """Kill a process in the middle of what it does, when it has written so much into its journal."""
    deadline = time.monotonic() + 30
    while process.poll() is None and time.monotonic() < deadline:
        if journal.exists() and len(history_process.journal_of(journal)) > entries:
            break
        time.sleep(0.001)
    process.kill()


@on_shared_databases
def test_changes_by_forked_children_and_their_parent_are_linearizable(
    name: str, request: pytest.FixtureRequest, seed: int
) -> None:
    work = Work(seed, 100 * LENGTH)
    with open_store(STORES[name](request)) as store:
        begin = time.monotonic() + 0.2
        before = run_threads(2, store.backend, Work(seed, 10))  # connections that children must not use
        own: list[Entry] = []
        children = run_forked(
            4,
            lambda number: run_alone(store.backend, 10 + number, work, begin),
            meanwhile=lambda: own.extend(run_alone(store.backend, 20, work, begin)),
        )
        journal = [*before, *own, *(entry for child in children for entry in child), *look(store.backend)]

    assert_linearizable(journal, least=40)


def run_alone(backend: Backend, client: int, work: Work, begin: float) -> list[Entry]:
    """The journal of one client that begins at a moment of the monotonic clock, when the others do."""
    journal: list[Entry] = []
    time.sleep(max(0.0, begin - time.monotonic()))
    run_client(backend, client, work, journal.append)
    return journal


@pytest.mark.parametrize("make", BROKEN.values(), ids=BROKEN)
def test_backend_that_breaks_its_promise_is_found_out(make: Callable[[], Backend], seed: int, switching: None) -> None:
    """One run finds it three times in four or more."""
    assert any(judge(make(), Work(seed + attempt, 200)) for attempt in range(10))


def test_same_clients_find_nothing_wrong_with_one_that_keeps_it(seed: int, switching: None) -> None:
    assert judge(MemoryBackend(), Work(seed, 200)) == []


def judge(backend: Backend, work: Work) -> list[str]:
    return anomalies(run_threads(8, backend, work) + look(backend))
