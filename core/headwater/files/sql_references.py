"""File references in an SQL database, option 3: a table of tracked files, and one of references that nothing counts.

A file that is being compacted in a thousand partitions at once is a row that nobody touches: so jobs that finish together do not
meet. What has no references left is looked for by the collection, in ``mark_unreferenced``.

This module is what PostgreSQL and SQLite have in common: requests become one transaction that reads the named rows, decides, and
writes what is to change if no row has changed since; a lost race begins again, after a random wait, a bounded number of times.
"""

from __future__ import annotations

import random
import threading
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from tempfile import TemporaryFile
from typing import IO, NamedTuple, Protocol, TypeVar

import structlog

from headwater.clock import Micros
from headwater.errors import HeadwaterError, UnavailableError, UnknownOutcomeError
from headwater.files.file_errors import (
    FileTableClosedError,
    JobCommitsFailedError,
    ReferenceAssignedError,
    ReferenceNotFoundError,
    SplitsFailedError,
)
from headwater.files.file_references import (
    AddFiles,
    AssignJob,
    AssignmentCheck,
    CommitJob,
    FileReference,
    FileReport,
    FileRequest,
    FileSnapshot,
    ForgetFiles,
    PartitionId,
    RequestOutcome,
    SplitReference,
    TrackedFile,
    group_references,
)
from headwater.files.reference_rules import (
    KnownRows,
    NamedRows,
    ReferenceChanges,
    RequestVerdict,
    decide,
    first_faults,
    named_rows,
)
from headwater.files.reference_store import FileScope

NOT_MARKED = (1 << 63) - 1
"""The time of a file that no collection has marked yet."""
_ESTIMATE, _WHOLE = 1, 2
_log = structlog.get_logger()
T = TypeVar("T")


class ReferenceConflictError(UnavailableError):
    """A transaction lost against another one and had no effect: begin it again. ``state`` is what it is counted under."""

    def __init__(self, message: str = "", *, state: str = "stale") -> None:  # defaults: it is pickled
        super().__init__(message)
        self.state = state


@dataclass(frozen=True, kw_only=True)
class RetryPolicy:
    """How often a transaction is begun, and how long it waits between: up to a ceiling that doubles, by chance.

    sleep         waits for some seconds
    chance        a number from 0 to 1
    """

    sleep: Callable[[float], None]
    attempts: int = 10
    first_ceiling_seconds: float = 0.2
    longest_ceiling_seconds: float = 30.0
    chance: Callable[[], float] = random.random

    def wait_after(self, attempt: int) -> None:
        """Wait after attempt number ``attempt``, counted from 1."""
        ceiling = min(self.longest_ceiling_seconds, self.first_ceiling_seconds * 2.0 ** (attempt - 1))
        self.sleep(ceiling * self.chance())


class ReferenceTransaction(Protocol):
    """A transaction that may write. Opening it made sure that the file table is open, and that it stays so until the end."""

    now: Micros

    def load_rows(self, named: NamedRows) -> KnownRows:
        """The named rows at one point in time."""

    def write_changes(self, changes: ReferenceChanges) -> bool:
        """Write changes. False when a row is not as it was known: then the transaction has to be rolled back."""

    def confirm_reads(self) -> None:
        """Make the commit of this transaction a durable write, although nothing is to be changed.

        See ``RealmReferences.confirm_reference``.
        """

    def mark_rows(self, now: Micros, after: str, limit: int) -> FileMarks:
        """Look at up to ``limit`` files that are not marked, by name, beyond one; mark those without references."""


class FileMarks(NamedTuple):
    """What was done to a batch of files: so many were marked of so many that were looked at, up to the name ``last``."""

    marked: int
    looked: int
    last: str


class StoredReferences(NamedTuple):
    """References and the tree number at one point in time, and tracked files without references, each with its mark; sorted."""

    tree_number: int
    references: list[FileReference]
    unreferenced: list[tuple[str, int]]


class ReferenceFaults(NamedTuple):
    """Rows that contradict each other, by filename: referenced without being tracked; marked as unreferenced, with references."""

    untracked: list[str]
    marked: list[str]


