"""The contract of a store of file references: what every implementation promises, for one file table.

Option 3 of "Use PostgreSQL for the state store" implements it on PostgreSQL and SQLite; options 1 and 2 do in the benchmarks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from headwater.clock import Micros
from headwater.files.file_references import (
    AddFiles,
    AssignJob,
    AssignmentCheck,
    CommitJob,
    FileReference,
    FileReport,
    FileRequest,
    FileSnapshot,
    PartitionId,
    RequestOutcome,
    SplitReference,
    TrackedFile,
)
from headwater.store.ids import RealmKey


class FileScope(NamedTuple):
    """Which file table the references belong to.

    table         id of the file table, 16 hex digits, never used again
    """

    realm: RealmKey
    table: str


class FileReferenceStore(Protocol):
    """The references of one file table.

    Every write is all or nothing, except ``commit_jobs``, which is by job, and stamps references with the time of the write. A write
    after ``close_scope`` raises FileTableClosedError. Database faults raise UnavailableError (did not happen) or UnknownOutcomeError.
    Empty input writes nothing and opens no transaction.
    """

    def add_files(self, files: Sequence[TrackedFile] | AddFiles) -> None:
        """Track files with their references; a file may have none.

        raises        FileExistsInTableError when a file is tracked already, even with other partitions or without references; or when
                      it is older than the writers' grace and gets references, for a collection may have deleted and forgotten it
        """

    def split_references(self, splits: Sequence[SplitReference]) -> None:
        """Replace references by references of other partitions to the same files, and raise the tree number to theirs.

        raises        SplitsFailedError, caused by FileNotTrackedError, ReferenceNotFoundError, ReferenceAssignedError or
                      ReferenceExistsError
        """

    def assign_jobs(self, assignments: Sequence[AssignJob]) -> None:
        """Assign references to jobs, in the given order, where they are not assigned.

        raises        ReferenceNotFoundError, also for a file that is not tracked; ReferenceAssignedError, also for the same job
        """

    def commit_jobs(self, commits: Sequence[CommitJob]) -> None:
        """Replace the references of each job by its output, each job all or nothing, and write an outcome of each. A repetition of a
        commit that was applied is no error; of one that was refused, it raises the same again. FileExistsInTableError is about the
        output alone and leaves no outcome: the job may be committed with another one.

        raises        JobCommitsFailedError, caused by, in this order: OutputIsInputError, FileNotTrackedError, ReferenceNotFoundError,
                      ReferenceNotAssignedError, FileExistsInTableError; or RequestIdReusedError
        """

    def forget_files(self, filenames: Sequence[str]) -> None:
        """Stop tracking files without references.

        raises        FileNotTrackedError, FileHasReferencesError
        """

    def clear_files(self) -> None:
        """Stop tracking every file; objects in storage stay. Outcomes and the tree number stay."""

    def apply_requests(self, requests: Sequence[FileRequest]) -> list[RequestOutcome]:
        """Apply requests of any kind in the given order, each all or nothing, in as few transactions as are safe.

        returns       one outcome each: where the request has an id, it was written in the request's own transaction, and a repetition
                      gets the first outcome. A refusal is an outcome, not an error.
        raises        UnavailableError, UnknownOutcomeError: the same requests may be given again
        """

    def find_outcomes(self, requests: Sequence[str]) -> dict[str, RequestOutcome]:
        """The outcomes of requests, by id; those that are not known are absent."""

    def references(self) -> list[FileReference]:
        """All references, sorted by filename and partition."""

    def unassigned_references(self) -> list[FileReference]:
        """The references that are assigned to no job."""

    def snapshot(self, partitions: Sequence[PartitionId] | None = None) -> FileSnapshot:
        """All references, or those of some partitions, and the tree number, at one point in time."""

    def collectable_files(self, before: Micros) -> Iterator[str]:
        """Names of files without references that were marked strictly before a time, at one point in time. The iterator stays valid
        while files are forgotten.
        """

    def mark_unreferenced(self, now: Micros, *, batch: int = 10_000) -> int:
        """Mark files without references, that are not marked yet, with the time, in batches of transactions. Returns how many."""

    def files_by_partition(self) -> dict[PartitionId, list[str]]:
        """The files that each partition refers to; partitions without files are absent."""

    def report(self, max_unreferenced: int) -> FileReport:
        """All files with references, and the first ``max_unreferenced`` by name of those without, at one point in time."""

    def find_files(self, filenames: Sequence[str]) -> dict[str, TrackedFile]:
        """Files with all their references, by name, at one point in time; those that are not tracked are absent. Up to 10,000 names."""

    def is_empty(self) -> bool:
        """Whether no file is tracked, with references or without."""

    def is_assigned(self, checks: Sequence[AssignmentCheck]) -> bool:
        """Whether every reference is assigned to exactly the job that is asked for; False while any is not assigned yet.

        raises        ReferenceNotFoundError when one is missing, ReferenceAssignedError when one belongs to another job
        """

    def forget_outcomes(self, before: Micros, limit: int) -> int:
        """Delete up to ``limit`` outcomes that are older than a time. Returns how many; fewer than the limit: none is left."""

    def close_scope(self) -> None:
        """Refuse all later writes, also of transactions that are running now: when this returns, none is under way. For purges."""

    def delete_scope(self, limit: int) -> int:
        """Delete up to ``limit`` rows of a closed scope, of all kinds, and the scope itself at last. Returns how many; 0: none is left."""

    def counts(self) -> Mapping[str, int]:
        """What this handle counted since it was opened: ``transactions``, ``retries``, and errors by SQLSTATE, such as ``40001``."""

    def close(self) -> None: ...
