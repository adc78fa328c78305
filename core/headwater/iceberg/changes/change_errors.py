"""Why a change of metadata did not happen: it is not one, or it was decided on an older state."""

from __future__ import annotations

from headwater.errors import ConflictError, RefusedError


class ChangeFormError(RefusedError):
    """A request for a change that can never succeed as it is.

    path          the element at fault, as in the request: ``updates[3].snapshot.snapshot-id``
    """

    def __init__(self, message: str, *, path: str = "") -> None:  # default: it is pickled
        super().__init__(message)
        self.path = path


class IllegalChangeError(ChangeFormError):
    """A request that Iceberg's own code refuses as an illegal argument, by which name its clients know it."""


class RequirementFailedError(ConflictError):
    """The document is not what the client assumed: it loads it again and decides again. The text is the one that Iceberg's clients know.

    path          the requirement that does not hold: ``requirements[0]``
    """

    def __init__(self, message: str, *, path: str = "") -> None:  # default: it is pickled
        super().__init__(message)
        self.path = path


class StaleSnapshotError(ConflictError):
    """Another commit took the sequence number or the row ids of a snapshot, on whatever branch: the client commits it anew.

    No requirement tells this, because clients assert the branch that they change and not the whole table.

    path          the number that was taken: ``updates[0].snapshot.sequence-number``
    """

    def __init__(self, message: str, *, path: str = "") -> None:  # default: it is pickled
        super().__init__(message)
        self.path = path