class ReferenceCounts:
    """What one handle counted. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counter: Counter[str] = Counter(transactions=0, retries=0)

    def count_each(self, *names: str) -> None:
        with self._lock:
            self._counter.update(names)

    def as_mapping(self) -> Mapping[str, int]:
        with self._lock:
            return dict(self._counter)


class SqlReferenceStore(ABC):
    """The references of one file table; see ``FileReferenceStore`` for what its methods promise.

    writer_grace_seconds  new references to data files that are older are refused; None: to none
    awaits_assignments    a commit that came before its assignment is WAITING instead of refused
    """

    writer_grace_seconds: float | None = None
    awaits_assignments = False

    def __init__(self, scope: FileScope, *, policy: RetryPolicy) -> None:
        self.scope = scope
        self._policy = policy
        self._counts = ReferenceCounts()

    def add_files(self, files: Sequence[TrackedFile] | AddFiles) -> None:
        request = files if isinstance(files, AddFiles) else AddFiles(files=tuple(files))
        if request.files:
            for fault in first_faults(self._apply("add files", [request])):
                raise fault

    def split_references(self, splits: Sequence[SplitReference]) -> None:
        if not splits:
            return
        try:
            self._apply("split references", splits, is_whole=True)
        except _RefusedRequestError as refusal:
            message = f"{len(splits)} splits of {self._name} were refused, for one of them was: {refusal.fault}"
            raise SplitsFailedError(message, failed=splits) from refusal.fault

    def assign_jobs(self, assignments: Sequence[AssignJob]) -> None:
        assignments = [each for each in assignments if each.filenames]
        if not assignments:
            return
        try:
            self._apply("assign jobs", assignments, is_whole=True)
        except _RefusedRequestError as refusal:
            raise refusal.fault from None

    def commit_jobs(self, commits: Sequence[CommitJob]) -> None:
        if not commits:
            return
        verdicts = self._commit(commits)
        failed = [
            (commit, verdict.fault) for commit, verdict in zip(commits, verdicts, strict=True) if verdict.fault is not None
        ]
        if not failed:
            return
        raise JobCommitsFailedError(
            f"{len(failed)} of {len(commits)} commits of jobs to {self._name} were refused, the first: {failed[0][1]}",
            successful=[commit for commit, verdict in zip(commits, verdicts, strict=True) if verdict.fault is None],
            failed=[commit for commit, _ in failed],
            failures=[fault for _, fault in failed],
        ) from failed[0][1]

    def forget_files(self, filenames: Sequence[str]) -> None:
        if filenames:
            for fault in first_faults(self._apply("forget files", [ForgetFiles(filenames=tuple(filenames))])):
                raise fault

    def apply_requests(self, requests: Sequence[FileRequest]) -> list[RequestOutcome]:
        if not requests:
            return []
        commits = [request for request in requests if isinstance(request, CommitJob)]
        verdicts = self._commit(commits) if len(commits) == len(requests) else self._apply("apply requests", requests)
        return [verdict.outcome for verdict in verdicts]

    def find_outcomes(self, requests: Sequence[str]) -> dict[str, RequestOutcome]:
        return self._look("find outcomes", NamedRows(outcomes=set(requests))).outcomes if requests else {}

    def mark_unreferenced(self, now: Micros, *, batch: int = 10_000) -> int:
        # A batch counts the files that are looked at: among a million with references, no statement looks for ten thousand without.
        # A count of zero references never rises again, so it does not matter what others do between two batches.
        total, marks = 0, FileMarks(0, batch, "")
        while marks.looked == batch:
            marks = self._run("mark unreferenced files", partial(_mark_rows, now, marks.last, batch), may_repeat=True)
            total += marks.marked
        return total

    def collectable_files(self, before: Micros) -> Iterator[str]:
        # Kept in a file: a million names are no burden, and neither a connection nor a transaction waits while objects are deleted.
        with ExitStack() as opened:
            spool = opened.enter_context(TemporaryFile("w+", encoding="utf-8", newline="\n"))
            spool.writelines(f"{name}\n" for name in self._collectable(before))  # names are printable: without line breaks
            spool.seek(0)
            opened.pop_all()
        return _spooled_names(spool)

    def references(self) -> list[FileReference]:
        return self._select("read references").references

    def unassigned_references(self) -> list[FileReference]:
        return self._select("read unassigned references", is_unassigned=True).references

    def snapshot(self, partitions: Sequence[PartitionId] | None = None) -> FileSnapshot:
        stored = self._select("read a snapshot", partitions=partitions)
        return FileSnapshot(references=tuple(stored.references), tree_number=stored.tree_number)

    def files_by_partition(self) -> dict[PartitionId, list[str]]:
        files: dict[PartitionId, list[str]] = {}
        for reference in self.references():
            files.setdefault(reference.partition, []).append(reference.filename)
        return files

    def report(self, max_unreferenced: int) -> FileReport:
        stored = self._select("report files", unreferenced=max_unreferenced + 1)
        unreferenced = map(_unreferenced_file, stored.unreferenced[:max_unreferenced])
        files = sorted([*group_references(stored.references), *unreferenced], key=lambda each: each.filename)
        return FileReport(files=tuple(files), is_cut=len(stored.unreferenced) > max_unreferenced)

    def find_files(self, filenames: Sequence[str]) -> dict[str, TrackedFile]:
        stored = self._select("find files", filenames=filenames)
        marks = dict(stored.unreferenced)
        return {each.filename: each for each in [*group_references(stored.references), *map(_unreferenced_file, marks.items())]}

    def is_assigned(self, checks: Sequence[AssignmentCheck]) -> bool:
        places = [(check, (filename, check.partition)) for check in checks for filename in check.filenames]
        if not places:
            return True
        jobs = self._look("check assignments", NamedRows(references={place for _, place in places})).jobs
        for check, place in places:
            if place not in jobs:
                raise ReferenceNotFoundError(filename=place[0], partition=place[1])
            if (job := jobs[place]) not in (None, check.job):
                raise ReferenceAssignedError(filename=place[0], partition=place[1], job=job)
        return all(jobs[place] is not None for _, place in places)

    def is_empty(self) -> bool:
        return self._has_no_file()

    def close(self) -> None:
        """Close the handle, which holds nothing of its own: the connections are the store's."""
        counts = self.counts()
        if counts.get("retries"):  # a process that set up no logging, such as Spark's, would print a line for each handle
            _log.debug("file references: closed", table=self.scope.table, **counts)

    def counts(self) -> Mapping[str, int]:
        return self._counts.as_mapping()

    def _commit(self, commits: Sequence[CommitJob]) -> list[RequestVerdict]:
        return self._apply("commit jobs", commits)

    def _apply(self, what: str, requests: Sequence[FileRequest], *, is_whole: bool = False) -> list[RequestVerdict]:
        """Apply requests in one transaction, each all or nothing; or all of them, or none.

        raises        _RefusedRequestError for the first that is refused, if it is all or none
        """
        work = self._decision(what, requests, is_whole=is_whole)
        return self._run(what, work, may_repeat=all(request.request for request in requests))

    def _decision(
        self, what: str, requests: Sequence[FileRequest], *, is_whole: bool
    ) -> Callable[[ReferenceTransaction], list[RequestVerdict]]:
        """What a transaction does that applies requests; raises as ``_apply`` does."""
        named = named_rows(requests)

        def apply(transaction: ReferenceTransaction) -> list[RequestVerdict]:
            verdicts, changes = decide(
                requests,
                transaction.load_rows(named),
                transaction.now,
                oldest=self._oldest(transaction.now),
                awaits_assignments=self.awaits_assignments,
            )
            if is_whole:
                for fault in first_faults(verdicts):
                    raise _RefusedRequestError(fault)
            if not changes:  # the outcomes are those of earlier calls, whose commits perhaps only a read has shown
                transaction.confirm_reads()
            elif not transaction.write_changes(changes):
                raise ReferenceConflictError(f"{what}: others changed {self._name} meanwhile")
            return verdicts

        return apply

    def _oldest(self, now: Micros) -> Micros:
        """Data files made before this time may have been collected, and their record, too, if they had one."""
        grace = self.writer_grace_seconds
        return Micros(0) if grace is None else Micros(now - round(grace * 1_000_000))

    def _run(self, what: str, work: Callable[[ReferenceTransaction], T], *, may_repeat: bool = False) -> T:
        """Run a transaction, and begin it again when it lost against others.

        may_repeat    whether that is safe even where it may have happened: all of it has outcomes, which the repetition finds
        """
        return self._persist(what, lambda: self._transact(what, work), may_repeat=may_repeat)

    def _persist(self, what: str, act: Callable[[], T], *, may_repeat: bool = False) -> T:
        attempt, unclear = 1, None
        while True:
            self._counts.count_each("transactions")
            try:
                return act()
            except ReferenceConflictError as fault:
                self._note(fault.state, what, attempt, fault)
                if attempt >= self._policy.attempts:
                    raise unclear or UnavailableError(
                        f"{fault}; it was tried {attempt} times, and nothing was written"
                    ) from fault
                is_stale = fault.state == "stale"
            except UnavailableError as fault:
                if unclear is None:
                    raise
                # This attempt did not happen, but one before it may have. Whoever believes that none did deletes the files.
                raise unclear from fault
            except UnknownOutcomeError as fault:
                self._note("unknown", what, attempt, fault)
                if not may_repeat or attempt >= self._policy.attempts:
                    raise
                is_stale, unclear = False, fault
            self._counts.count_each("retries")
            if not is_stale:  # who made the rows stale has committed: there is nothing to wait for
                self._policy.wait_after(attempt)
            attempt += 1

    def _note(self, state: str, what: str, attempt: int, fault: Exception) -> None:
        self._counts.count_each(state)
        _log.info(
            "file references: attempt lost", table=self.scope.table, what=what, state=state, attempt=attempt, fault=str(fault)
        )

    @property
    def _name(self) -> str:
        return f"file table {self.scope.table}"

    def _closed(self, what: str) -> FileTableClosedError:
        return FileTableClosedError(f"{self._name}: {what}: it is being purged or was purged, and nothing was written")

    @abstractmethod
    def _transact(self, what: str, work: Callable[[ReferenceTransaction], T]) -> T:
        """Run one attempt. What ``work`` raises rolls it back.

        raises        FileTableClosedError, ReferenceConflictError, UnavailableError, UnknownOutcomeError
        """

    @abstractmethod
    def _look(self, what: str, named: NamedRows) -> KnownRows:
        """The named rows at one point in time, outside of a transaction that writes."""

    @abstractmethod
    def _select(
        self,
        what: str,
        *,
        partitions: Sequence[PartitionId] | None = None,
        filenames: Sequence[str] | None = None,
        is_unassigned: bool = False,
        unreferenced: int = 0,
    ) -> StoredReferences:
        """References, sorted, and up to so many unreferenced files by name, at one point in time.

        filenames     only these files, with their references and without
        """

    @abstractmethod
    def find_faults(self, limit: int) -> ReferenceFaults:
        """The first ``limit`` contradictions of each kind, at one point in time: for fsck."""

    @abstractmethod
    def clear_files(self) -> None: ...

    @abstractmethod
    def _collectable(self, before: Micros) -> Iterable[str]:
        """The names of files without references that were marked before a time, at one point in time."""

    @abstractmethod
    def _has_no_file(self) -> bool: ...

    @abstractmethod
    def forget_outcomes(self, before: Micros, limit: int) -> int: ...

    @abstractmethod
    def close_scope(self) -> None: ...

    @abstractmethod
    def delete_scope(self, limit: int) -> int: ...


