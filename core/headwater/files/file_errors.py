"""Why the store of file references refuses: each with what it is about as attributes, and a message with all of it.

Messages name job, partition and file: reports of jobs show them to people.

Source of the kinds and of what raises which: Sleeper's FileReferenceStore of October 2024.
"""

from __future__ import annotations

from collections.abc import Sequence

from headwater.errors import ConflictError, CorruptionError, NotFoundError, RefusedError


class FileExistsInTableError(ConflictError):
    """A new file is tracked already, with references or without."""

    def __init__(self, message: str = "", *, filename: str = "") -> None:  # defaults: it is pickled
        super().__init__(message or f"file {filename!r} is tracked already: new files need new names")
        self.filename = filename


class FileNotTrackedError(NotFoundError):
    """The file is not tracked."""

    def __init__(self, message: str = "", *, filename: str = "") -> None:
        super().__init__(message or f"file {filename!r} is not tracked")
        self.filename = filename


class FileHasReferencesError(ConflictError):
    """The file still has references and cannot be forgotten."""

    def __init__(self, message: str = "", *, filename: str = "", references: int = 0) -> None:
        super().__init__(message or f"file {filename!r} has {references} references and cannot be forgotten")
        self.filename = filename
        self.references = references


class ReferenceExistsError(ConflictError):
    """The partition refers to the file already."""

    def __init__(self, message: str = "", *, filename: str = "", partition: str = "") -> None:
        super().__init__(message or f"partition {partition!r} refers to file {filename!r} already")
        self.filename = filename
        self.partition = partition


class ReferenceNotFoundError(NotFoundError):
    """The partition does not refer to the file."""

    def __init__(self, message: str = "", *, filename: str = "", partition: str = "") -> None:
        super().__init__(message or f"partition {partition!r} does not refer to file {filename!r}")
        self.filename = filename
        self.partition = partition


class ReferenceAssignedError(ConflictError):
    """The reference is assigned to a job, whose id is ``job``."""

    def __init__(self, message: str = "", *, filename: str = "", partition: str = "", job: str = "") -> None:
        super().__init__(message or f"the reference of partition {partition!r} to file {filename!r} is assigned to job {job!r}")
        self.filename = filename
        self.partition = partition
        self.job = job


class ReferenceNotAssignedError(ConflictError):
    """The reference is not assigned to the job that wants to replace it. ``is_unassigned``: nor to any other one."""

    def __init__(
        self, message: str = "", *, filename: str = "", partition: str = "", job: str = "", is_unassigned: bool = False
    ) -> None:
        super().__init__(
            message or f"the reference of partition {partition!r} to file {filename!r} is not assigned to job {job!r}"
        )
        self.filename = filename
        self.partition = partition
        self.job = job
        self.is_unassigned = is_unassigned


class OutputIsInputError(RefusedError):
    """The output of a job has the name of one of its inputs."""

    def __init__(self, message: str = "", *, filename: str = "") -> None:
        super().__init__(message or f"file {filename!r} is input and output of one job: an output needs a new name")
        self.filename = filename


class RequestIdReusedError(RefusedError):
    """The id belongs to another request of this file table."""

    def __init__(self, message: str = "", *, request: str = "") -> None:
        super().__init__(message or f"request id {request!r} was used for another request: a new request needs a new id")
        self.request = request


class FileTableClosedError(RefusedError):
    """The file table is being purged, was purged, or is read-only: nothing was written."""


class SplitsFailedError(ConflictError):
    """Splits were refused; the cause is the first failure.

    successful    requests that were applied
    failed        requests that were not
    """

    def __init__(self, message: str = "", *, successful: Sequence[object] = (), failed: Sequence[object] = ()) -> None:
        super().__init__(message)
        self.successful = tuple(successful)
        self.failed = tuple(failed)


class JobCommitsFailedError(ConflictError):
    """Commits of jobs were refused; the cause is ``failures[0]``.

    successful    requests that were applied
    failed        requests that were not, in the order of ``failures``
    failures      the error of each
    """

    def __init__(
        self,
        message: str = "",
        *,
        successful: Sequence[object] = (),
        failed: Sequence[object] = (),
        failures: Sequence[Exception] = (),
    ) -> None:
        super().__init__(message)
        self.successful = tuple(successful)
        self.failed = tuple(failed)
        self.failures = tuple(failures)


class TreeBehindError(CorruptionError):
    """The references are of a newer partition tree than the newest that can be read: one database was restored without the other."""

    def __init__(self, message: str = "", *, tree_number: int = 0, references_number: int = 0) -> None:
        super().__init__(message)
        self.tree_number = tree_number
        self.references_number = references_number
