"""A million updates of one file table, with the collection on: whether sizes and waits stay as they are.

Each worker owns some leaves. It adds files that have rows in all of them, and then compacts leaf by leaf: assigns the new files and the
last output to a job, and commits it. Every request that is applied is an update. Meanwhile the collection marks and forgets.
"""

from __future__ import annotations

import multiprocessing
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from benchmarks.commit_crowd import silence_retries
from benchmarks.contention import mark_now, percentile
from benchmarks.pictures import Curve, Series
from benchmarks.reference_options import SHIPPED_OPTION, Tuning
from benchmarks.report import Row, at_least, at_most_of_floor, say

from headwater.clock import Micros
from headwater.files import AssignJob, CommitJob, FileReference, FileReferenceStore, PartitionId, TrackedFile

__all__ = ["measure_updates"]

PROCESSES, THREADS, LEAVES = 2, 4, 8
"""Of the load; leaves are those of each thread."""
ADDED = 4
"""Files between two compactions."""
SAMPLES = 20
REPORTED = 200
"""Updates that a thread does before it reports them."""
MARK_SECONDS, FORGET_SECONDS, DELAY_SECONDS = 1.0, 5.0, 10.0
"""Of the collection: how often each stage runs, and how old a mark or an outcome has to be."""
BATCH = 10_000
DAY_SECONDS = 86_400


@dataclass
class UpdateSample:
    """What was seen over a share of the updates, and at its end."""

    updates: int
    seconds: float
    p50: float
    p99: float
    table_bytes: int
    outcome_bytes: int
    tracked: int


@dataclass
class UpdateSeries:
    samples: list[UpdateSample] = field(default_factory=list)
    marked: int = 0
    forgotten: int = 0


def measure_updates(server: Any, updates: int) -> tuple[list[Row], list[Curve]]:
    series = UpdateSeries()
    database = "updates"
    server.execute(f'CREATE DATABASE "{database}"')
    url = server.url(database=database)
    with SHIPPED_OPTION.create_store(url):
        pass
    stop = threading.Event()
    with closing(SHIPPED_OPTION.open_store(url, Tuning())) as store:
        collector = threading.Thread(target=collect, args=(store, series, stop))
        collector.start()
        try:
            with server.connect(dbname=database) as admin:
                take_samples(url, updates, admin, series)
        finally:
            stop.set()
            collector.join()
    server.execute(f'DROP DATABASE "{database}" WITH (FORCE)')
    return list(rows_of(series)), [size_curve(series), wait_curve(series)]


def take_samples(url: str, updates: int, admin: Any, series: UpdateSeries) -> None:
    spawning = multiprocessing.get_context("spawn")
    reports, limit = spawning.Queue(), updates // (PROCESSES * THREADS)
    workers = [
        spawning.Process(target=run_process, args=(url, number, limit, reports), daemon=True) for number in range(PROCESSES)
    ]
    for worker in workers:
        worker.start()
    waits: list[float] = []
    running, done, size = PROCESSES * THREADS, 0, updates // SAMPLES
    started: float | None = None
    while running:
        report = reports.get()
        if isinstance(report, str):
            raise RuntimeError(report)
        started = started or time.monotonic()
        if report is None:
            running -= 1
            continue
        waits += report
        if len(waits) >= size:
            done += len(waits)
            ended = time.monotonic()
            series.samples.append(sample_of(sorted(waits), ended - started, done, admin))
            say(f"million: {done:,} updates, {len(waits) / (ended - started):,.0f}/s")
            waits, started = [], ended
    for worker in workers:
        worker.join()


