"""Compaction: many files of a leaf become one. Planned by leaf, assigned, executed anywhere, committed once.

A job's id is an id of the store; its inputs are the references that are assigned to it, so a job whose executor or planner died is
found again by them, and executed again under the same id. Every execution writes a file of its own, with an id as young as the
execution, so that it is not taken for a stray while it is written. The first commit replaces the inputs; any other one is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from headwater.clock import Micros
from headwater.errors import HeadwaterError
from headwater.files.data_files import data_file_name, new_sorted_file, read_data_file, read_file_sketch
from headwater.files.data_storage import delete_data_file
from headwater.files.file_errors import JobCommitsFailedError
from headwater.files.file_references import (
    AssignJob,
    CommitJob,
    FileReference,
    FileRequest,
    PartitionId,
    RequestState,
)
from headwater.files.file_table import FileTable
from headwater.files.partition_tree import PartitionTree, RowKeyRange
from headwater.files.row_schema import RowSchema
from headwater.files.sorted_merge import batch_rows_for, merge_sorted
from headwater.settings import Settings
from headwater.store import ObjectId, id_text

Commit = Callable[[CommitJob], None]
"""Commits one job: at once, raising JobCommitsFailedError when it is refused, or by handing it to a queue."""


class CompactionStrategy(StrEnum):
    """Which files of a leaf are compacted together.

    SIZE_RATIO    as many of the smallest as there are without one that dwarfs the others: those whose greatest has at most a
                  ratio-th of the rows of all others together
    FULL_BATCHES  always as many as a batch has, the smallest first
    ALL           all of them
    """

    SIZE_RATIO = "size-ratio"
    FULL_BATCHES = "full-batches"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class CompactionRules:
    """How compactions are planned.

    batch         the most files that one job merges, at least 2
    ratio         of SIZE_RATIO: how many times the rows of the greatest file the others must have together
    """

    strategy: CompactionStrategy = CompactionStrategy.SIZE_RATIO
    batch: int = 12
    ratio: float = 3.0

    @classmethod
    def of(cls, settings: Settings) -> CompactionRules:
        return cls(batch=settings.files_compaction_batch)


@dataclass(frozen=True, slots=True)
class CompactionJob:
    """A job: merge what these files have in a partition.

    id            16 hex digits
    keys          the range of the partition
    rows          about how many rows it has
    updated       when its inputs were assigned; None before that
    """

    id: str
    partition: PartitionId
    keys: RowKeyRange
    inputs: tuple[str, ...]
    rows: int
    updated: Micros | None = None

    @property
    def assignment(self) -> AssignJob:
        return AssignJob(job=self.id, partition=self.partition, filenames=self.inputs)


@dataclass(frozen=True, slots=True)
class CompactionReport:
    """What a compaction did. ``refused`` has the reasons by job: another execution was faster, or the table is closed."""

    applied: tuple[str, ...] = ()
    refused: tuple[tuple[str, str], ...] = ()
    failed: tuple[tuple[str, str], ...] = ()
    rows: int = 0


def choose_inputs(references: Iterable[FileReference], rules: CompactionRules) -> list[tuple[FileReference, ...]]:
    """Group the references of one leaf into the inputs of jobs. References that are assigned to a job are left out."""
    free = sorted((each for each in references if each.job is None), key=lambda each: (each.rows, each.filename))
    if rules.strategy is CompactionStrategy.SIZE_RATIO:
        smaller = sum(each.rows for each in free)
        while free:
            smaller -= free[-1].rows
            if smaller >= rules.ratio * free[-1].rows:
                break
            free.pop()
    batches = [tuple(free[at : at + rules.batch]) for at in range(0, len(free), rules.batch)]
    least = rules.batch if rules.strategy is CompactionStrategy.FULL_BATCHES else 2
    return [batch for batch in batches if len(batch) >= least]


def plan_jobs(
    references: Iterable[FileReference],
    tree: PartitionTree,
    rules: CompactionRules,
    *,
    new_ids: Callable[[int], Sequence[ObjectId]],
) -> list[CompactionJob]:
    """New jobs for all leaves of a tree. References of partitions that were split are left out: move them down first."""
    by_leaf: dict[PartitionId, list[FileReference]] = {}
    for reference in references:
        if tree.is_leaf(reference.partition):
            by_leaf.setdefault(reference.partition, []).append(reference)
    groups = [(leaf, group) for leaf in sorted(by_leaf) for group in choose_inputs(by_leaf[leaf], rules)]
    return [
        CompactionJob(
            id_text(job_id),
            leaf,
            tree.range_of(leaf),
            tuple(sorted(each.filename for each in group)),
            sum(each.rows for each in group),
        )
        for job_id, (leaf, group) in zip(new_ids(len(groups)) if groups else (), groups, strict=True)
    ]


def find_jobs(references: Iterable[FileReference], tree: PartitionTree, *, before: Micros | None = None) -> list[CompactionJob]:
    """The jobs that references are assigned to, also those of partitions that were split since.

    before        only jobs that were assigned before this time
    """
    groups: dict[str, list[FileReference]] = {}
    for reference in references:
        if reference.job is not None:
            groups.setdefault(reference.job, []).append(reference)
    jobs = [
        CompactionJob(
            job,
            group[0].partition,
            tree.range_of(group[0].partition),
            tuple(sorted(each.filename for each in group)),
            sum(each.rows for each in group),
            max((each.updated for each in group if each.updated is not None), default=None),
        )
        for job, group in sorted(groups.items())
    ]
    return [job for job in jobs if before is None or job.updated is None or job.updated < before]


def prepare_jobs(
    table: FileTable, rules: CompactionRules, *, lease_seconds: float, limit: int = 100_000
) -> list[CompactionJob]:
    """Jobs to execute now: those whose lease ran out since they were assigned, then new ones, which are assigned here.

    References of partitions that were split are moved to the leaves first. Whatever another planner takes meanwhile is left to it.

    raises        FileTableClosedError; UnknownOutcomeError: jobs that were assigned are found when their lease runs out
    """
    table.check_writable()
    table.push_down_references()
    snapshot = table.references.snapshot()
    tree = table.read_tree()
    now = table.rows.clock.now()
    jobs = find_jobs(snapshot.references, tree, before=Micros(now - round(lease_seconds * 1_000_000)))[:limit]
    planned = plan_jobs(snapshot.references, tree, rules, new_ids=table.rows.new_ids)[: limit - len(jobs)]
    assignments: list[FileRequest] = [job.assignment for job in planned]
    outcomes = table.references.apply_requests(assignments)
    return jobs + [job for job, outcome in zip(planned, outcomes, strict=True) if outcome.state is RequestState.APPLIED]


def execute_job(schema: RowSchema, job: CompactionJob, *, location: str, file_id: ObjectId) -> CommitJob:
    """Merge the inputs of a job into a new file. Returns the commit; until it is applied, nobody sees the file.

    location      of the table
    file_id       a new id of the store, for this execution alone
    raises        ExpiredError when an input is gone, because another execution was committed long ago; UnavailableError
    """
    row_bytes = max(read_file_sketch(filename).row_bytes for filename in job.inputs)
    batch_rows = batch_rows_for(len(job.inputs), row_bytes)
    streams = [read_data_file(schema, filename, job.keys, batch_rows=batch_rows) for filename in job.inputs]
    filename = data_file_name(location, file_id, job.id)
    with new_sorted_file(schema, filename) as writer:
        for rows in merge_sorted(schema, streams):
            writer.write_rows(rows)
    output = FileReference(filename=filename, partition=job.partition, rows=writer.rows)
    return CommitJob(job=job.id, inputs=job.inputs, output=output)


def commit_or_discard(commit: CommitJob, apply: Commit) -> str:
    """Commit a job that was executed. Returns why it was refused, or "": then its file is deleted, which nobody will ever see.

    raises        UnavailableError, UnknownOutcomeError: the file stays, and the job is executed again when its lease runs out
    """
    try:
        apply(commit)
    except JobCommitsFailedError as refusal:
        delete_data_file(commit.output.filename)
        return str(refusal.failures[0] if refusal.failures else refusal)
    return ""


def compact_table(
    table: FileTable,
    rules: CompactionRules = CompactionRules(),
    *,
    lease_seconds: float = 3600.0,
    limit: int = 100_000,
    observe: Callable[[int, int], None] = lambda done, total: None,
) -> CompactionReport:
    """Compact a table in this process, one job after the other; raises as ``prepare_jobs`` does.

    lease_seconds after so long, a job that somebody else was assigned is executed here
    observe       is told before each job, and at the end, how many were executed, and of how many
    """
    schema = RowSchema.of(table.definition)
    applied: list[str] = []
    refused: list[tuple[str, str]] = []
    failed: list[tuple[str, str]] = []
    rows = 0
    jobs = prepare_jobs(table, rules, lease_seconds=lease_seconds, limit=limit)
    for number, job in enumerate(jobs):
        observe(number, len(jobs))
        try:
            commit = execute_job(schema, job, location=table.definition.location, file_id=table.rows.new_id())
            reason = commit_or_discard(commit, lambda commit: table.references.commit_jobs([commit]))
        except HeadwaterError as fault:  # the others may succeed; this one is found again
            failed.append((job.id, str(fault)))
            continue
        if reason:
            refused.append((job.id, reason))
        else:
            applied.append(job.id)
            rows += commit.output.rows
    observe(len(jobs), len(jobs))
    return CompactionReport(tuple(applied), tuple(refused), tuple(failed), rows)
