"""Many writers at once, in threads or in processes: how many commits they get through, how long each waits, and what fails."""

from __future__ import annotations

import multiprocessing
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.synchronize import Barrier
from typing import Any, Protocol, runtime_checkable

__all__ = ["Act", "Crowd", "Storm", "Writer", "background", "storm", "writers"]

Act = Callable[[random.Random], Any]
"""Commits once. What it raises is a failure. One that can be closed is closed by its writer, on the same thread."""
Writer = Callable[[], Act]
"""Called on the writer's own thread, before all begin: opens what it needs and says how it commits."""
BEGIN_SECONDS = 120.0


@runtime_checkable
class Closing(Protocol):
    def close(self) -> None: ...


@dataclass
class Storm:
    """What came of it, over all turns of the same storm."""

    waits: list[float] = field(default_factory=list)
    """Seconds from call to answer, of every call that began in time, failed ones too."""
    done: int = 0
    """Commits that were over before the time was."""
    seconds: float = 0.0
    failures: Counter[str] = field(default_factory=Counter)
    """By the name of the error."""
    unluckiest: list[int] = field(default_factory=list)
    """Commits of the writer who got through fewest of them, in each turn."""

    @property
    def rate(self) -> float:
        return self.done / self.seconds

    @property
    def least_rate(self) -> float:
        """Of the unluckiest writer."""
        return sum(self.unluckiest) / self.seconds

    def percentile(self, share: float) -> float:
        ordered = sorted(self.waits)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]

    def add(self, other: Storm) -> None:
        self.waits += other.waits
        self.done += other.done
        self.seconds += other.seconds
        self.failures += other.failures
        self.unluckiest += other.unluckiest

    @classmethod
    def at_once(cls, storms: Sequence[Storm]) -> Storm:
        """One of all writers, from what each of them did in the same time."""
        whole = cls(seconds=max(one.seconds for one in storms), unluckiest=[min(one.done for one in storms)])
        for one in storms:
            whole.waits += one.waits
            whole.done += one.done
            whole.failures += one.failures
        return whole


def storm(each: Sequence[Writer], seconds: float) -> Storm:
    """All of these at once, on a thread each, for so long; calls under way at the end are waited for, and count as waits only."""
    begin = threading.Barrier(len(each))
    found: list[Storm] = []

    def run(writer: Writer, number: int) -> None:
        act = writer()
        begin.wait(BEGIN_SECONDS)
        found.append(_one(act, seconds, random.Random(number)))
        if isinstance(act, Closing):
            act.close()

    threads = [threading.Thread(target=run, args=(writer, number)) for number, writer in enumerate(each)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if len(found) < len(each):
        raise RuntimeError(f"{len(each) - len(found)} of {len(each)} writers did not begin: what they raised stands above")
    return Storm.at_once(found)


@contextmanager
def background(each: Sequence[Writer]) -> Iterator[list[int]]:
    """The same as long as the block lasts; says how many commits each writer got through. What fails there ends the block."""
    stop, done, faults = threading.Event(), [0] * len(each), []

    def run(writer: Writer, number: int) -> None:
        act, chance = writer(), random.Random(1000 + number)
        try:
            while not stop.is_set():
                act(chance)
                done[number] += 1
        except Exception as fault:  # noqa: BLE001 - it ends the block
            faults.append(fault)

    threads = [threading.Thread(target=run, args=(writer, number)) for number, writer in enumerate(each)]
    for thread in threads:
        thread.start()
    try:
        yield done
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    if faults:
        raise faults[0]


def writers(count: int, act: Act) -> list[Writer]:
    """So many that do the same."""
    return [lambda: act] * count


def _one(act: Act, seconds: float, chance: random.Random) -> Storm:
    mine = Storm(seconds=seconds)
    clock = time.perf_counter
    end = clock() + seconds
    while (started := clock()) < end:
        failure = None
        try:
            act(chance)
        except Exception as fault:  # noqa: BLE001 - whatever a contender raises is counted by its name
            failure = type(fault).__name__
        ended = clock()
        mine.waits.append(ended - started)
        if failure is not None:
            mine.failures[failure] += 1
        elif ended <= end:
            mine.done += 1
    return mine


class Crowd:
    """Processes that stay, each with what ``prepare(*arguments)`` made there: acts by name.

    Started anew, not forked, so that each opens its own store; every storm begins in all of them at once.
    """

    def __init__(self, count: int, prepare: Callable[..., dict[str, Act]], *arguments: Any) -> None:
        spawning = multiprocessing.get_context("spawn")
        self._count = count
        begin = spawning.Barrier(count)
        self._pool = ProcessPoolExecutor(count, mp_context=spawning, initializer=_prepare, initargs=(begin, prepare, arguments))

    def storm(self, act: str, seconds: float) -> Storm:
        chances = [random.getrandbits(32) for _ in range(self._count)]
        return Storm.at_once(list(self._pool.map(_take_part, [act] * self._count, [seconds] * self._count, chances)))

    def __enter__(self) -> Crowd:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown()


_mine: dict[str, Act] = {}
"""What this process can do, where it is one of a crowd."""
_begin: list[Barrier] = []


def _prepare(begin: Barrier, prepare: Callable[..., dict[str, Act]], arguments: tuple[Any, ...]) -> None:
    _begin.append(begin)
    _mine.update(prepare(*arguments))


def _take_part(act: str, seconds: float, chance: int) -> Storm:
    _begin[0].wait(BEGIN_SECONDS)
    return _one(_mine[act], seconds, random.Random(chance))
