"""Headwater's errors as pyiceberg's, for its users catch those, and its transactions act on them.

    UnknownOutcomeError                   CommitStateUnknownException: pyiceberg leaves all files where they are
    ConflictError, BeatenError            CommitFailedException: it did not happen; pyiceberg tries again, or removes its files
    UnavailableError                      while committing the same; otherwise ServiceUnavailableError
    RefusedError                          while committing ValidationException, so that pyiceberg removes its files and does not
                                          try again; otherwise ValueError
    MissingError                          NoSuchIdentifierError: no such realm, catalog or reference

What is there and cannot be read has no counterpart: UnreadableError goes through as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyiceberg.exceptions import (
    CommitFailedException,
    CommitStateUnknownException,
    NoSuchIdentifierError,
    ServiceUnavailableError,
    ValidationException,
)

from headwater.errors import (
    BeatenError,
    ConflictError,
    HeadwaterError,
    MissingError,
    RefusedError,
    UnavailableError,
    UnknownOutcomeError,
)

__all__ = ["translated"]


@contextmanager
def translated(*, is_commit: bool = False) -> Iterator[None]:
    """For what is done for a caller of pyiceberg.

    is_commit     pyiceberg has written files for it, and decides by the kind of error what becomes of them
    """
    try:
        yield
    except HeadwaterError as fault:
        kind = _counterpart(fault, is_commit)
        if kind is None:
            raise
        raise kind(str(fault)) from fault


def _counterpart(fault: HeadwaterError, is_commit: bool) -> type[Exception] | None:
    match fault:
        case UnknownOutcomeError():
            return CommitStateUnknownException
        case ConflictError() | BeatenError():
            return CommitFailedException
        case UnavailableError():
            return CommitFailedException if is_commit else ServiceUnavailableError
        case RefusedError():
            return ValidationException if is_commit else ValueError
        case MissingError():
            return NoSuchIdentifierError
    return None
