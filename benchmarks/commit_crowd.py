"""Hundreds of workers that commit jobs at once: threads of a few processes, a store and a connection each, released together.

The processes stay for many runs. Times are of the machine's monotonic clock, which all its processes share.
"""

from __future__ import annotations

import logging
import multiprocessing
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any, Protocol

import structlog

from headwater.files import CommitJob, FileReferenceStore

__all__ = ["CommitCrowd", "CrowdResult", "CrowdTask", "JobRecord", "silence_retries"]

PROCESSES = 4
"""Of the load. Fewer would let one interpreter lock hold up the workers; more would take the server's time on two cores."""
STACK_BYTES = 256 * 1024


class PausingStore(FileReferenceStore, Protocol):
    paused_seconds: float
    """How long it waited between attempts."""


class CrowdTask(Protocol):
    """What the workers of a run do; it is pickled."""

    jobs: int
    batch: int

    def open_store(self) -> PausingStore:
        """A store of one worker, with a connection of its own that is open."""
        ...

    def commit_of(self, number: int) -> CommitJob: ...


@dataclass(frozen=True, slots=True)
class JobRecord:
    """One call of ``commit_jobs``.

    jobs          how many it was called with
    began, ended  seconds of the monotonic clock
    attempts      transactions that it took
    error         name of the error that it ended with; "" for none
    """

    jobs: int
    began: float
    ended: float
    attempts: int
    error: str = ""


@dataclass
class CrowdResult:
    released: float = 0.0
    connect_seconds: list[float] = field(default_factory=list)
    records: list[JobRecord] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    paused_seconds: float = 0.0
    """Of all workers together, between attempts."""


class CommitCrowd:
    """``with CommitCrowd() as crowd: crowd.run(task, workers=300)``."""

    def __init__(self, processes: int = PROCESSES) -> None:
        self._spawning = multiprocessing.get_context("spawn")
        self._next = self._spawning.Value("i", 0)
        self._barrier = self._spawning.Barrier(processes + 1)
        self._pipes: list[Connection] = []
        self._processes: list[Any] = []
        for _ in range(processes):
            ours, theirs = self._spawning.Pipe()
            process = self._spawning.Process(target=serve, args=(theirs, self._next, self._barrier), daemon=True)
            process.start()
            theirs.close()
            self._pipes.append(ours)
            self._processes.append(process)

    def run(self, task: CrowdTask, *, workers: int, on_release: Callable[[], None] = lambda: None) -> CrowdResult:
        """Open all stores, then release all workers at once; comes back when the last job has an outcome."""
        self._next.value = 0
        shares = [workers // len(self._pipes) + (number < workers % len(self._pipes)) for number in range(len(self._pipes))]
        for pipe, share in zip(self._pipes, shares, strict=True):
            pipe.send((task, share))
        opened = [pipe.recv() for pipe in self._pipes]
        fault = next((each for each in opened if isinstance(each, BaseException)), None)
        for pipe in self._pipes:
            pipe.send(fault is None)
        if fault is not None:
            raise fault
        result = CrowdResult(connect_seconds=[seconds for each in opened for seconds in each])
        on_release()
        self._barrier.wait(60)
        result.released = time.monotonic()
        for pipe in self._pipes:
            records, counts, paused = pipe.recv()
            result.records += records
            result.counts += counts
            result.paused_seconds += paused
        return result

    def __enter__(self) -> CommitCrowd:
        return self

    def __exit__(self, *_: object) -> None:
        for pipe in self._pipes:
            pipe.send(None)
        for process in self._processes:
            process.join(10)
            process.kill()


def silence_retries() -> None:
    """The library logs every attempt that is lost, which here is thousands."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))


def serve(pipe: Connection, next_job: Any, barrier: Any) -> None:
    """A process of the crowd, until it is told to end."""
    silence_retries()
    threading.stack_size(STACK_BYTES)
    while (order := pipe.recv()) is not None:
        task, workers = order
        try:
            stores, seconds = open_stores(task, workers)
        except BaseException as fault:  # noqa: BLE001 - it is raised in the process that asked
            pipe.send(RuntimeError(f"{type(fault).__name__}: {fault}"))
            pipe.recv()
            continue
        pipe.send(seconds)
        if not pipe.recv():  # another process could not open its stores
            for store in stores:
                store.close()
            continue
        records: list[JobRecord] = []
        begin = threading.Event()
        threads = [threading.Thread(target=work, args=(task, store, next_job, begin, records), daemon=True) for store in stores]
        for thread in threads:
            thread.start()
        barrier.wait(60)
        begin.set()
        for thread in threads:
            thread.join()
        counts, paused = Counter[str](), 0.0
        for store in stores:
            counts.update(store.counts())
            paused += store.paused_seconds
            store.close()
        pipe.send((records, counts, paused))


def open_stores(task: CrowdTask, workers: int) -> tuple[Sequence[PausingStore], list[float]]:
    stores, seconds = [], []
    for _ in range(workers):
        started = time.perf_counter()
        stores.append(task.open_store())
        seconds.append(time.perf_counter() - started)
    return stores, seconds


def work(task: CrowdTask, store: FileReferenceStore, next_job: Any, begin: threading.Event, records: list[JobRecord]) -> None:
    """Take the next jobs and commit them, until there is none left."""
    begin.wait()
    while True:
        with next_job.get_lock():
            first = next_job.value
            next_job.value = first + task.batch
        commits = [task.commit_of(number) for number in range(first, min(first + task.batch, task.jobs))]
        if not commits:
            return
        before = store.counts().get("transactions", 0)
        began, error = time.monotonic(), ""
        try:
            store.commit_jobs(commits)
        except Exception as fault:  # noqa: BLE001 - a job that failed, for whatever reason, is a failed job
            error = type(fault).__name__
        attempts = store.counts().get("transactions", 0) - before
        records.append(JobRecord(len(commits), began, time.monotonic(), attempts, error))
