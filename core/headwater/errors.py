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
    "MaintenanceStoppedError",
    "NotFoundError",
    "RefusedError",
    "StoreFullError",
    "SwapConflictError",
    "UnavailableError",
    "UnknownCommitError",
    "UnknownOutcomeError",
]


class HeadwaterError(Exception):
    """The root: catch this at an entry point."""


class SwapConflictError(HeadwaterError):
    """A compare-and-swap failed because the row changed: read it again and decide again."""


class FencedError(SwapConflictError):
    """Another process has taken over, the task or the leadership: stop, and change nothing more."""


class ConflictError(HeadwaterError):
    """The request contradicts concurrent changes: show it to the caller, who decides. ``details`` has one line for each conflict."""

    def __init__(self, message: str, *, details: tuple[object, ...] = ()) -> None:
        super().__init__(message)
        self.details = details


class RefusedError(HeadwaterError):
    """The request can never succeed as it is: tell a person what is wrong and what would be right."""


class MaintenanceStoppedError(RefusedError):
    """A person has stopped this maintenance: wait until somebody resumes it."""


class NotFoundError(HeadwaterError):
    """The requested thing does not exist."""


class ExpiredError(NotFoundError):
    """It existed, and has been garbage-collected since: start again from the current state."""


class CorruptionError(HeadwaterError):
    """Stored data exists and is damaged: never guess."""


class DamagedFileError(CorruptionError):
    """A file that the caller named is damaged: reading it again has the same end."""


class UnavailableError(HeadwaterError):
    """The call had no effect: try again later."""


class InterruptedWorkError(UnavailableError):
    """A signal asked this process to end, and the work was handed back: it goes on where somebody takes it up again."""


class StoreFullError(UnavailableError):
    """The call had no effect because there is no space left: free some, then try again."""


class CollisionError(UnavailableError):
    """The call had no effect: another process has made the same id (``object_id``, if known). Try again with new ids."""

    def __init__(self, message: str, *, object_id: int = 0) -> None:  # default: it is pickled
        super().__init__(message)
        self.object_id = object_id


class CommitTimeoutError(UnavailableError):
    """The commit did not happen in time: others were always faster, or the database was too slow."""

    def __init__(self, message: str, *, attempts: int = 0, elapsed_seconds: float = 0.0) -> None:  # defaults: it is pickled
        super().__init__(message)
        self.attempts = attempts
        self.elapsed_seconds = elapsed_seconds


class UnknownOutcomeError(HeadwaterError):
    """The call may have taken effect: check before you repeat it or clean up. ``unclear`` names the references that it may have changed."""

    unclear: tuple[str, ...] = ()


class UnknownCommitError(UnknownOutcomeError):
    """A commit that may have happened: look for it in the log of its reference before you do it again."""

    def __init__(
        self, message: str, *, commit_id: int = 0, reference: str = "", realm: str = "", attempts: int = 0
    ) -> None:  # defaults: it is pickled
        super().__init__(message)
        self.commit_id = commit_id
        self.reference = reference
        self.unclear = (reference,) if reference else ()
        self.realm = realm
        self.attempts = attempts
