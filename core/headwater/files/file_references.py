"""File references: which files a file table has, which partitions refer to them, and the requests that change that.

A *file* is an immutable data file. A *file reference* says that the rows of a file that lie in a partition belong to the table. A file
has one reference for each such partition. The callers see to it that the partitions that refer to a file do not overlap. A reference
may carry the id of a job: then it is assigned to that job, and no other job takes it. A file without references stays tracked until
it is collected; it never gets a reference again.

All values are frozen. Times are microseconds since 1970 and are set by the store.

Source: Sleeper's FileReferenceStore of October 2024, "Use PostgreSQL for the state store".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from types import MappingProxyType
from typing import NewType

import msgspec

from headwater.clock import Micros
from headwater.errors import RefusedError
from headwater.store.ids import ObjectId, id_time, is_fixed

_DATA_FILE = re.compile(r"([0-7][0-9a-f]{15})-[^/]+\.parquet")
PartitionId = NewType("PartitionId", str)
"""A partition of a file table: unique within its tree. See ``partition_tree`` for how ids are made."""


class FileReference(msgspec.Struct, frozen=True, kw_only=True):
    """The claim of one partition on one file. ``(filename, partition)`` is its key.

    filename      location of the file
    rows          rows of the file within the partition
    is_estimate   whether ``rows`` is an estimate, as after a split
    is_whole_file whether all rows of the file lie in this partition, so that no other partition refers to it
    job           id of the job that it is assigned to; None: no job
    updated       time of its last change; None before it is stored
    """

    filename: str
    partition: PartitionId
    rows: int
    is_estimate: bool = False
    is_whole_file: bool = True
    job: str | None = None
    updated: Micros | None = None

    def __post_init__(self) -> None:
        check_text(self.filename, "a filename")
        check_text(self.partition, "a partition id")
        if self.rows < 0:
            raise RefusedError(f"a reference to {self.filename!r} cannot have {self.rows} rows: rows are 0 or more")


class TrackedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file with all its references, sorted by partition. Without any it waits for collection.

    updated       time of the last change of its references as far as the store keeps it: the latest of theirs, or the time at which it
                  was marked as unreferenced; None before it is stored, and of an unreferenced file that is not marked yet
    """

    filename: str
    references: tuple[FileReference, ...] = ()
    updated: Micros | None = None

    def __post_init__(self) -> None:
        check_text(self.filename, "a filename")
        if strange := [each.filename for each in self.references if each.filename != self.filename]:
            raise RefusedError(f"file {self.filename!r} was given a reference to another file, {strange[0]!r}")
        partitions = [each.partition for each in self.references]
        if len(set(partitions)) < len(partitions):
            twice = next(each for each in partitions if partitions.count(each) > 1)
            raise RefusedError(f"file {self.filename!r} was given two references of partition {twice!r}")

    @property
    def rows(self) -> int:
        """The sum of the rows of its references."""
        return sum(reference.rows for reference in self.references)


def group_references(references: Iterable[FileReference]) -> list[TrackedFile]:
    """Group references by file, sorted by filename. All references of each file must be given."""
    groups: dict[str, list[FileReference]] = {}
    for reference in references:
        groups.setdefault(reference.filename, []).append(reference)
    return [
        TrackedFile(
            filename=filename,
            references=tuple(sorted(group, key=lambda reference: reference.partition)),
            updated=max((each.updated for each in group if each.updated is not None), default=None),
        )
        for filename, group in sorted(groups.items())
    ]


class AddFiles(msgspec.Struct, frozen=True, kw_only=True, tag="add"):
    """Track new files with all their references, all or none.

    request       id of this request, unique within the file table: a repetition is told the outcome of the first; "" for no outcome
    """

    files: tuple[TrackedFile, ...]
    request: str = ""


class SplitReference(msgspec.Struct, frozen=True, kw_only=True, tag="split"):
    """Replace a reference by references of other partitions to the same file.

    tree_number   number of the change of the partition tree that made the new partitions; 0: none
    """

    source: FileReference
    targets: tuple[FileReference, ...]
    tree_number: int = 0
    request: str = ""

    def __post_init__(self) -> None:
        if not self.targets:
            raise RefusedError(
                f"a split of the reference of {self.source.partition!r} to {self.source.filename!r} needs new references"
            )
        if any(target.filename != self.source.filename for target in self.targets):
            raise RefusedError(f"a split of a reference to {self.source.filename!r} cannot refer to another file")


