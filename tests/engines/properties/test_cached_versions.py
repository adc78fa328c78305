"""What the cached reads of one store show of a reference never goes back, however late an answer of the database comes.

Threads that race find it by chance (a seed is shown with a failure; HEADWATER_SOAK=1 lets them race twenty times as long); answers
that are held back until others have been there find it each time.
"""

from __future__ import annotations

import random
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from cas_clients import LENGTH
from object_model import ModelNote
from two_stores import Kept

from fake_clock import FakeClock
from faulty_backend import FaultyBackend, Hang
from headwater.errors import SwapConflictError
from headwater.settings import Settings
from headwater.store import ObjectId, RealmId, RealmKey, RealmStore, Reference, ReferenceRow, Store
from headwater.store.backends.memory import MemoryBackend
from headwater.store.cache import Cache, CacheTicket

NAME = "main"
SMALL = 2_000
"""Bytes of a cache with room for two or three references."""


class SlowAnswers(Kept):
    """Some reads take as long as on a network, after the database has looked."""

    def read_references(self, realm: RealmKey, names: list[str]) -> Any:
        rows = self.backend.read_references(realm, names)
        if random.random() < 0.3:
            time.sleep(random.random() * 0.0005)
        return rows


class LateCache(Cache):
    """A cache that takes each answer as if it had been asked for just now: the mistake that these tests are about."""

    def put_reference(self, row: ReferenceRow, ticket: CacheTicket, *, is_written: bool = False) -> None:
        super().put_reference(row, self.ticket(), is_written=is_written)


@pytest.fixture
def switching() -> Iterator[None]:
    """Threads that take turns after a few instructions."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


def open_rows(backend: Any, kind: type[Cache] = Cache, *, cache_bytes: int = 1 << 20) -> RealmStore:
    settings = Settings(cache_bytes=cache_bytes)
    store = Store(backend, url="memory://", settings=settings, clock=FakeClock())
    store.cache = kind(clock=store.clock, budget_bytes=cache_bytes, reference_ttl_seconds=settings.reference_ttl_seconds)
    return store.rows(RealmId("acme"), RealmKey(77))


def race(rows: RealmStore, *, seconds: float) -> list[str]:
    """What went back, in words: eight readers of the cache, one writer, and one who is always beaten."""
    first = rows.create_reference(NAME, ObjectId(1))
    others = [rows.create_reference(f"other-{number}", ObjectId(1)).name for number in range(5)]
    until = time.monotonic() + seconds
    faults: list[str] = []
    highest = first.version

    def read() -> None:
        seen = 0
        while time.monotonic() < until and not faults:
            known = highest
            found = rows.read_reference(NAME)
            if found.version < seen:
                faults.append(f"version {seen} was followed by {found.version}")
            if found.version < known:
                faults.append(f"version {known} was acknowledged here before, and {found.version} read")
            seen = found.version
            if random.random() < 0.1:
                rows.find_rows([NAME])  # as those do whose time to live is over
            if random.random() < 0.1:
                rows.read_reference(random.choice(others))  # which may push the other out

    def lose() -> None:
        while time.monotonic() < until and not faults:
            with pytest.raises(SwapConflictError):
                rows.raise_version(first)

    def write() -> None:
        nonlocal highest
        seen = rows.raise_version(first)
        while time.monotonic() < until and not faults:
            seen = rows.advance_reference(seen, ObjectId(2))
            highest = seen.version

    rows.find_rows([NAME])
    threads = [threading.Thread(target=read) for _ in range(8)] + [threading.Thread(target=write)]
    for thread in threads:
        thread.start()
    while highest == first.version and time.monotonic() < until:
        time.sleep(0.001)
    lose()
    for thread in threads:
        thread.join(60)
    assert faults or highest > first.version + 10, "hardly anything was written"
    return faults


@pytest.mark.parametrize("cache_bytes", [1 << 20, SMALL])
def test_cached_versions_never_go_back_for_threads_that_race(seed: int, switching: None, cache_bytes: int) -> None:
    random.seed(seed)
    rows = open_rows(SlowAnswers(MemoryBackend()), cache_bytes=cache_bytes)

    assert race(rows, seconds=1.5 * LENGTH) == []


def test_race_finds_a_cache_that_takes_late_answers(seed: int, switching: None) -> None:
    random.seed(seed)

    assert any(race(open_rows(SlowAnswers(MemoryBackend()), LateCache), seconds=5) for _ in range(3))


def push_out(rows: RealmStore, _: Reference) -> None:
    for number in range(20):
        rows.create_reference(f"pushing-{number}", ObjectId(1))


def lose_a_swap(rows: RealmStore, stale: Reference) -> None:
    with pytest.raises(SwapConflictError):
        rows.raise_version(stale)


def bury_and_create_again(rows: RealmStore, _: Reference) -> None:
    buried = rows.delete_reference(rows.read_reference(NAME, fresh=True))
    rows.clock.sleep(3600)
    rows.remove_tombstone(buried)
    rows.create_reference(NAME, ObjectId(9))


MEANWHILE: dict[str, Callable[[RealmStore, Reference], None]] = {
    "nothing more": lambda rows, stale: None,
    "a lost swap": lose_a_swap,
    "others push it out": push_out,
    "the cache is emptied": lambda rows, stale: rows.store.cache.clear(),
    "its name begins anew": bury_and_create_again,
}


@pytest.mark.parametrize("meanwhile", MEANWHILE.values(), ids=MEANWHILE)
def test_answer_that_was_overtaken_does_not_come_back(meanwhile: Callable[[RealmStore, Reference], None]) -> None:
    faults = FaultyBackend(MemoryBackend())
    rows = open_rows(faults, cache_bytes=SMALL)

    assert versions_beside_a_late_answer(rows, faults, meanwhile) == "never back"


def test_late_answer_is_noticed_in_a_cache_that_takes_it() -> None:
    faults = FaultyBackend(MemoryBackend())
    rows = open_rows(faults, LateCache, cache_bytes=SMALL)

    assert versions_beside_a_late_answer(rows, faults, lose_a_swap) == "gone back"


def versions_beside_a_late_answer(
    rows: RealmStore, faults: FaultyBackend, meanwhile: Callable[[RealmStore, Reference], None]
) -> str:
    """One reader's answer is held back while the row is changed; whether the cache shows what this store itself has written."""
    old = rows.create_reference(NAME, ObjectId(1))
    rows.store.cache.clear()
    held = faults.hang("read_references", before=False)
    late = threading.Thread(target=rows.find_row, args=(NAME,))
    late.start()
    held.reached()
    rows.advance_reference(old, ObjectId(2))
    meanwhile(rows, old)
    held.release()
    late.join(30)
    assert not late.is_alive()
    true = faults.backend.read_references(rows.key, [NAME])[0]
    assert true is not None
    return "never back" if rows.read_reference(NAME).version == true.version else "gone back"


