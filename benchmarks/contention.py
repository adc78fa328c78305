"""The contention scenario: jobs on all leaves of a table end at once, and each gives up its leaf's references to the same few files.

With 1,024 leaves and 11 files, the table has 11,264 references; job p has the 11 references of leaf p as inputs, and one output.

Source of the scenario: "Use PostgreSQL for the state store", option 1.
"""

from __future__ import annotations

import os
import random
import statistics
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import psycopg
from benchmarks.commit_crowd import PROCESSES, CommitCrowd, CrowdResult, JobRecord
from benchmarks.reference_options import ContenderReferences, ReferenceOption, Tuning
from benchmarks.reference_watch import AuditQuery, ReferenceWatch, one_number, watch_references

from headwater.clock import Micros
from headwater.files import AssignJob, CommitJob, FileReference, FileReferenceStore, PartitionId, TrackedFile

__all__ = ["Arena", "ContentionCase", "ContentionRun", "Workload", "medians"]

ROWS = 1000
"""Of each reference at first; each output has those of its inputs."""
SEED = 17
STATEMENT_TIMEOUT = "60s"
"""Of the workers' connections: with 10 s as shipped, a lock that is waited for longer counts as a failed job."""
ASSIGNED_AT_ONCE = 1000
COLLECT_SECONDS = 0.02
SESSIONS_SECONDS = 1.0


@dataclass(frozen=True)
class Workload:
    """The table before the clock starts, and what each job does to it."""

    leaves: int = 1024
    files: int = 11

    @cached_property
    def partitions(self) -> list[PartitionId]:
        depth = (self.leaves - 1).bit_length()
        return [PartitionId("r" + format(number, f"0{depth}b")) for number in range(self.leaves)]

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        return tuple(f"file:///data/table/in-{number:04d}.parquet" for number in range(self.files))

    @cached_property
    def order(self) -> list[int]:
        """Of the jobs: shuffled, and the same in each run."""
        numbers = list(range(self.leaves))
        random.Random(SEED).shuffle(numbers)
        return numbers

    @property
    def rows(self) -> int:
        return self.leaves * self.files * ROWS

    def audit_query(self, option: ReferenceOption) -> AuditQuery:
        return option.audit_query(self.leaves * self.files, self.files, self.rows, ROWS)

    def load(self, store: FileReferenceStore) -> None:
        """Add the files, one ingest each, and assign all jobs."""
        for name in self.inputs:
            references = tuple(
                FileReference(filename=name, partition=partition, rows=ROWS, is_whole_file=False)
                for partition in self.partitions
            )
            store.add_files([TrackedFile(filename=name, references=references)])
        assignments = [
            AssignJob(job=f"job-{partition}", partition=partition, filenames=self.inputs) for partition in self.partitions
        ]
        for first in range(0, len(assignments), ASSIGNED_AT_ONCE):
            store.assign_jobs(assignments[first : first + ASSIGNED_AT_ONCE])

    def commit_of(self, number: int) -> CommitJob:
        partition = self.partitions[self.order[number]]
        output = FileReference(
            filename=f"file:///data/table/out-{partition}.parquet", partition=partition, rows=self.files * ROWS
        )
        return CommitJob(job=f"job-{partition}", inputs=self.inputs, output=output)


@dataclass(frozen=True, kw_only=True)
class ContentionCase:
    """The factors of one run.

    cap           committers; the workers wait for them in a queue. None: each worker commits by itself
    collection    isolation of the first stage of the collection, which runs every 20 ms beside it; "": it does not
    """

    option: ReferenceOption
    workload: Workload = field(default_factory=Workload)
    isolation: str = "SERIALIZABLE"
    workers: int = 300
    attempts: int = 10
    cap: int | None = None
    batch: int = 1
    collection: str = ""

    @property
    def label(self) -> str:
        """What tells it from others, without leaves and files."""
        path = f"{self.workers} workers" if self.cap is None else f"{self.workers} workers, {self.cap} committers"
        words = [f"option {self.option.label}", self.isolation, path, f"{self.attempts} attempts"]
        if self.batch > 1:
            words.append(f"batches of {self.batch}")
        if self.collection:
            words.append(f"collection at {self.collection}")
        return ", ".join(words)

    def factors(self) -> dict[str, Any]:
        """What a table of many cases shows in its columns."""
        return {
            "option": self.option.label,
            "isolation": self.isolation,
            "workers": self.workers,
            "attempts": self.attempts,
            "cap": self.cap,
            "batch": self.batch,
            "collection": self.collection,
            "leaves": self.workload.leaves,
            "files": self.workload.files,
        }

    @property
    def tuning(self) -> Tuning:
        return Tuning(isolation=self.isolation, attempts=self.attempts)


