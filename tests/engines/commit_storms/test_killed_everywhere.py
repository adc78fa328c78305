"""A thread is killed at one moment of a commit after the other, with somebody else in line at that very moment.

Whoever it was, and wherever: the others are told the truth, nobody waits for ever, and no commit is missing from the log.
"""

from __future__ import annotations

import itertools
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import pytest
from callers import Caller, Held, in_line
from counters import ADD, Answer, assert_exact, counted, killed, tell
from grounds import LENGTH, LOST_ANSWER, Ground

from headwater.commits import Transaction
from headwater.settings import Settings
from tiers import Sample

EVERY = 1 if LENGTH > 1 else 5
"""In a quick run, every fifth moment."""
MOST_MOMENTS = 3000


class Assassin:
    """Raises in a thread, at the ``at``-th moment at which the interpreter would do so in the package of commits.

    That is where a function begins, and where a call of a built-in one ends. ``before`` is done just before it.
    """

    def __init__(self, at: int, before: Callable[[], object]) -> None:
        self._left = at
        self._before = before
        self.place = ""

    @contextmanager
    def watching(self) -> Iterator[None]:
        """This thread, until the block ends."""
        sys.setprofile(self._look)
        try:
            yield
        finally:
            sys.setprofile(None)

    def _look(self, frame: FrameType, event: str, arg: object) -> None:
        if self.place or event not in ("call", "c_return") or "/headwater/commits/" not in frame.f_code.co_filename:
            return
        self._left -= 1
        if not self._left:
            code = frame.f_code
            self.place = f"{code.co_filename.rpartition('/')[2]}:{frame.f_lineno} ({code.co_name}), {event}"
            self._before()
            raise KeyboardInterrupt


Scene = Callable[[Ground, Held, Callable[[Any], Answer]], None]
"""Brings callers into line, one of whom does what the last argument does: it is the victim."""


Trouble = Callable[[Ground, list[Answer]], None]
"""What happens to the database meanwhile; others who commit write down what they were told."""


def alone(ground: Ground, held: Held, victim: Callable[[Any], Answer]) -> None:
    held.call(lambda: victim(counted(ADD)))


def first_of_three(ground: Ground, held: Held, victim: Callable[[Any], Answer]) -> None:
    def change(tx: Transaction) -> int:
        for client in range(2):
            held.call(lambda client=client: tell(ground.rows, client))  # type: ignore[misc]
        return counted(ADD)(tx)

    held.call(lambda: victim(change))


def last_of_three(ground: Ground, held: Held, victim: Callable[[Any], Answer]) -> None:
    held.lead(lambda: tell(ground.rows, 0, ADD, holding(held)))
    held.call(lambda: tell(ground.rows, 1))
    held.call(lambda: victim(counted(ADD)))


def second_of_three(ground: Ground, held: Held, victim: Callable[[Any], Answer]) -> None:
    held.lead(lambda: tell(ground.rows, 0, ADD, holding(held)))
    held.call(lambda: victim(counted(ADD)))
    held.call(lambda: tell(ground.rows, 1))


def left_out(ground: Ground, held: Held, victim: Callable[[Any], Answer]) -> None:
    """The victim's change takes too long twice, so that in the end it commits alone."""
    runs = []

    def change(tx: Transaction) -> int:
        runs.append(1)
        if len(runs) < 3:
            held.call(lambda: tell(ground.rows, f"behind run {len(runs)}"))
            time.sleep(0.03)
        return counted(ADD)(tx)

    held.call(lambda: victim(change))


def holding(held: Held) -> Callable[[Transaction], int]:
    def change(tx: Transaction) -> int:
        held.hold(tx)
        return counted(ADD)(tx)

    return change


def murder(ground: Ground, scene: Scene, trouble: Trouble, at: int) -> str:
    """Play a scene in which the victim dies at one moment. Says where that was; nothing when it was through before."""
    begun, others = time.monotonic_ns(), list[Answer]()
    trouble(ground, others)
    with in_line() as held:
        assassin = Assassin(at, lambda: held.call(lambda: tell(ground.rows, "newcomer")))

        def victim(change: Any) -> Answer:
            try:
                with assassin.watching():
                    return tell(ground.rows, "victim", ADD, change)
            except KeyboardInterrupt:
                return killed("victim", begun)

        scene(ground, held, victim)
    settle(held.callers)
    journal = [*others, *(caller.result() for caller in held.callers)]
    journal.append(tell(ground.rows, "afterwards"))
    try:
        assert_exact(ground.rows, journal, deleted=ground.witness.deleted)
    except Exception as fault:
        raise AssertionError(f"killed at {assassin.place}: {fault}") from fault
    return assassin.place


def settle(callers: list[Caller]) -> None:
    """Wait for all, also for those who came while others were waited for."""
    for caller in callers:
        caller.wait()
    assert threading.active_count() < 60


def nothing(ground: Ground, journal: list[Answer]) -> None:
    """All goes well."""


def lost_answer(ground: Ground, journal: list[Answer]) -> None:
    ground.faults.fail(ground.swap, **LOST_ANSWER)


def beaten(ground: Ground, journal: list[Answer]) -> None:
    others = ground.open(is_safe=True)
    ground.faults.intervene(ground.swap, lambda: journal.append(tell(others, "of another process")))


@pytest.mark.parametrize("trouble", [nothing, lost_answer, beaten])
@pytest.mark.parametrize("scene", [alone, first_of_three, second_of_three, last_of_three])
def test_murder_harms_nobody(make_ground: Callable[[Settings], Ground], scene: Scene, trouble: Trouble, sample: Sample) -> None:
    settings = Settings(commit_timeout_seconds=20, commit_member_seconds=60)
    moments = range(1, EVERY * MOST_MOMENTS, EVERY)
    murders = murder_at(lambda: make_ground(settings), scene, trouble, sample.one_in(5, moments))

    assert sample.at_least(10, quick=1) < murders < MOST_MOMENTS


@pytest.mark.parametrize("trouble", [nothing, lost_answer, beaten])
def test_murder_of_one_left_out_harms_nobody(
    make_ground: Callable[[Settings], Ground], trouble: Trouble, sample: Sample
) -> None:
    settings = Settings(commit_timeout_seconds=20, commit_member_seconds=0.01)
    moments = range(1, 3 * EVERY * MOST_MOMENTS, 3 * EVERY)
    murders = murder_at(lambda: make_ground(settings), left_out, trouble, sample.one_in(5, moments))

    assert sample.at_least(10, quick=1) < murders < MOST_MOMENTS


def murder_at(make: Callable[[], Ground], scene: Scene, trouble: Trouble, moments: Iterable[int]) -> int:
    """One murder after the other, until the victim is through; returns how many there were."""
    return sum(1 for _ in itertools.takewhile(lambda moment: murder(make(), scene, trouble, moment), moments))