def test_older_answers_stay_out_even_if_a_reader_came_late() -> None:
    """::

    first reader             others                           second reader
    takes its ticket
                             a lost swap drops the name
                                                              reads version 1
                             another process swaps to 2
    reads version 2: late,
    and not remembered
                                                              would put version 1
    """
    backend = MemoryBackend()
    faults = FaultyBackend(backend)
    rows, elsewhere = open_rows(faults), open_rows(backend)
    stale = rows.create_reference(NAME, ObjectId(1))
    old = rows.raise_version(stale)
    answers: list[Reference | None] = []
    first, first_held = start_reader(rows, faults, answers, before=True)
    lose_a_swap(rows, stale)
    second, second_held = start_reader(rows, faults, [], before=False)
    elsewhere.advance_reference(old, ObjectId(2))
    first_held.release()
    first.join(30)
    second_held.release()
    second.join(30)

    assert answers[0] is not None
    assert rows.read_reference(NAME).version >= answers[0].version == old.version + 1


def start_reader(
    rows: RealmStore, faults: FaultyBackend, answers: list[Reference | None], *, before: bool
) -> tuple[threading.Thread, Hang]:
    """A reader that stands still before the database looks, or after it."""
    held = faults.hang("read_references", before=before)
    reader = threading.Thread(target=lambda: answers.append(rows.find_row(NAME)), daemon=True)
    reader.start()
    held.reached()
    return reader, held


def test_late_reader_does_not_bring_a_deleted_object_back() -> None:
    faults = FaultyBackend(MemoryBackend())
    rows = open_rows(faults)
    keys = rows.write_objects([(ObjectId(5), ModelNote(text="a"))])
    rows.store.cache.clear()
    held = faults.hang("read_objects", before=False)
    late = threading.Thread(target=rows.find_object, args=(ObjectId(5), ModelNote))
    late.start()
    held.reached()
    assert rows.delete_unchanged(keys) == 1
    held.release()
    late.join(30)

    assert rows.find_object(ObjectId(5), ModelNote) is None