def split_to_children(
    source: FileReference, left: PartitionId, right: PartitionId, *, tree_number: int = 0, left_rows: int | None = None
) -> SplitReference:
    """The split of a reference into two, each with half of the rows as an estimate (an odd row is lost in the estimate).

    left_rows     a better estimate of the rows of the left child
    """
    rows = (source.rows // 2, source.rows // 2) if left_rows is None else (left_rows, max(0, source.rows - left_rows))
    return SplitReference(
        source=source,
        targets=tuple(
            FileReference(filename=source.filename, partition=child, rows=count, is_estimate=True, is_whole_file=False)
            for child, count in zip((left, right), rows, strict=True)
        ),
        tree_number=tree_number,
    )


class AssignJob(msgspec.Struct, frozen=True, kw_only=True, tag="assign"):
    """Assign the references of one partition to these files to a job, all or none."""

    job: str
    partition: PartitionId
    filenames: tuple[str, ...]
    request: str = ""

    def __post_init__(self) -> None:
        check_text(self.job, "a job id")


class AssignmentCheck(msgspec.Struct, frozen=True, kw_only=True):
    """A question: are the references of a partition to these files assigned to this job?"""

    job: str
    partition: PartitionId
    filenames: tuple[str, ...]


class CommitJob(msgspec.Struct, frozen=True, kw_only=True, tag="commit"):
    """Replace the references that are assigned to a job by its output. The job's id is the id of the request.

    inputs        files whose references of the output's partition are assigned to the job
    output        the only reference to a new file, not assigned to a job
    """

    job: str
    inputs: tuple[str, ...]
    output: FileReference

    def __post_init__(self) -> None:
        check_text(self.job, "a job id")
        if not self.inputs:
            raise RefusedError(f"job {self.job!r} has no inputs to replace")
        if len(set(self.inputs)) < len(self.inputs):
            raise RefusedError(f"job {self.job!r} names an input twice")

    @property
    def partition(self) -> PartitionId:
        return self.output.partition

    @property
    def request(self) -> str:
        return self.job


class ForgetFiles(msgspec.Struct, frozen=True, kw_only=True, tag="forget"):
    """Stop tracking files that have no references, all or none. Their objects must be deleted before."""

    filenames: tuple[str, ...]
    request: str = ""


FileRequest = AddFiles | SplitReference | AssignJob | CommitJob | ForgetFiles
"""Everything that can be sent to a queue: MessagePack with the tag in ``type``."""


class RequestState(StrEnum):
    APPLIED = "APPLIED"
    REFUSED = "REFUSED"
    WAITING = "WAITING"
    """Of a commit whose inputs are assigned to no job yet. It is returned to committers alone, and never stored."""


class RequestOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a request, written in its own transaction.

    request       its id; of a ``CommitJob`` that of the job
    kind          the tag of the request: add, split, assign, commit, forget
    digest        32 hex digits of the request: the same id with another digest is another request
    reason        of a refused one: the message of the error
    error         of a refused one: the name of its class in ``file_errors``
    time          when it was applied or refused
    """

    request: str
    kind: str
    state: RequestState
    digest: str
    time: Micros
    reason: str = ""
    error: str = ""


class FileSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """All references of a file table at one point in time.

    tree_number   number of the newest change of the partition tree whose references these are
    """

    references: tuple[FileReference, ...]
    tree_number: int


class FileReport(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """All tracked files at one point in time, sorted by name, with a limited number of unreferenced ones.

    is_cut        whether there are more unreferenced files than the report has
    """

    files: tuple[TrackedFile, ...]
    is_cut: bool = False

    @cached_property
    def referenced(self) -> tuple[TrackedFile, ...]:
        return tuple(each for each in self.files if each.references)

    @cached_property
    def unreferenced(self) -> tuple[TrackedFile, ...]:
        return tuple(each for each in self.files if not each.references)

    @cached_property
    def rows_by_file(self) -> Mapping[str, int]:
        return MappingProxyType({each.filename: each.rows for each in self.files})

    @cached_property
    def references_by_partition(self) -> Mapping[PartitionId, int]:
        counts: dict[PartitionId, int] = {}
        for reference in self.references:
            counts[reference.partition] = counts.get(reference.partition, 0) + 1
        return MappingProxyType(counts)

    @cached_property
    def references_by_job(self) -> Mapping[str | None, int]:
        """How many references each job has; under None those of no job."""
        counts: dict[str | None, int] = {}
        for reference in self.references:
            counts[reference.job] = counts.get(reference.job, 0) + 1
        return MappingProxyType(counts)

    @cached_property
    def references(self) -> Sequence[FileReference]:
        return [reference for each in self.files for reference in each.references]


def check_text(text: str, what: str) -> None:
    """Check a text that a database stores as a key: 1 to 1,000 characters, without NUL and lone surrogates.

    raises        RefusedError that names ``what``
    """
    if not text or len(text) > 1000 or "\0" in text or not text.isprintable():
        raise RefusedError(f"{text[:200]!r} is not {what}: use 1 to 1000 printable characters")


def data_file_time(filename: str) -> Micros | None:
    """When a data file was made, by its name; None for a name that no writer of data files gives."""
    match = _DATA_FILE.fullmatch(filename.rpartition("/")[2])
    file_id = None if match is None else ObjectId(int(match[1], 16))
    return None if file_id is None or is_fixed(file_id) else id_time(file_id)
