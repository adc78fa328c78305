"""Real drivers and servers when answers are dropped on the way, and when the server is killed: histories stay linearizable.

A seed and HEADWATER_SOAK=1 work as in test_histories.
"""

from __future__ import annotations

import random
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

pytestmark = [pytest.mark.long, pytest.mark.timeout(300 * LENGTH)]
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
    parts = urlsplit(url)
    assert url.count(parts.netloc) == 1
    login, at, _ = parts.netloc.rpartition("@")
    there = url.replace(parts.netloc, f"{login}{at}{proxy.host}:{proxy.port}")
    if parts.scheme != "mongodb":
        return there
    return f"{there}{'&' if parts.query else '?'}directConnection=true"  # else the server tells its address, and is asked there


def now_and_then(
    journal: list[Entry], times: int, *, entries: int, act: Callable[[], None], chance: random.Random
) -> list[int]:
    """Do something bad each time that more was written down, half to one and a half times as much; says at which lengths it was."""
    lengths = []
    for _ in range(times):
        until = len(journal) + round(entries * chance.uniform(0.5, 1.5))
        deadline = time.monotonic() + 3
        while len(journal) < until and time.monotonic() < deadline:
            time.sleep(0.0005)
        lengths.append(len(journal))
        act()
    return lengths


@pytest.mark.parametrize("name", [name for name in STORES if name in ("postgresql", "mongodb")])
def test_changes_whose_answers_are_dropped_on_the_way_are_linearizable(
    name: str, request: pytest.FixtureRequest, seed: int
) -> None:
    url = STORES[name](request)
    place = urlsplit(url)
    if place.hostname is None or "," in place.netloc:
        pytest.skip("a proxy stands before one server")
    times = (25 if name == "postgresql" else 12) * LENGTH  # MongoDB's driver looks for its server for half a second each time
    work = Work(seed, 80 * LENGTH, MORE_KEYS)
    chance = random.Random(seed)
    with opened(url) as direct, Proxy(place.hostname, place.port or 27017) as proxy, opened(through(proxy, url)) as backend:
        acts = [proxy.drop_answers] * 7 + [proxy.drop_requests] * 2
        holding = place.path[1:] if name == "mongodb" else ""  # what its driver asks besides goes to the database admin

        def do_one() -> None:
            if chance.random() < 0.1:
                proxy.cut()
            else:
                # Several, for drivers repeat by themselves what was lost once.
                chance.choice(acts)(times=chance.randint(1, 3), holding=holding)

        def spoil(journal: list[Entry]) -> None:
            now_and_then(journal, times, entries=40, act=do_one, chance=chance)
            proxy.pass_on()

        journal = run_threads(8, backend, work, meanwhile=spoil)
        assert_linearizable(journal + look(direct, MORE_KEYS), least=40)
    assert proxy.drops > times // 4, "hardly anything was lost"
    assert unanswered(journal), "no outcome was unknown"


def unanswered(journal: list[Entry]) -> int:
    """How many calls had no answer."""
    return 2 * sum(entry.what == "call" for entry in journal) - len(journal)


@pytest.mark.skipif("postgresql" not in STORES, reason="the backend for PostgreSQL is not there yet")
def test_server_killed_in_the_middle_loses_nothing_acknowledged(seed: int) -> None:
    """Its process alone is killed, again and again: what it had written to the disk stays there."""
    from servers.postgresql import PostgresqlServer

    work = Work(seed, 150 * LENGTH, MORE_KEYS)
    chance = random.Random(seed)
    deaths: list[int] = []

    def kill_and_start() -> None:
        server.kill()
        server.start()

    def kill_now_and_then(journal: list[Entry]) -> None:
        deaths.extend(now_and_then(journal, 2 * LENGTH, entries=500, act=kill_and_start, chance=chance))

    with PostgresqlServer(is_synced=True) as server, opened(server.url("killed", timeout="5s")) as backend:
        journal = run_threads(8, backend, work, meanwhile=kill_now_and_then)
        assert_linearizable(journal + look(backend, MORE_KEYS), least=40)
    assert deaths[0] < len(journal) * 0.9, "it was killed when all was done"
    assert any(entry.what == "never" for entry in journal) or unanswered(journal), "nobody noticed"
