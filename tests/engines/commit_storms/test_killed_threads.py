"""Threads killed at any moment of a storm, as a time limit or an interrupt does it: all others are exact, and no one waits for ever."""

from __future__ import annotations

import ctypes
import gc
import random
import sys
import threading
import time
from collections.abc import Callable, Iterator

import pytest
from callers import PATIENCE_SECONDS, place_of
from counters import ADD, LOOK, Answer, assert_exact, killed, tell
from grounds import LENGTH, Ground
from storm_process import rows_in

from backend_fixtures import STORES
from headwater.settings import Settings
from headwater.store import RealmStore, open_store
from tiers import long_but_for

COMMITS = 25
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
"""Who is met in a destructor goes on."""


@pytest.fixture(autouse=True)
def switching() -> Iterator[None]:
    """Threads that take turns after a few instructions, so that they are met everywhere; but not in what clears up after others."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    gc.disable()
    yield
    gc.enable()
    sys.setswitchinterval(usual)


class Mortal(threading.Thread):
    """A thread that commits until it is done, or is killed by an exception that comes out of nowhere."""

    def __init__(self, rows: RealmStore, client: int) -> None:
        super().__init__(daemon=True)
        self._rows = rows
        self._client = client
        self._edge = threading.Lock()
        self._is_working = False
        self._begun = time.monotonic_ns()
        self.is_killed = False
        self.journal: list[Answer] = []

    def run(self) -> None:
        try:
            try:
                self._is_working = True
                for number in range(COMMITS):
                    self.journal.append(tell(self._rows, self._client, LOOK if number % 5 == 4 else ADD))
            finally:
                with self._edge:
                    self._is_working = False
        except KeyboardInterrupt:
            self.is_killed = True

    def kill(self) -> None:
        with self._edge:
            if self._is_working:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self.ident or 0), ctypes.py_object(KeyboardInterrupt))

    def answers(self) -> list[Answer]:
        self.join(PATIENCE_SECONDS)
        assert not self.is_alive(), f"waits for ever: {place_of(self)}"
        return [*self.journal, *([killed(self._client, self._begun)] if self.is_killed else [])]


def a_storm_with_murders(rows: list[RealmStore], chance: random.Random) -> list[Answer]:
    threads = [Mortal(rows[client % len(rows)], client) for client in range(10)]
    for thread in threads:
        thread.start()
    for victim in chance.sample(threads, 6):
        time.sleep(chance.random() * 0.006)
        victim.kill()
    return [answer for thread in threads for answer in thread.answers()]


@pytest.mark.parametrize("seed", long_but_for(range(1), range(8 * LENGTH)))
def test_storm_in_which_threads_are_killed_leaves_all_others_exact(ground: Ground, seed: int) -> None:
    journal = a_storm_with_murders([ground.rows], random.Random(seed))

    assert assert_exact(ground.rows, [*journal, tell(ground.rows, 99)], deleted=ground.witness.deleted) > 4 * 20


@pytest.mark.parametrize("seed", long_but_for({0}, range(2 * LENGTH)))
def test_same_with_lost_answers_and_members_left_out(make_ground: Callable[[Settings], Ground], seed: int) -> None:
    ground, chance = make_ground(Settings(commit_timeout_seconds=20, commit_member_seconds=0.001)), random.Random(seed)
    for at in chance.sample(range(5, 60), 10):
        ground.faults.fail(ground.swap, at=at, before=False)
    journal = a_storm_with_murders([ground.rows, ground.open()], chance)
    ground.faults.heal()

    assert assert_exact(ground.rows, [*journal, tell(ground.rows, 99)], deleted=ground.witness.deleted) > 4 * 20


@pytest.mark.parametrize("seed", long_but_for({0}, range(2 * LENGTH)))
@pytest.mark.parametrize("name", long_but_for({"sqlite"}, ["sqlite", "postgresql"]))
def test_threads_killed_inside_of_drivers_leave_all_others_exact(name: str, request: pytest.FixtureRequest, seed: int) -> None:
    with open_store(STORES[name](request), settings=Settings(commit_timeout_seconds=20)) as store:
        rows = rows_in(store)
        journal = a_storm_with_murders([rows], random.Random(seed))

        assert assert_exact(rows, [*journal, tell(rows, 99)]) > 4 * 20
