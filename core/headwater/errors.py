"""The error tree. Each class says what its caller should do next; values are attributes, and the message names them."""

from __future__ import annotations

__all__ = [
    "CollisionError",
    "CommitTimeoutError",
    "ConflictError",
    "CorruptionError",
    "ExpiredError",
    "FencedError",
    "HeadwaterError",
    "NotFoundError",
    "RefusedError",
    "StoreFullError",
    "SwapConflictError",
    "UnavailableError",
    "UnknownCommitError",
    "UnknownOutcomeError",
]


class HeadwaterError(Exception):
    """The root: catch this at a door."""


class SwapConflictError(HeadwaterError):
    """Lost a swap: read again, decide again."""


class FencedError(SwapConflictError):
    """Somebody else is in charge by now, of the task that this work belongs to or of everything: stop, and touch nothing more."""


class ConflictError(HeadwaterError):
    """What was asked contradicts what others did meanwhile: show it to the caller, who decides. ``details`` has one line each."""

    def __init__(self, message: str, *, details: tuple[object, ...] = ()) -> None:
        super().__init__(message)
        self.details = details


class RefusedError(HeadwaterError):
    """Will never work as asked: tell a person what is wrong and what would be right."""


class NotFoundError(HeadwaterError):
    """Not there."""


class ExpiredError(NotFoundError):
    """Was there, and has been collected since: start again from the present."""


class CorruptionError(HeadwaterError):
    """There, and wrong: never guess."""


class UnavailableError(HeadwaterError):
    """Did not happen: try again later."""


class StoreFullError(UnavailableError):
    """Did not happen for lack of room: make some before you try again."""


class CollisionError(UnavailableError):
    """Did not happen, because another process has made the same id, ``object_id`` if it is known: try again, with new ones."""

    def __init__(self, message: str, *, object_id: int = 0) -> None:  # default: it is pickled
        super().__init__(message)
        self.object_id = object_id


class CommitTimeoutError(UnavailableError):
    """Did not happen in time: others were always faster, or the database too slow."""

    def __init__(self, message: str, *, attempts: int = 0, elapsed_seconds: float = 0.0) -> None:  # defaults: it is pickled
        super().__init__(message)
        self.attempts = attempts
        self.elapsed_seconds = elapsed_seconds


class UnknownOutcomeError(HeadwaterError):
    """May have happened: look before you act or clean up."""


class UnknownCommitError(UnknownOutcomeError):
    """A commit that may have happened: look for it in the log of its reference before you do it again."""

    def __init__(
        self, message: str, *, commit_id: int = 0, reference: str = "", realm: str = "", attempts: int = 0
    ) -> None:  # defaults: it is pickled
        super().__init__(message)
        self.commit_id = commit_id
        self.reference = reference
        self.realm = realm
        self.attempts = attempts
