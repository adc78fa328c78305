"""Commits of jobs by way of the queue, through a real Redis, against bare loops of as many committers without any queue.

The bare loops are what one would write with the driver, one commit or a hundred in a transaction; they look no outcome up. The library
without the broker shows what the broker takes.
"""

from __future__ import annotations

import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
from benchmarks.disk import ROOT, working_folder
from benchmarks.report import Row, Target, at_least_of_floor, say, show
from benchmarks.timing import median

from headwater import Settings, open_store
from headwater.files import (
    AssignJob,
    CommitJob,
    FileReference,
    FileScope,
    PartitionId,
    RequestState,
    TrackedFile,
    open_file_references,
)
from headwater.store import RealmKey, Store
from headwater_workers.celery_app import broker_of
from headwater_workers.file_queue import QueuedRequestSender, RedisRequestQueue, Settlement, open_request_queue

__all__ = ["queue_rows"]

CAP = 4
BATCH = 100
SENDERS = 2
"""Processes that send: together they are faster than the committers, and leave them most of the machine."""
SEND = """
import pickle, sys
from headwater_workers.file_queue import QueuedRequestSender, RedisRequestQueue
url, queue = sys.argv[1:3]
sender = QueuedRequestSender(RedisRequestQueue(url, queue))
scope, jobs = pickle.load(sys.stdin.buffer)
sender.find_set_aside(scope, ["connect"])
print("ready", flush=True)
sys.stdin.buffer.read(1)
for job in jobs:
    sender.send_requests(scope, [job])
"""
_REALMS = count(1)


@dataclass(frozen=True)
class LoadedTable:
    """A table whose jobs are assigned: each replaces the references of its leaf to all files by one."""

    scope: FileScope
    jobs: Sequence[CommitJob]

    @classmethod
    def create(cls, store: Store, leaves: int, files: int) -> LoadedTable:
        scope = FileScope(RealmKey(next(_REALMS)), "f" * 16)
        inputs = tuple(f"file:///data/table/in-{number:04d}.parquet" for number in range(files))
        partitions = [PartitionId(f"r{number:013b}") for number in range(leaves)]
        references = open_file_references(store, scope, create=True)
        for name in inputs:
            held = tuple(FileReference(filename=name, partition=each, rows=10, is_whole_file=False) for each in partitions)
            references.add_files([TrackedFile(filename=name, references=held)])
        assignments = [AssignJob(job=f"job-{each}", partition=each, filenames=inputs) for each in partitions]
        for first in range(0, leaves, 1000):
            references.assign_jobs(assignments[first : first + 1000])
        outputs = [
            FileReference(filename=f"file:///data/table/out-{each}.parquet", partition=each, rows=110) for each in partitions
        ]
        return cls(scope, [CommitJob(job=f"job-{each.partition}", inputs=inputs, output=each) for each in outputs])

    def check(self, store: Store) -> None:
        """raises RuntimeError unless all jobs were applied, once"""
        references = open_file_references(store, self.scope)
        rows = sorted((each.filename, each.partition, each.job) for each in references.references())
        if rows != sorted((job.output.filename, job.partition, None) for job in self.jobs):
            raise RuntimeError(f"the references are not those that {len(self.jobs)} jobs leave")

    def check_outcomes(self, store: Store) -> None:
        outcomes = open_file_references(store, self.scope).find_outcomes([job.job for job in self.jobs])
        if sum(outcome.state is RequestState.APPLIED for outcome in outcomes.values()) != len(self.jobs):
            raise RuntimeError("not every job has the outcome APPLIED")