class _RefusedRequestError(Exception):
    """One request of a call that is all or none was refused: rolls its transaction back."""

    def __init__(self, fault: HeadwaterError) -> None:
        super().__init__(str(fault))
        self.fault = fault


def _mark_rows(now: Micros, after: str, limit: int, transaction: ReferenceTransaction) -> FileMarks:
    return transaction.mark_rows(now, after, limit)


def _spooled_names(spool: IO[str]) -> Iterator[str]:
    with spool:
        for line in spool:
            yield line.removesuffix("\n")


def _unreferenced_file(stored: tuple[str, int]) -> TrackedFile:
    filename, marked = stored
    return TrackedFile(filename=filename, updated=None if marked == NOT_MARKED else Micros(marked))


def reference_flags(reference: FileReference) -> int:
    """What a row keeps of ``is_estimate`` and ``is_whole_file``."""
    return _ESTIMATE * reference.is_estimate + _WHOLE * reference.is_whole_file


def stored_reference(row: Iterable[object]) -> FileReference:
    """The reference of a row: filename, partition, rows, flags, job, updated."""
    filename, partition, rows, flags, job, updated = row
    return FileReference(
        filename=filename,  # type: ignore[arg-type]  # what the columns hold
        partition=partition,  # type: ignore[arg-type]
        rows=rows,  # type: ignore[arg-type]
        is_estimate=bool(flags & _ESTIMATE),  # type: ignore[operator]
        is_whole_file=bool(flags & _WHOLE),  # type: ignore[operator]
        job=job,  # type: ignore[arg-type]
        updated=updated,  # type: ignore[arg-type]
    )