@dataclass(frozen=True)
class ContentionTask:
    """What the workers are told."""

    url: str
    case: ContentionCase

    @property
    def jobs(self) -> int:
        return self.case.workload.leaves

    @property
    def batch(self) -> int:
        return self.case.batch

    def open_store(self) -> ContenderReferences:
        return self.case.option.open_store(self.url, self.case.tuning)

    def commit_of(self, number: int) -> CommitJob:
        return self.case.workload.commit_of(number)


@dataclass(kw_only=True)
class ContentionRun:
    """What came of one run; times in seconds.

    waits         of each job from its submission to its outcome, sorted; see ``submission_waits``
    commit_times  of each call from its first attempt to its end, sorted
    """

    wall: float
    waits: list[float]
    commit_times: list[float]
    records: list[JobRecord]
    counts: Counter[str]
    connect: list[float]
    watch: ReferenceWatch
    wal_bytes: int
    changed_rows: int
    table_bytes: int
    deadlocks: int
    problems: list[str]
    load: float
    paused: float

    @property
    def committed(self) -> int:
        return sum(record.jobs for record in self.records if not record.error)

    @property
    def failed(self) -> int:
        return sum(record.jobs for record in self.records if record.error)

    def measures(self) -> dict[str, float]:
        """By name, for the tables; see docs/concepts/file-references.md."""
        calls, committed = len(self.records), self.committed or 1
        attempts = [record.attempts for record in self.records]
        good = sum(not record.error for record in self.records)
        return {
            "wall_s": self.wall,
            "jobs_per_s": self.committed / self.wall,
            "p50_s": percentile(self.waits, 0.5),
            "p95_s": percentile(self.waits, 0.95),
            "p99_s": percentile(self.waits, 0.99),
            "max_s": self.waits[-1],
            "commit_p50_s": percentile(self.commit_times, 0.5),
            "commit_p99_s": percentile(self.commit_times, 0.99),
            "attempts_mean": sum(attempts) / calls,
            "attempts_max": max(attempts),
            "first_try_share": sum(record.attempts <= 1 and not record.error for record in self.records) / calls,
            "failed_jobs": self.failed,
            "wasted_transactions": sum(attempts) - good,
            "errors_40001": self.counts.get("40001", 0),
            "errors_40P01": self.counts.get("40P01", 0),
            "deadlocks": self.deadlocks,
            "wal_bytes_per_job": self.wal_bytes / committed,
            "changed_rows_per_job": self.changed_rows / committed,
            "table_bytes": self.table_bytes,
            "predicate_locks_max": max(self.watch.predicate_locks, default=0),
            "paused_share": self.paused / (sum(self.commit_times) or 1),
            "connect_p50_ms": statistics.median(self.connect) * 1000,
            "connect_p99_ms": percentile(sorted(self.connect), 0.99) * 1000,
            "audits": self.watch.audits,
            "violations": self.watch.violations,
            "collections": self.watch.collections,
            "collection_p50_ms": statistics.median(self.watch.collection_seconds or [0]) * 1000,
            "load": self.load,
        }


class Arena:
    """A server, a crowd, and a new database for each run, copied from one that is loaded once for each option and workload."""

    def __init__(self, server: Any, crowd: CommitCrowd) -> None:
        self._server = server
        self._crowd = crowd
        self._templates: dict[tuple[str, Workload], str] = {}
        self._runs = 0

    def run(self, case: ContentionCase) -> ContentionRun:
        """One run, with its verification: what is wrong is in ``problems``."""
        with self._database(case.option, case.workload) as name, self._server.connect(dbname=name) as admin:
            url = self._server.url(database=name, timeout=STATEMENT_TIMEOUT)
            admin.execute("ANALYZE")
            admin.execute("CHECKPOINT")
            store = case.option.open_store(url, Tuning(isolation=case.collection)) if case.collection else None
            collect = None if store is None else partial(mark_now, store)
            audit = case.workload.audit_query(case.option)
            try:
                before = readings(admin)
                with watch_references(
                    self._server.url(database=name), audit, collect=collect, collect_seconds=COLLECT_SECONDS
                ) as watch:
                    result = self._crowd.run(ContentionTask(url, case), workers=case.cap or case.workers)
                after = readings(admin)
            finally:
                if store is not None:
                    store.close()
            problems = [*watch.faults, *self._problems(case, url, result)]
        wall = max(record.ended for record in result.records) - result.released
        return ContentionRun(
            wall=wall,
            waits=submission_waits(result, case.workers),
            commit_times=sorted(record.ended - record.began for record in result.records),
            records=result.records,
            counts=result.counts,
            connect=result.connect_seconds,
            watch=watch,
            wal_bytes=after["wal"] - before["wal"],
            changed_rows=after["changed"] - before["changed"],
            table_bytes=after["bytes"],
            deadlocks=after["deadlocks"] - before["deadlocks"],
            problems=problems,
            paused=result.paused_seconds,
            load=os.getloadavg()[0],
        )

    @contextmanager
    def _database(self, option: ReferenceOption, workload: Workload) -> Iterator[str]:
        """The name of a new database with the workload in it, dropped at the end."""
        key = (replace(option, looks_first=False).label, workload)
        template = self._templates.get(key)
        if template is None:
            template = self._templates[key] = f"template_{len(self._templates)}"
            self._server.execute(f'CREATE DATABASE "{template}"')
            with option.create_store(self._server.url(database=template)) as store:
                workload.load(store)
        self._runs += 1
        name = f"run_{self._runs}"
        self._server.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')
        try:
            yield name
        finally:
            self._server.execute(f'DROP DATABASE "{name}" WITH (FORCE)')

    @staticmethod
    def _problems(case: ContentionCase, url: str, result: CrowdResult) -> list[str]:
        """What differs from an oracle after the run, and after a collection to the end."""
        with closing(case.option.open_store(url, Tuning())) as store:
            is_whole = not any(record.error for record in result.records)
            return oracle_problems(store, case.workload, is_whole=is_whole)


