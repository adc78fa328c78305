"""How a process ends: the exit code of each kind of error, and the signals that ask it to end.

One table of codes for every command that a person or a program calls: the same situation ends with the same code, whichever command
meets it. Where two codes could be meant:

2, not 5      what the command line or a setting says does not have the form that is expected there: a duration, a time, an id, a commit
              or reference, a number. Nothing is opened
3, not 5      what is named is not there: a store, a realm, a commit that was collected, a file to read
5, not 2      it has the right form, and a rule says no: a name or place that nothing may have, what a file holds, a wrong state, a
              confirmation that is missing or repeats something else, a file that would be overwritten, a database that refuses the login
6, not 5      it would have been right a moment ago: somebody made, moved or took it meanwhile, or before
"""

from __future__ import annotations

import os
import signal
import threading
from queue import SimpleQueue
from types import FrameType

from headwater.errors import (
    ConflictError,
    CorruptionError,
    HeadwaterError,
    InterruptedWorkError,
    NotFoundError,
    RefusedError,
    SwapConflictError,
    UnavailableError,
    UnknownOutcomeError,
)

__all__ = ["DIFFERENCES", "FINDINGS", "FORCED", "INTERRUPTED", "exit_code", "stop_at_signals"]

FINDINGS = 8
DIFFERENCES = 9
"""Of a comparison that found some. `diff` and `kubectl diff` say 1, which is a bug here."""
INTERRUPTED = 130
FORCED = 128
"""What is added to the number of a signal that ends a process at once."""

_CODES: tuple[tuple[type[HeadwaterError], int], ...] = (
    (InterruptedWorkError, INTERRUPTED),
    (UnknownOutcomeError, 7),
    (NotFoundError, 3),
    (UnavailableError, 4),
    (SwapConflictError, 6),
    (ConflictError, 6),
    (RefusedError, 5),
    (CorruptionError, FINDINGS),
)


def exit_code(error: HeadwaterError) -> int:
    """The exit code of an error; 1 for a kind that has none."""
    return next((code for kind, code in _CODES if isinstance(error, kind)), 1)


def stop_at_signals(*, is_forced_by_second: bool = True) -> threading.Event:
    """Take SIGTERM and SIGINT over, for the rest of the process. Returns the event that the first of them sets.

    Call it in the main thread, as early as possible: a process with the number 1, as in a container, does not even get a signal that
    it has no handler for.

    is_forced_by_second   whether a second signal ends the process at once
    """
    stop, signals = threading.Event(), SimpleQueue[int]()

    # Python runs a handler in the main thread, between any two steps of whatever that does. One that sets an event waits for ever where
    # the main thread is in a wait for that very event: each wait holds the event's lock for a moment when it begins and when it ends.
    #
    #     main thread   stop.wait(0.25) takes the event's lock | handler: stop.set() waits for that lock
    #     SIGTERM                                              ^
    #
    # So the handler only puts the signal into a SimpleQueue, whose `put` may interrupt anything, and a thread sets the event.
    noted: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        noted.append(number)
        if is_forced_by_second and len(noted) > 1:
            os._exit(FORCED + number)
        signals.put(number)

    def pass_on() -> None:
        signals.get()
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, note)
    threading.Thread(target=pass_on, name="stop-signals", daemon=True).start()
    return stop