def run_process(url: str, number: int, limit: int, reports: Any) -> None:
    silence_retries()
    threads = [
        threading.Thread(target=run_thread, args=(url, number * THREADS + each, limit, reports)) for each in range(THREADS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def run_thread(url: str, number: int, limit: int, reports: Any) -> None:
    try:
        waits: list[float] = []
        with closing(SHIPPED_OPTION.open_store(url, Tuning())) as store:
            reports.put([])  # the clock starts
            for update, _ in zip(updates_of(store, number), range(limit), strict=False):
                started = time.monotonic()
                update()
                waits.append(time.monotonic() - started)
                if len(waits) == REPORTED:
                    reports.put(waits)
                    waits = []
        reports.put(waits)
        reports.put(None)
    except Exception as fault:  # noqa: BLE001 - it ends the run
        reports.put(f"a worker failed: {type(fault).__name__}: {fault}")


def updates_of(store: FileReferenceStore, number: int) -> Iterator[Any]:
    """Ingests and compactions of one worker's leaves, without an end."""
    leaves = [PartitionId("r" + format(number * LEAVES + each, "06b")) for each in range(LEAVES)]
    outputs: dict[PartitionId, str] = {}
    turn = 0
    while True:
        names = [f"file:///data/table/{number:02d}-{turn:06d}-{each}.parquet" for each in range(ADDED)]
        for name in names:
            references = tuple(FileReference(filename=name, partition=leaf, rows=100, is_whole_file=False) for leaf in leaves)
            yield lambda name=name, references=references: store.add_files([TrackedFile(filename=name, references=references)])
        for leaf in leaves:
            inputs = (*names, outputs[leaf]) if leaf in outputs else tuple(names)
            job, output = f"{leaf}-{turn}", f"file:///data/table/{number:02d}-{turn:06d}-{leaf}.parquet"
            assignment = AssignJob(job=job, partition=leaf, filenames=inputs)
            commit = CommitJob(job=job, inputs=inputs, output=FileReference(filename=output, partition=leaf, rows=100))
            yield lambda assignment=assignment: store.assign_jobs([assignment])
            yield lambda commit=commit: store.commit_jobs([commit])
            outputs[leaf] = output
        turn += 1


def collect(store: FileReferenceStore, series: UpdateSeries, stop: threading.Event) -> None:
    """Both stages and outcomes, as a collection does them, without objects to delete."""
    forget_at = time.monotonic() + FORGET_SECONDS
    while not stop.wait(MARK_SECONDS):
        series.marked += mark_now(store)
        if time.monotonic() >= forget_at:
            before = Micros(int((time.time() - DELAY_SECONDS) * 1e6))
            names = list(store.collectable_files(before))
            for first in range(0, len(names), BATCH):
                store.forget_files(names[first : first + BATCH])
            series.forgotten += len(names)
            while store.forget_outcomes(before, BATCH):
                pass
            forget_at = time.monotonic() + FORGET_SECONDS


def sample_of(waits: list[float], seconds: float, done: int, admin: Any) -> UpdateSample:
    sizes = dict(
        admin.execute(
            "SELECT relname, pg_total_relation_size(relid) FROM pg_stat_user_tables WHERE relname ~ 'file'"
        ).fetchall()
    )
    outcomes = sum(size for name, size in sizes.items() if "outcome" in name)
    return UpdateSample(
        updates=done,
        seconds=seconds,
        p50=percentile(waits, 0.5),
        p99=percentile(waits, 0.99),
        table_bytes=sum(sizes.values()),
        outcome_bytes=outcomes,
        tracked=admin.execute("SELECT count(*) FROM headwater.tracked_files").fetchone()[0],
    )


def rows_of(series: UpdateSeries) -> Iterator[Row]:
    """The last quarter of the samples against the second one; the first has a table that still grows."""
    samples = series.samples
    quarter = max(1, len(samples) // 4)
    early, late = samples[quarter : 2 * quarter] or samples[:1], samples[-quarter:]
    total, seconds = samples[-1].updates, sum(each.seconds for each in samples)
    name = f"million: {total:,} updates with the collection on"
    backend = "postgresql"
    yield Row(f"{name}: rate", backend, total / seconds, "updates/s", target=at_least(1_000_000 / 3600))
    yield Row(f"{name}: in a day", backend, total / seconds * DAY_SECONDS, "updates")

    def worst(samples: list[UpdateSample], of: str) -> float:
        return max(float(getattr(each, of)) for each in samples)

    for what, of, factor, unit in (("wait, p99", "p99", 1000, "ms"), ("tables and indexes", "table_bytes", 2**-20, "MiB")):
        case = f"{name}: {what}, last quarter against the second"
        yield Row(case, backend, worst(late, of) * factor, unit, worst(early, of) * factor, at_most_of_floor(1.5))
    yield Row(f"{name}: of these, outcomes at the end", backend, samples[-1].outcome_bytes * 2**-20, "MiB")
    yield Row(f"{name}: files tracked at the end", backend, samples[-1].tracked, "files")
    yield Row(f"{name}: files forgotten", backend, series.forgotten, "files")


def size_curve(series: UpdateSeries) -> Curve:
    sizes = [(each.updates / 1000, each.table_bytes * 2**-20) for each in series.samples]
    outcomes = [(each.updates / 1000, each.outcome_bytes * 2**-20) for each in series.samples]
    return Curve(
        name="files-sizes",
        title="Sizes over a million updates, collection on",
        x="thousand updates",
        y="MiB, with indexes",
        series=[Series("all tables", sizes), Series("outcomes", outcomes)],
    )


def wait_curve(series: UpdateSeries) -> Curve:
    return Curve(
        name="files-update-waits",
        title="Waits over a million updates, collection on",
        x="thousand updates",
        y="ms",
        series=[
            Series("p99", [(each.updates / 1000, each.p99 * 1000) for each in series.samples]),
            Series("median", [(each.updates / 1000, each.p50 * 1000) for each in series.samples]),
        ],
    )
