"""The steps after the one that made an operation true. Once something is durable, nobody is told that nothing happened.

An error that says "did not happen" (UnavailableError, RefusedError, ConflictError, BeatenError, MissingError) is good for the first
durable step of an operation alone. What comes after it is repeated, and where that does not help the outcome is unknown: some of
it is there, and the same operation once more, or `headwater fsck --repair`, brings it to its end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from headwater.errors import (
    BeatenError,
    ConflictError,
    FencedError,
    HeadwaterError,
    MissingError,
    RefusedError,
    UnavailableError,
    UnknownOutcomeError,
)
from headwater.store import RealmStore

__all__ = ["complete"]

R = TypeVar("R")
_DENIALS = (BeatenError, ConflictError, MissingError, RefusedError)


def complete(
    rows: RealmStore, step: Callable[[], R], *, done: str, passed_on: tuple[type[HeadwaterError], ...] = (FencedError,)
) -> R:
    """Run a step that follows a durable one: again while the database is away, until the commit time-out ends.

    step          does no harm when it is run again
    done          what is durable already, and what to do if the rest is not: a sentence
    passed_on     errors that say what became of the operation by themselves
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
        except _DENIALS as fault:
            raise UnknownOutcomeError(f"{done} ({fault})") from fault
        except (UnavailableError, UnknownOutcomeError) as fault:
            if rows.clock.monotonic() >= ends:
                raise UnknownOutcomeError(f"{done} ({fault})") from fault
        rows.clock.sleep(wait)
        wait = min(2 * wait, rows.settings.commit_backoff_limit_seconds)
