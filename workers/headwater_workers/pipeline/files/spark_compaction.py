"""Compactions as one Spark application: the driver plans and assigns, executors merge, the driver commits what is done at once.

A driver or executor that dies leaves jobs that are assigned: whoever plans after their lease executes them again.
"""

from __future__ import annotations

import pickle
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any

from headwater.errors import HeadwaterError
from headwater.files import (
    CommitJob,
    CompactionJob,
    CompactionReport,
    CompactionRules,
    FileTable,
    RequestSender,
    RequestState,
    RowSchema,
    commit_or_discard,
    delete_data_file,
    execute_job,
    prepare_jobs,
    wait_for_outcomes,
)
from headwater.store import ObjectId
from headwater_workers.pipeline.spark_session import spark_errors

OUTCOME_SECONDS = 60.0
"""How long an application waits at its end for the outcomes of commits that it sent."""


def compact_on_spark(
    spark: Any,
    table: FileTable,
    rules: CompactionRules,
    *,
    lease_seconds: float,
    width: int = 0,
    sender: RequestSender | None = None,
    outcome_seconds: float = OUTCOME_SECONDS,
) -> CompactionReport:
    """Plan, assign, execute and commit compactions of a table.

    lease_seconds after so long, a job that somebody else was assigned is executed here
    width         jobs at the same time; 0: as many as Spark has cores
    sender        sends the commits to a queue instead of applying them at once. Those that have no outcome at the end, after
                  ``outcome_seconds``, are among the failed ones of the report, and may be applied later
    raises        FileTableClosedError; UnavailableError. A job that fails is in the report, and is found again by later plans
    """
    jobs = prepare_jobs(table, rules, lease_seconds=lease_seconds)
    schema = RowSchema.of(table.definition)
    context = spark.sparkContext
    progress = _Progress(table, sender)
    width = width or context.defaultParallelism
    with ThreadPoolExecutor(width, thread_name_prefix="compaction") as pool:
        # A new id for each: it must be as young as the execution, or the file would be taken for a stray while it is written.
        pending: dict[Future[CommitJob], CompactionJob] = {}
        waiting = list(reversed(jobs))
        while pending or waiting:
            while waiting and len(pending) < width:
                job = waiting.pop()
                pending[pool.submit(_run_job, context, schema, job, table.definition.location, table.rows.new_id())] = job
            for future in wait(pending, return_when=FIRST_COMPLETED).done:
                progress.record_job(pending.pop(future), future)
    return progress.summarize_jobs(outcome_seconds)


class _Progress:
    """What became of the jobs so far. Only the driver's main thread touches it."""

    def __init__(self, table: FileTable, sender: RequestSender | None) -> None:
        self._table = table
        self._sender = sender
        self._applied: list[str] = []
        self._sent: dict[str, CommitJob] = {}
        self._refused: list[tuple[str, str]] = []
        self._failed: list[tuple[str, str]] = []
        self._rows = 0

    def record_job(self, job: CompactionJob, future: Future[CommitJob]) -> None:
        try:
            fault = future.exception()
            if fault is not None:
                raise fault if isinstance(fault, HeadwaterError) else spark_errors(fault)
            commit = future.result()
            if self._sender is not None:
                self._sender.send_requests(self._table.scope, [commit])
                self._sent[job.id] = commit
                return
            reason = commit_or_discard(commit, lambda each: self._table.references.commit_jobs([each]))
        except HeadwaterError as failure:
            self._failed.append((job.id, str(failure)))
            return
        if reason:
            self._refused.append((job.id, reason))
        else:
            self._applied.append(job.id)
            self._rows += commit.output.rows

    def summarize_jobs(self, outcome_seconds: float) -> CompactionReport:
        if self._sender is not None:
            self._await_outcomes(self._sender, outcome_seconds)
        return CompactionReport(tuple(self._applied), tuple(self._refused), tuple(self._failed), self._rows)

    def _await_outcomes(self, sender: RequestSender, seconds: float) -> None:
        table, sent = self._table, list(self._sent.values())
        known = wait_for_outcomes(table.references, table.scope, sent, sender=sender, timeout_seconds=seconds)
        for job, outcome in known.outcomes.items():
            commit = self._sent[job]
            if outcome.state is RequestState.APPLIED:
                self._applied.append(job)
                self._rows += commit.output.rows
            else:
                self._refused.append((job, outcome.reason))
                self._discard_output(commit)
        self._failed += known.set_aside.items()
        self._failed += [(job, f"its commit was sent, and has no outcome after {seconds:g} s") for job in known.open]

    def _discard_output(self, commit: CommitJob) -> None:
        """Delete the file of a commit that was refused, for good: nobody will ever see it."""
        try:
            delete_data_file(commit.output.filename)
        except HeadwaterError as fault:  # the collection finds it as a stray
            self._failed.append((commit.job, str(fault)))


def _run_job(context: Any, schema: RowSchema, job: CompactionJob, location: str, file_id: ObjectId) -> CommitJob:
    """Execute one job as one task of Spark, wherever there is room."""
    order = bytearray(pickle.dumps((schema, job, location, file_id)))
    result: list[CommitJob] = context.parallelize([order], 1).map(_execute).collect()
    return result[0]


def _execute(order: bytearray) -> CommitJob:
    schema, job, location, file_id = pickle.loads(bytes(order))  # the driver made it
    return execute_job(schema, job, location=location, file_id=file_id)
