"""Real drivers and servers when answers are dropped on the way, and when the server is killed: histories stay linearizable.

A seed and HEADWATER_SOAK=1 work as in test_histories.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest
from cas_clients import KEYS, LENGTH, Entry, Key, Work, assert_linearizable, look, run_threads

from backend_fixtures import STORES
from headwater.store import Backend, open_backend
from headwater.store.urls import parse_url
from servers.proxy import Proxy

MORE_KEYS = (*KEYS, *(Key(kind, number) for kind in ("reference", "object") for number in (3, 4)))
"""So that changes without an answer are few on each row."""


@contextmanager
def opened(url: str) -> Iterator[Backend]:
    backend = open_backend(parse_url(url))
    try:
        yield backend
    finally:
        backend.close()


def through(proxy: Proxy, url: str) -> str:
    place = urlsplit(url).netloc.rpartition("@")[2]
    assert url.count(place) == 1
    return url.replace(place, f"{proxy.host}:{proxy.port}")


@contextmanager
def meddling(chance: random.Random, acts: list[Callable[[], None]], *, pause_seconds: float) -> Iterator[None]:
    """Something bad after every short while, for as long as the block lasts."""
    is_over = threading.Event()

    def run() -> None:
        while not is_over.wait(chance.uniform(0.2, 1) * pause_seconds):
            chance.choice(acts)()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join(30)


@pytest.mark.parametrize("name", [name for name in STORES if name in ("postgresql", "mongodb")])
def test_changes_whose_answers_are_dropped_on_the_way_are_linearizable(
    name: str, request: pytest.FixtureRequest, seed: int
) -> None:
    url = STORES[name](request)
    place = urlsplit(url)
    assert place.hostname is not None
    assert place.port is not None
    work = Work(seed, 60 * LENGTH, MORE_KEYS)
    with opened(url) as direct, Proxy(place.hostname, place.port) as proxy, opened(through(proxy, url)) as backend:
        acts = [lambda: proxy.drop_answers(times=1)] * 3 + [lambda: proxy.drop_requests(times=1), proxy.cut]
        with meddling(random.Random(seed), acts, pause_seconds=0.03):
            journal = run_threads(8, backend, work)
        proxy.pass_on()
        assert_linearizable(journal + look(direct, MORE_KEYS), least=40)
    assert unanswered(journal) > 3, "hardly an answer was dropped"


def unanswered(journal: list[Entry]) -> int:
    """How many calls had no answer."""
    return 2 * sum(entry.what == "call" for entry in journal) - len(journal)


@pytest.mark.skipif("postgresql" not in STORES, reason="the backend for PostgreSQL is not there yet")
def test_a_server_that_is_killed_in_the_middle_loses_nothing_that_it_acknowledged(seed: int) -> None:
    """Its process alone is killed, again and again: what it had written to the disk stays there."""
    from servers.postgresql import PostgresqlServer

    work = Work(seed, 150 * LENGTH, MORE_KEYS)
    chance = random.Random(seed)
    deaths: list[int] = []

    def kill_now_and_then(journal: list[Entry]) -> None:
        for _ in range(2 * LENGTH):
            await_entries(journal, len(journal) + chance.randrange(100, 900))
            server.kill()
            deaths.append(len(journal))
            server.start()

    with PostgresqlServer(is_synced=True) as server, opened(server.url("killed", timeout="5s")) as backend:
        journal = run_threads(8, backend, work, meanwhile=kill_now_and_then)
        assert_linearizable(journal + look(backend, MORE_KEYS), least=40)
    assert deaths[0] < len(journal) * 0.9, "it was killed when all was done"
    assert any(entry.what == "never" for entry in journal) or unanswered(journal), "nobody noticed"


def await_entries(journal: list[Entry], count: int) -> None:
    """Until so much was written down, or nothing more comes."""
    deadline = time.monotonic() + 3
    while len(journal) < count and time.monotonic() < deadline:
        time.sleep(0.001)
