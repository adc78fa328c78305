"""The exit code of each kind of error: one table for every command that a person or a program calls."""

from __future__ import annotations

from headwater.errors import (
    BeatenError,
    ConflictError,
    HeadwaterError,
    MissingError,
    RefusedError,
    UnavailableError,
    UnknownOutcomeError,
    UnreadableError,
)

__all__ = ["FINDINGS", "exit_code"]

FINDINGS = 8

_CODES: tuple[tuple[type[HeadwaterError], int], ...] = (
    (UnknownOutcomeError, 7),
    (MissingError, 3),
    (UnavailableError, 4),
    (BeatenError, 6),
    (ConflictError, 6),
    (RefusedError, 5),
    (UnreadableError, FINDINGS),
)


def exit_code(error: HeadwaterError) -> int:
    """The exit code of an error; 1 for a kind that has none."""
    return next((code for kind, code in _CODES if isinstance(error, kind)), 1)