@dataclass(frozen=True)
class QueueArena:
    """A database, a Redis, and committers that run as a process."""

    store: Store
    dsn: dict[str, Any]
    settings: Settings
    committers: subprocess.Popen[bytes]
    leaves: int
    files: int

    def timed(self, run: Callable[[LoadedTable], float]) -> float:
        """Commits in a second of one run on a new table."""
        table = LoadedTable.create(self.store, self.leaves, self.files)
        with psycopg.connect(**self.dsn, autocommit=True) as admin:
            admin.execute("ANALYZE")
            admin.execute("CHECKPOINT")
        rate = len(table.jobs) / run(table)
        table.check(self.store)
        table.check_outcomes(self.store)
        return rate

    def bare(self, batch: int) -> Callable[[LoadedTable], float]:
        """Transactions of so many jobs each, by hand."""
        return lambda table: self._bare(table, batch)

    def _bare(self, table: LoadedTable, batch: int) -> float:
        with psycopg.connect(**self.dsn) as connection:
            query = "SELECT scope FROM headwater.file_scopes WHERE realm = %s"
            [(number,)] = connection.execute(query, (table.scope.realm,)).fetchall()
        connections = [psycopg.connect(**self.dsn) for _ in range(CAP)]

        def commit(which: int, jobs: Sequence[CommitJob]) -> None:
            (_commit_one if batch == 1 else _commit_many)(connections[which], number, jobs)

        try:
            return _shared(table.jobs, batch, commit)
        finally:
            for connection in connections:
                connection.close()

    def library(self, batch: int) -> Callable[[LoadedTable], float]:
        """``apply_requests`` without a broker."""

        def run(table: LoadedTable) -> float:
            stores = [open_file_references(self.store, table.scope) for _ in range(CAP)]
            return _shared(table.jobs, batch, lambda which, jobs: stores[which].apply_requests(jobs))

        return run

    def drained(self, table: LoadedTable) -> float:
        """All commits wait in the queue when the committers begin."""
        broker = broker_of(self.settings)
        with closing(open_request_queue(broker)) as queue:
            self.committers.send_signal(signal.SIGSTOP)
            QueuedRequestSender(queue).send_requests(table.scope, table.jobs)
            started = time.perf_counter()
            self.committers.send_signal(signal.SIGCONT)
            return _until_empty(queue, started)

    def sent(self, table: LoadedTable) -> float:
        """Commits are sent one by one, by other processes, while the committers work."""
        broker = broker_of(self.settings)
        with closing(open_request_queue(broker)) as queue, _senders(broker.url, broker.queue, table) as release:
            started = time.perf_counter()
            release()
            return _until_empty(queue, started)


def queue_rows(server: Any, *, leaves: int = 1024, files: int = 11, repetitions: int = 5) -> Iterator[Row]:
    """Figures of the queue on a PostgreSQL server that runs, with a Redis of their own."""
    name = "queue_of_requests"
    server.execute(f'CREATE DATABASE "{name}"')
    try:
        with working_folder() as folder, redis_server(folder) as redis:
            dsn = {"host": server.host, "port": server.port, "user": server.user, "password": server.password, "dbname": name}
            with running_committers(server.url(database=name), redis, dsn, leaves, files) as arena:
                yield from _rates(arena, repetitions)
            yield from _broker_rows(redis, LoadedTable(FileScope(RealmKey(1), "f" * 16), _jobs_to_send(files)))
    finally:
        server.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def _rates(arena: QueueArena, repetitions: int) -> Iterator[Row]:
    contenders: dict[str, Callable[[], float]] = {
        "bare, 1": lambda: arena.timed(arena.bare(1)),
        "bare, batches": lambda: arena.timed(arena.bare(BATCH)),
        "library, 1": lambda: arena.timed(arena.library(1)),
        "library, batches": lambda: arena.timed(arena.library(BATCH)),
        "drained": lambda: arena.timed(arena.drained),
        "sent": lambda: arena.timed(arena.sent),
    }
    rates: dict[str, list[float]] = {what: [] for what in contenders}
    for number in range(repetitions + 1):
        order = list(contenders.items())
        for what, run in order if number % 2 else reversed(order):
            rate = run()
            say(f"broker: {what}: {rate:,.0f} commits/s")
            if number:  # the first round only warms up
                rates[what].append(rate)
    one, many = median(rates["bare, 1"]), median(rates["bare, batches"])
    name, batches = f"broker: {CAP} committers", f"batches of {BATCH}"
    target = at_least_of_floor(0.6)
    labels: list[tuple[str, str, float, Target | None]] = [
        ("library, 1", "library without a broker, one commit in a transaction", one, None),
        ("library, batches", f"library without a broker, {batches}", many, None),
        ("sent", f"queue, while {SENDERS} processes send; the floor has one commit in a transaction", one, target),
        ("drained", "queue, all sent before; the floor has one commit in a transaction", one, target),
        ("drained", f"queue, all sent before; the floor has {batches}", many, target),
    ]
    for what, label, floor, wanted in labels:
        yield Row(f"{name}: {label}", "postgresql", median(rates[what]), "commits/s", floor, wanted)


