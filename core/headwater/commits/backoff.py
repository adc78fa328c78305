"""Waits between the attempts of a commit, and retries of the later steps of an operation.

After a fault the waits double: the database may be overloaded, and immediate retries make it worse. A swap that was beaten is no
fault, and waits that grow with each would be unfair: a process that commits in a loop is always there, and beats one that sleeps and
tries once. So beaten commits are retried in bursts: a few attempts, one right after the other; then a long sleep, in which others
commit undisturbed; then twice as many attempts, and so on. A commit that has waited long wins soon.

Eight processes that commit in a loop to one reference get a little more done so than with waits that double, and the longest wait is a
fifth; with no waits at all each commit is beaten several times. docs/decisions/0007 has what else was tried, docs/performance.md the
figures of a machine to itself.

``complete_operation`` repeats the steps that follow the first durable step of an operation. From then on no error may say that nothing
happened (UnavailableError, RefusedError, ConflictError, SwapConflictError, NotFoundError): only the first durable step may raise
those. Where repeating does not help, the outcome is unknown: a part is durable, and the same operation once more, or
`headwater fsck --repair`, completes it.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TypeVar

from headwater.clock import Clock
from headwater.errors import (
    ConflictError,
    FencedError,
    HeadwaterError,
    NotFoundError,
    RefusedError,
    SwapConflictError,
    UnavailableError,
    UnknownOutcomeError,
)
from headwater.settings import Settings
from headwater.store import RealmStore

R = TypeVar("R")
_BURST = 3
"""Attempts of the first burst."""


class CommitBackoff:
    """The waits of one commit. Made when the commit begins."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._quickest = 0.0

    def pause(self, attempts_lost: int, *, attempt_seconds: float = 0.0) -> None:
        """Sleep before the next attempt; not at all before the first, when none is lost.

        attempt_seconds  how long the last one took from reading the reference to learning that its swap was beaten; 0 after a fault
        """
        if attempts_lost < 1:
            return
        if attempt_seconds > 0:
            self._quickest = min(attempt_seconds, self._quickest or attempt_seconds)
            bounds = bounds_after_beaten(self._settings, attempts_lost, self._quickest)
        else:
            bounds = bounds_after_fault(self._settings, attempts_lost)
        self._clock.sleep(random.uniform(*bounds))


def bounds_after_fault(settings: Settings, attempts_lost: int) -> tuple[float, float]:
    """The shortest and the longest wait in seconds after ``attempts_lost`` faults, 1 or more."""
    shortest = settings.commit_backoff_seconds
    longest = min(settings.commit_backoff_limit_seconds, shortest * 2 ** min(attempts_lost, 20))
    return shortest, max(shortest, longest)


def bounds_after_beaten(settings: Settings, attempts_lost: int, attempt_seconds: float) -> tuple[float, float]:
    """The shortest and the longest wait in seconds after a beaten swap: up to one attempt within a burst, half a limit or more after it."""
    limit = settings.commit_backoff_limit_seconds
    return (limit / 2, limit) if _is_end_of_burst(attempts_lost) else (0.0, min(attempt_seconds, limit))


def _is_end_of_burst(attempts_lost: int) -> bool:
    """Bursts of 3, 6, 12 ... attempts end after 3, 9, 21 ... of them."""
    bursts, rest = divmod(attempts_lost, _BURST)
    return rest == 0 and (bursts + 1).bit_count() == 1


_DENIALS = (SwapConflictError, ConflictError, NotFoundError, RefusedError)


def complete_operation(
    rows: RealmStore, step: Callable[[], R], *, done: str, passed_on: tuple[type[HeadwaterError], ...] = (FencedError,)
) -> R:
    """Run a step that follows a durable one: again while the database is away, until the commit time-out ends.

    step          does no harm when it is run again
    done          a sentence that says what is durable already, and what to do if the rest is not
    passed_on     errors that say by themselves what happened to the operation
    raises        UnknownOutcomeError when the step did not come to its end · any other error of the step, if it does not claim that
                  nothing happened
    """
    ends = rows.clock.monotonic() + rows.settings.commit_timeout_seconds
    wait = rows.settings.commit_backoff_seconds
    while True:
        try:
            return step()
        except passed_on:
            raise
        except _DENIALS as fault:  # it would say that nothing happened, and a part of the operation is durable
            raise UnknownOutcomeError(f"{done} ({fault})") from fault
        except (UnavailableError, UnknownOutcomeError) as fault:
            if rows.clock.monotonic() >= ends:
                raise UnknownOutcomeError(f"{done} ({fault})") from fault
        rows.clock.sleep(wait)
        wait = min(2 * wait, rows.settings.commit_backoff_limit_seconds)