def oracle_problems(store: FileReferenceStore, workload: Workload, *, is_whole: bool) -> list[str]:
    """is_whole       whether every job was committed; if not, the auditor alone knows that none was applied in part"""
    references = store.references()
    if sum(reference.rows for reference in references) != workload.rows:
        return ["rows were lost or gained"]
    if not is_whole:
        return []
    outputs = [workload.commit_of(number).output for number in range(workload.leaves)]
    expected = {(each.filename, each.partition, each.rows, None) for each in outputs}
    if strange := expected ^ {(each.filename, each.partition, each.rows, each.job) for each in references}:
        return [f"{len(strange)} references differ from the oracle's"]
    mark_now(store)
    garbage = list(store.collectable_files(Micros(time.time_ns() // 1000 + 1_000_000)))
    if sorted(garbage) != sorted(workload.inputs):
        return [f"{len(garbage)} files are collectable instead of {workload.files}"]
    store.forget_files(garbage)
    report = store.report(10)
    return [] if len(report.files) == workload.leaves and not report.unreferenced else ["files stay after the collection"]


def mark_now(store: FileReferenceStore) -> int:
    return store.mark_unreferenced(Micros(time.time_ns() // 1000))


def submission_waits(result: CrowdResult, workers: int) -> list[float]:
    """How long each job waited from its submission, sorted.

    Each worker has one job under way: the first ones are submitted at the release, and each later one when another has ended. With as
    many committers as workers, that is when it begins.
    """
    begins = sorted(result.records, key=lambda record: record.began)
    ends = sorted(record.ended for record in result.records for _ in range(record.jobs))
    waits, number = [], 0
    for record in begins:
        for _ in range(record.jobs):
            submitted = result.released if number < workers else min(ends[number - workers], record.began)
            waits.append(record.ended - submitted)
            number += 1
    return sorted(waits)


def readings(admin: psycopg.Connection[Any]) -> dict[str, int]:
    """Figures of the server about its database, once all other sessions have ended: then they have reported what they did."""
    deadline = time.monotonic() + SESSIONS_SECONDS
    others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    while (
        one_number(admin, others) > PROCESSES + 1 and time.monotonic() < deadline
    ):  # each process keeps one that writes nothing
        time.sleep(0.05)
    row = admin.execute(
        "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint,"
        " (SELECT coalesce(sum(n_tup_upd + n_tup_del), 0)::bigint FROM pg_stat_user_tables),"
        " (SELECT coalesce(sum(pg_total_relation_size(relid)), 0)::bigint FROM pg_stat_user_tables),"
        " (SELECT deadlocks FROM pg_stat_database WHERE datname = current_database())"
    ).fetchone()
    assert row is not None
    return dict(zip(("wal", "changed", "bytes", "deadlocks"), row, strict=True))


def percentile(ordered: list[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def medians(runs: Sequence[ContentionRun]) -> dict[str, dict[str, float]]:
    """Median, least and largest of each measure over the repetitions."""
    measured = [run.measures() for run in runs]
    return {
        name: {"median": statistics.median(values), "min": min(values), "max": max(values)}
        for name, values in ((name, [each[name] for each in measured]) for name in measured[0])
    }