def _commit_one(connection: psycopg.Connection[Any], number: int, jobs: Sequence[CommitJob]) -> None:
    [job] = jobs
    removed = connection.execute(
        "DELETE FROM headwater.file_references WHERE scope = %s AND part = %s AND filename = ANY(%s) AND job = %s",
        (number, job.partition, list(job.inputs), job.job),
    )
    if removed.rowcount != len(job.inputs):
        raise RuntimeError(f"job {job.job} is not assigned")
    connection.execute(
        "INSERT INTO headwater.tracked_files (scope, filename, marked) VALUES (%s, %s, 9223372036854775807)",
        (number, job.output.filename),
    )
    connection.execute(
        "INSERT INTO headwater.file_references (scope, filename, part, row_count, flags, job, updated)"
        " VALUES (%s, %s, %s, %s, 2, NULL, 1)",
        (number, job.output.filename, job.partition, job.output.rows),
    )
    connection.execute(
        "INSERT INTO headwater.file_outcomes (scope, request, kind, state, digest, reason, error, time)"
        " VALUES (%s, %s, 'commit', 'APPLIED', '', '', '', 1)",
        (number, job.job),
    )
    connection.commit()


def _commit_many(connection: psycopg.Connection[Any], number: int, jobs: Sequence[CommitJob]) -> None:
    places = [(name, job.partition, job.job) for job in jobs for name in job.inputs]
    removed = connection.execute(
        "DELETE FROM headwater.file_references AS r USING unnest(%s::text[], %s::text[], %s::text[]) AS w (filename, part, job)"
        " WHERE r.scope = %s AND r.filename = w.filename AND r.part = w.part AND r.job = w.job",
        (*map(list, zip(*places, strict=True)), number),
    )
    if removed.rowcount != len(places):
        raise RuntimeError("a job is not assigned")
    names = [job.output.filename for job in jobs]
    connection.execute(
        "INSERT INTO headwater.tracked_files (scope, filename, marked) SELECT %s, unnest(%s::text[]), 9223372036854775807",
        (number, names),
    )
    connection.execute(
        "INSERT INTO headwater.file_references (scope, filename, part, row_count, flags, job, updated)"
        " SELECT %s, filename, part, row_count, 2, NULL, 1"
        " FROM unnest(%s::text[], %s::text[], %s::bigint[]) AS w (filename, part, row_count)",
        (number, names, [job.partition for job in jobs], [job.output.rows for job in jobs]),
    )
    connection.execute(
        "INSERT INTO headwater.file_outcomes (scope, request, kind, state, digest, reason, error, time)"
        " SELECT %s, unnest(%s::text[]), 'commit', 'APPLIED', '', '', '', 1",
        (number, [job.job for job in jobs]),
    )
    connection.commit()


def _shared(jobs: Sequence[CommitJob], batch: int, commit: Callable[[int, Sequence[CommitJob]], object]) -> float:
    """Seconds that as many threads as there may be committers take for all jobs."""
    batches = [jobs[first : first + batch] for first in range(0, len(jobs), batch)]
    numbers = iter(range(len(batches)))
    faults: list[Exception] = []

    def work(which: int) -> None:
        try:
            while (number := next(numbers, None)) is not None:
                commit(which, batches[number])
        except Exception as fault:  # noqa: BLE001 - it is raised by whoever waits
            faults.append(fault)

    threads = [threading.Thread(target=work, args=(which,)) for which in range(CAP)]
    started = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if faults:
        raise faults[0]
    return time.perf_counter() - started


def _until_empty(queue: Any, started: float) -> float:
    """Seconds since the start when nothing is left; with senders, they send faster than it empties."""
    while not queue.has_requests():
        time.sleep(0.001)
    while queue.has_requests():
        time.sleep(0.002)
    return time.perf_counter() - started


