"""The exit code of each kind of error: one table for every command that a person or a program calls.

The same situation ends with the same code, whichever command meets it. Where two codes could be meant:

2, not 5      what the command line or a setting says does not have the form that is expected there: a duration, a time, an id, a commit
              or reference, a number. Nothing is opened
3, not 5      what is named is not there: a store, a realm, a commit that was collected, a file to read
5, not 2      it has the right form, and a rule says no: a name or place that nothing may have, what a file holds, a wrong state, a
              confirmation that is missing or repeats something else, a file that would be overwritten, a database that refuses the login
6, not 5      it would have been right a moment ago: somebody made, moved or took it meanwhile, or before
"""

from __future__ import annotations

from headwater.errors import (
    ConflictError,
    CorruptionError,
    HeadwaterError,
    NotFoundError,
    RefusedError,
    SwapConflictError,
    UnavailableError,
    UnknownOutcomeError,
)

__all__ = ["FINDINGS", "exit_code"]

FINDINGS = 8

_CODES: tuple[tuple[type[HeadwaterError], int], ...] = (
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
