"""What requests do to file references, as pure functions over the rows that they name: the same rules on every database.

A store reads the rows that the requests name, lets ``decide`` judge them in their order, and writes the changes if no row has changed
since.

Source of the rules and of the order of checks: Sleeper's FileReferenceStore of October 2024.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from headwater.clock import Micros
from headwater.errors import ConflictError, HeadwaterError, NotFoundError, RefusedError
from headwater.files import file_errors
from headwater.files.file_errors import (
    FileExistsInTableError,
    FileHasReferencesError,
    FileNotTrackedError,
    OutputIsInputError,
    ReferenceAssignedError,
    ReferenceExistsError,
    ReferenceNotAssignedError,
    ReferenceNotFoundError,
    RequestIdReusedError,
)
from headwater.files.file_references import (
    AddFiles,
    AssignJob,
    CommitJob,
    FileReference,
    FileRequest,
    ForgetFiles,
    PartitionId,
    RequestOutcome,
    RequestState,
    SplitReference,
    data_file_time,
)
from headwater.files.request_sender import kind_of, request_digest

ReferencePlace = tuple[str, PartitionId]
"""The key of a reference: filename and partition."""


@dataclass(slots=True)
class NamedRows:
    """The keys of the rows that requests depend on. ``counted`` are files whose references are to be counted."""

    files: set[str] = field(default_factory=set)
    references: set[ReferencePlace] = field(default_factory=set)
    counted: set[str] = field(default_factory=set)
    outcomes: set[str] = field(default_factory=set)


@dataclass(slots=True)
class KnownRows:
    """What the database holds under these keys, at one point in time.

    jobs          the job of every reference that is there, or None
    counts        how many references the counted files have; absent: none
    """

    files: set[str] = field(default_factory=set)
    jobs: dict[ReferencePlace, str | None] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    outcomes: dict[str, RequestOutcome] = field(default_factory=dict)


@dataclass(slots=True)
class ReferenceChanges:
    """What is to be written, on condition that the rows are still as they were known. Every list is in the order of its keys.

    removed       references, each with the job that it has
    assigned      references without a job, each with its new one
    """

    removed: list[tuple[ReferencePlace, str | None]] = field(default_factory=list)
    assigned: list[tuple[ReferencePlace, str]] = field(default_factory=list)
    forgotten: list[str] = field(default_factory=list)
    added_files: list[str] = field(default_factory=list)
    added_references: list[FileReference] = field(default_factory=list)
    outcomes: list[RequestOutcome] = field(default_factory=list)
    tree_number: int = 0

    def __bool__(self) -> bool:
        return bool(self.row_count() or self.tree_number)

    def row_count(self) -> int:
        """How many rows are to be written."""
        return sum(len(getattr(self, name)) for name in _LISTS)

    def pages(self, size: int) -> Iterator[ReferenceChanges]:
        """These changes in their order, up to ``size`` rows of one kind at a time."""
        for name in _LISTS:
            rows: list[Any] = getattr(self, name)
            for start in range(0, len(rows), size):
                page = ReferenceChanges()
                setattr(page, name, rows[start : start + size])
                yield page
        if self.tree_number:
            yield ReferenceChanges(tree_number=self.tree_number)


_LISTS = ("removed", "assigned", "forgotten", "added_files", "added_references", "outcomes")


@dataclass(frozen=True, slots=True)
class RequestVerdict:
    """What became of one request. ``fault`` is the refusal; the outcome is written, or was by an earlier call."""

    outcome: RequestOutcome
    fault: HeadwaterError | None = None


def outcome_fault(outcome: RequestOutcome) -> HeadwaterError | None:
    """The refusal that an outcome tells of, with its message; None for a request that was applied."""
    if outcome.state is RequestState.APPLIED:
        return None
    kind = getattr(file_errors, outcome.error, None)
    if isinstance(kind, type) and issubclass(kind, HeadwaterError):
        return kind(outcome.reason)
    return ConflictError(outcome.reason)


def named_rows(requests: Sequence[FileRequest]) -> NamedRows:
    """The rows that ``decide`` needs to know."""
    named = NamedRows()
    for request in requests:
        if request.request:
            named.outcomes.add(request.request)
        if isinstance(request, AddFiles):
            named.files.update(each.filename for each in request.files)
        elif isinstance(request, SplitReference):
            named.files.add(request.source.filename)
            named.references.update(_place(each) for each in (request.source, *request.targets))
        elif isinstance(request, AssignJob):
            named.references.update((filename, request.partition) for filename in request.filenames)
        elif isinstance(request, CommitJob):
            named.files.update(request.inputs, (request.output.filename,))
            named.references.update((filename, request.partition) for filename in request.inputs)
        else:
            named.files.update(request.filenames)
            named.counted.update(request.filenames)
    return named


def assumed_rows(requests: Sequence[FileRequest]) -> KnownRows:
    """The rows that would let requests succeed: what to write can then be decided before anything is read, for the write to check."""
    known = KnownRows()
    made: set[str] = set()
    for request in requests:
        if isinstance(request, AddFiles):
            made.update(each.filename for each in request.files)
        elif isinstance(request, SplitReference):
            _assume(known, made, [_place(request.source)], None)
        elif isinstance(request, AssignJob):
            _assume(known, made, [(filename, request.partition) for filename in request.filenames], None)
        elif isinstance(request, CommitJob):
            _assume(known, made, [(filename, request.partition) for filename in request.inputs], request.job)
            made.add(request.output.filename)
        else:
            known.files.update(set(request.filenames) - made)
    return known


def _assume(known: KnownRows, made: set[str], places: Sequence[ReferencePlace], job: str | None) -> None:
    for place in places:
        if place[0] not in made:
            known.files.add(place[0])
            known.jobs.setdefault(place, job)


ALWAYS = Micros(0)


def decide(
    requests: Sequence[FileRequest],
    known: KnownRows,
    now: Micros,
    *,
    oldest: Micros = ALWAYS,
    awaits_assignments: bool = False,
) -> tuple[list[RequestVerdict], ReferenceChanges]:
    """Judge requests in their order, each all or nothing, and return a verdict on each with the changes that all together make.

    oldest        new references to data files that were made before this time are refused
    awaits_assignments  a commit whose inputs are assigned to no job is WAITING, without a stored outcome, instead of refused
    """
    ledger = _Ledger(known)
    verdicts = [_judge(request, ledger, now, oldest, awaits_assignments) for request in requests]
    return verdicts, ledger.changes()


@dataclass(frozen=True, slots=True)
class _Stored:
    """A reference as the database holds it, but for its job."""

    job: str | None


class _Ledger:
    """The known rows with the changes of the requests so far."""

    def __init__(self, known: KnownRows) -> None:
        self.known = known
        self.files = set(known.files)
        self.references: dict[ReferencePlace, _Stored | FileReference] = {
            place: _Stored(job) for place, job in known.jobs.items()
        }
        self.counts = dict(known.counts)
        self.outcomes = dict(known.outcomes)
        self.new_outcomes: list[RequestOutcome] = []
        self.tree_number = 0

    def add_reference(self, reference: FileReference) -> None:
        self.references[_place(reference)] = reference
        self.counts[reference.filename] = self.counts.get(reference.filename, 0) + 1

    def drop_reference(self, place: ReferencePlace) -> None:
        del self.references[place]
        self.counts[place[0]] = self.counts.get(place[0], 0) - 1

    def assign(self, place: ReferencePlace, job: str) -> None:
        reference = self.references[place]
        self.references[place] = _Stored(job) if isinstance(reference, _Stored) else msgspec.structs.replace(reference, job=job)

    def changes(self) -> ReferenceChanges:
        removed: list[tuple[ReferencePlace, str | None]] = []
        assigned: list[tuple[ReferencePlace, str]] = []
        for place, job in self.known.jobs.items():
            reference = self.references.get(place)
            if not isinstance(reference, _Stored):
                removed.append((place, job))
            elif reference.job is not None and reference.job != job:
                assigned.append((place, reference.job))
        added = [each for each in self.references.values() if isinstance(each, FileReference)]
        return ReferenceChanges(
            removed=sorted(removed, key=lambda each: each[0]),
            assigned=sorted(assigned),
            forgotten=sorted(self.known.files - self.files),
            added_files=sorted(self.files - self.known.files),
            added_references=sorted(added, key=_place),
            outcomes=sorted(self.new_outcomes, key=lambda outcome: outcome.request),
            tree_number=self.tree_number,
        )


def _judge(request: FileRequest, ledger: _Ledger, now: Micros, oldest: Micros, awaits_assignments: bool) -> RequestVerdict:
    digest = request_digest(request) if request.request else ""
    earlier = ledger.outcomes.get(request.request) if request.request else None
    if earlier is not None and earlier.digest == digest:
        return RequestVerdict(earlier, outcome_fault(earlier))
    fault: HeadwaterError | None = None
    if earlier is not None:
        fault = RequestIdReusedError(request=request.request)
    else:
        try:
            _check_age(request, oldest)
            _APPLY[type(request)](request, ledger)
        except (ConflictError, NotFoundError, RefusedError) as refusal:
            fault = refusal
    outcome = RequestOutcome(
        request=request.request,
        kind=kind_of(request),
        state=_state_after(fault, awaits_assignments),
        digest=digest,
        time=now,
        reason="" if fault is None else str(fault),
        error="" if fault is None else type(fault).__name__,
    )
    # A job's next execution has another output: one that came too late must not end the job, which would hold its inputs for ever.
    is_last = not (isinstance(request, CommitJob) and isinstance(fault, FileExistsInTableError))
    if request.request and earlier is None and is_last and outcome.state is not RequestState.WAITING:
        ledger.outcomes[request.request] = outcome
        ledger.new_outcomes.append(outcome)
    return RequestVerdict(outcome, fault)


def _state_after(fault: HeadwaterError | None, awaits_assignments: bool) -> RequestState:
    if fault is None:
        return RequestState.APPLIED
    is_early = awaits_assignments and isinstance(fault, ReferenceNotAssignedError) and fault.is_unassigned
    return RequestState.WAITING if is_early else RequestState.REFUSED


def _check_age(request: FileRequest, oldest: Micros) -> None:
    """Refuse references to files that a collection may have taken for strays, deleted and forgotten: nothing would tell of that."""
    for filename in new_files(request):
        made = data_file_time(filename)
        if made is not None and made < oldest:
            message = f"file {filename!r} was made longer ago than the writers' grace: collections take it, write its rows anew"
            raise FileExistsInTableError(message, filename=filename)


def new_files(request: FileRequest) -> list[str]:
    """The files that a request makes the first references to."""
    if isinstance(request, AddFiles):
        return [file.filename for file in request.files if file.references]
    return [request.output.filename] if isinstance(request, CommitJob) else []


# Each of these checks everything before it changes anything: so a refused request leaves nothing behind, without a savepoint.


def _add(request: AddFiles, ledger: _Ledger) -> None:
    fresh: set[str] = set()
    for each in request.files:
        if each.filename in ledger.files or each.filename in fresh:
            raise FileExistsInTableError(filename=each.filename)
        fresh.add(each.filename)
    ledger.files |= fresh
    for each in request.files:
        for reference in each.references:
            ledger.add_reference(reference)


def _split(request: SplitReference, ledger: _Ledger) -> None:
    filename, source = request.source.filename, _place(request.source)
    if filename not in ledger.files:
        raise FileNotTrackedError(filename=filename)
    job = _job_of(source, ledger)
    if job is not None:
        raise ReferenceAssignedError(filename=filename, partition=source[1], job=job)
    places: set[ReferencePlace] = set()
    for target in request.targets:
        place = _place(target)
        if place in ledger.references or place in places:
            raise ReferenceExistsError(filename=filename, partition=target.partition)
        places.add(place)
    ledger.drop_reference(source)
    for target in request.targets:
        ledger.add_reference(target)
    ledger.tree_number = max(ledger.tree_number, request.tree_number)


def _assign(request: AssignJob, ledger: _Ledger) -> None:
    places: set[ReferencePlace] = set()
    for filename in request.filenames:
        place = (filename, request.partition)
        job = request.job if place in places else _job_of(place, ledger)
        if job is not None:
            raise ReferenceAssignedError(filename=filename, partition=request.partition, job=job)
        places.add(place)
    for place in places:
        ledger.assign(place, request.job)


def _commit(request: CommitJob, ledger: _Ledger) -> None:
    output = request.output.filename
    if output in request.inputs:
        raise OutputIsInputError(filename=output)
    for filename in request.inputs:
        if filename not in ledger.files:
            raise FileNotTrackedError(filename=filename)
        holder = _job_of((filename, request.partition), ledger)
        if holder != request.job:
            raise ReferenceNotAssignedError(
                filename=filename, partition=request.partition, job=request.job, is_unassigned=holder is None
            )
    if output in ledger.files:
        raise FileExistsInTableError(filename=output)
    for filename in request.inputs:
        ledger.drop_reference((filename, request.partition))
    ledger.files.add(output)
    ledger.add_reference(msgspec.structs.replace(request.output, job=None))


def _forget(request: ForgetFiles, ledger: _Ledger) -> None:
    for filename in request.filenames:
        if filename not in ledger.files:
            raise FileNotTrackedError(filename=filename)
        if references := ledger.counts.get(filename, 0):
            raise FileHasReferencesError(filename=filename, references=references)
    ledger.files -= set(request.filenames)


_APPLY: dict[type, Callable[..., None]] = {
    AddFiles: _add,
    SplitReference: _split,
    AssignJob: _assign,
    CommitJob: _commit,
    ForgetFiles: _forget,
}


def _job_of(place: ReferencePlace, ledger: _Ledger) -> str | None:
    reference = ledger.references.get(place)
    if reference is None:
        raise ReferenceNotFoundError(filename=place[0], partition=place[1])
    return reference.job


def _place(reference: FileReference) -> ReferencePlace:
    return reference.filename, reference.partition


def first_faults(verdicts: Sequence[RequestVerdict]) -> Iterator[HeadwaterError]:
    """The refusals, in the order of the requests."""
    return (verdict.fault for verdict in verdicts if verdict.fault is not None)