@contextmanager
def _senders(url: str, queue: str, table: LoadedTable) -> Iterator[Callable[[], None]]:
    """Processes that wait for a word, and then send all jobs one by one."""
    processes = []
    for which in range(SENDERS):
        process = subprocess.Popen([sys.executable, "-c", SEND, url, queue], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert process.stdin is not None and process.stdout is not None
        pickle.dump((table.scope, table.jobs[which::SENDERS]), process.stdin)
        process.stdin.flush()
        process.stdout.readline()
        processes.append(process)

    def release() -> None:
        for process in processes:
            assert process.stdin is not None
            process.stdin.write(b"!")
            process.stdin.close()

    try:
        yield release
    finally:
        for process in processes:
            process.wait(60)
            assert process.stdout is not None
            process.stdout.close()


@contextmanager
def redis_server(folder: Path) -> Iterator[str]:
    """A Redis on a free port of the loopback, without a log on disk."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    command = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            while "Ready to accept connections" not in (line := server.stdout.readline()):
                if not line:
                    raise RuntimeError("redis-server did not start")
            yield f"redis://127.0.0.1:{port}/0"
        finally:
            server.kill()


@contextmanager
def running_committers(url: str, redis: str, dsn: dict[str, Any], leaves: int, files: int) -> Iterator[QueueArena]:
    names = {"STORE": url, "BROKER": redis, "FILES_COMMITTERS": str(CAP)}
    environment = {**os.environ, **{f"HEADWATER_{name}": value for name, value in names.items()}}
    settings = Settings.from_environment(environment)
    with open_store(url, settings=settings) as store:
        open_file_references(store, FileScope(RealmKey(next(_REALMS)), "0" * 16), create=True)
        command = [sys.executable, "-m", "headwater", "file-committer", "--log-level", "warning", "--parent", str(os.getpid())]
        with subprocess.Popen(command, env=environment) as committers:
            try:
                arena = QueueArena(store, dsn, settings, committers, leaves, files)
                yield arena
            finally:
                committers.send_signal(signal.SIGCONT)
                committers.terminate()


def _jobs_to_send(files: int) -> list[CommitJob]:
    inputs = tuple(f"file:///data/table/in-{number:04d}.parquet" for number in range(files))
    outputs = [
        FileReference(filename=f"file:///data/table/out-{each:04d}.parquet", partition=PartitionId("r"), rows=1)
        for each in range(2000)
    ]
    return [CommitJob(job=f"job-{number}", inputs=inputs, output=output) for number, output in enumerate(outputs)]


def _broker_rows(redis: str, table: LoadedTable) -> Iterator[Row]:
    """What sending, taking and settling of one commit cost, with nobody else there."""
    queue = RedisRequestQueue(redis, "broker-alone")
    sender = QueuedRequestSender(queue)
    with closing(queue):
        for batch in (1, 10, BATCH):
            sending = taking = settling = 0.0
            for job in table.jobs:
                started = time.perf_counter()
                sender.send_requests(table.scope, [job])
                sending += time.perf_counter() - started
            while True:
                started = time.perf_counter()
                taken = queue.take(batch)
                taking += time.perf_counter() - started
                if taken is None:
                    break
                started = time.perf_counter()
                queue.settle_batch(taken, Settlement())
                settling += time.perf_counter() - started
            each = 1e6 / len(table.jobs)
            if batch == 1:
                yield Row("broker: send one commit", "redis", sending * each, "us")
            yield Row(f"broker: take one commit, batches of {batch}", "redis", taking * each, "us")
            yield Row(f"broker: acknowledge one commit, batches of {batch}", "redis", settling * each, "us")


def main(arguments: list[str]) -> int:
    """These figures alone, for whoever works on the queue."""
    sys.path.append(str(ROOT / "tests"))
    from servers.postgresql import PostgresqlServer

    is_quick = "--quick" in arguments
    with working_folder() as folder, PostgresqlServer(folder=folder, is_synced=True) as server:
        print(show(list(queue_rows(server, leaves=128 if is_quick else 1024, repetitions=1 if is_quick else 5))))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
