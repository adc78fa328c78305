"""The same storms on real databases: threads, several stores, processes, forks, and processes that are killed."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from callers import Caller, at_once
from counters import ADD, LOOK, REFUSE, Answer, assert_exact, counted, tell
from grounds import LENGTH, LOST_ANSWER, LOST_REQUEST, PATIENT, Ground
from storm_process import THREADS, StormingProcess, rows_in

from backend_fixtures import STORES
from forked_children import run_forked
from headwater.commits import Transaction
from headwater.store import open_backend, open_store
from headwater.store.urls import parse_url
from tiers import long_but_for

COMMITS = {"memory": 10, "sqlite": 10, "postgresql": 8, "mongodb": 2}
on_shared_databases = pytest.mark.parametrize("name", long_but_for({"sqlite"}, ["sqlite", "postgresql"]))
"""MongoDB's test server is too slow for storms of processes; its threads storm below."""


@pytest.fixture(params=COMMITS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=[True, False], ids=["one call", "two calls"])
def hindered(request: pytest.FixtureRequest, name: str) -> Iterator[Ground]:
    """A database that fails on demand, in front of a real one."""
    ground = Ground(open_backend(parse_url(STORES[name](request))), is_atomic=request.param)
    yield ground
    ground.close()


def work_of(ground: Ground, client: int, commits: int) -> Callable[[], list[Answer]]:
    rows, chance = ground.rows, random.Random(client)
    return lambda: [tell(rows, client, chance.choice((ADD, ADD, ADD, LOOK, REFUSE))) for _ in range(commits)]


def test_threads_and_stores_through_lost_answers_end_exactly(hindered: Ground, name: str) -> None:
    second = hindered.open()
    for at, fault in ((2, LOST_ANSWER), (4, LOST_REQUEST), (7, LOST_ANSWER), (11, {"before": True})):
        hindered.faults.fail(hindered.swap, at=at, **fault)
    commits = COMMITS[name] * LENGTH
    works = [work_of(hindered, client, commits) for client in range(4)]
    works += [lambda client=client: [tell(second, client) for _ in range(commits)] for client in (8, 9)]  # type: ignore[misc]
    journal = [answer for answers in at_once(works) for answer in answers]
    hindered.faults.heal()

    assert assert_exact(hindered.rows, journal, deleted=hindered.witness.deleted) >= 3 * commits


@on_shared_databases
def test_processes_count_exactly(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    url = STORES[name](request)
    with open_store(url, settings=PATIENT) as store:
        rows = rows_in(store)
        processes = [StormingProcess(url, tmp_path / f"{number}", f"process {number}", 12 * LENGTH) for number in range(3)]
        journal = [answer for process in processes for answer in process.end()]

        assert assert_exact(rows, journal) == 3 * THREADS * 12 * LENGTH


@on_shared_databases
@pytest.mark.parametrize("after", [1, 9])
def test_process_killed_in_the_storm_leaves_the_others_exact(
    name: str, after: int, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    url = STORES[name](request)
    with open_store(url, settings=PATIENT) as store:
        rows = rows_in(store)
        doomed = StormingProcess(url, tmp_path / "doomed", "doomed", 10_000)
        others = [StormingProcess(url, tmp_path / f"{number}", f"process {number}", 12 * LENGTH) for number in range(2)]
        doomed.kill_after(after)
        journal = [*doomed.end(), *(answer for process in others for answer in process.end())]

        assert assert_exact(rows, [*journal, tell(rows, "afterwards")]) > 2 * THREADS * 12 * LENGTH + after


@on_shared_databases
def test_children_forked_in_the_storm_go_on_by_themselves(name: str, request: pytest.FixtureRequest) -> None:
    """Their parent's threads stand in line, run changes and publish at the moment of the fork; a child has none of them."""
    with open_store(STORES[name](request), settings=PATIENT) as store:
        rows, is_over = rows_in(store), threading.Event()

        def storm(client: int) -> list[Answer]:
            journal = []
            while not is_over.is_set():
                journal.append(tell(rows, client))
            return journal

        callers = [Caller(lambda client=client: storm(client)) for client in range(4)]  # type: ignore[misc]
        try:
            children = run_forked(4, lambda number: [tell(rows, f"child {number}") for _ in range(5)])
        finally:
            is_over.set()
        journal = [answer for caller in callers for answer in caller.result()]
        journal += [answer for child in children for answer in child]

        assert assert_exact(rows, journal) == len(journal) > 20


def test_child_forked_inside_a_change_commits_as_its_parent(tmp_path: Path) -> None:
    with open_store(f"sqlite:///{tmp_path}/store.db", settings=PATIENT) as store:
        rows = rows_in(store)
        children: list[Answer] = []

        def forking(tx: Transaction) -> int:
            if not children:
                children.extend(run_forked(1, lambda _: tell(rows, "child")))
            return counted(ADD)(tx)

        parent = tell(rows, "parent", ADD, forking)

        assert sorted([parent.number, children[0].number]) == [1, 2]  # type: ignore[type-var]
        assert assert_exact(rows, [parent, *children]) == 2
