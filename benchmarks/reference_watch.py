"""What runs beside a storm of commits: an auditor of what must hold at any moment, a sampler of waits and locks, and a collector."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import psycopg

__all__ = ["AuditQuery", "ReferenceWatch", "watch_references"]

SAMPLE_SECONDS = 0.1
WAITS = (
    "SELECT coalesce(wait_event_type || ': ' || wait_event, 'running'), count(*) FROM pg_stat_activity"
    " WHERE datname = current_database() AND backend_type = 'client backend' AND state <> 'idle' AND pid <> pg_backend_pid()"
    " GROUP BY 1"
)
PREDICATE_LOCKS = "SELECT count(*) FROM pg_locks WHERE mode = 'SIReadLock'"


@dataclass(frozen=True, slots=True)
class AuditQuery:
    """One statement that reads one snapshot and returns one number: how many rules are violated."""

    statement: str
    values: tuple[Any, ...] = ()
    every_seconds: float = 0.05


@dataclass
class ReferenceWatch:
    """What was seen.

    waits         sampled backends by what they waited for, except idle ones
    predicate_locks   SIReadLocks of the server, one figure a sample
    marked        files that the collector's first stage marked, in ``collections`` runs
    """

    audits: int = 0
    violations: int = 0
    samples: int = 0
    waits: Counter[str] = field(default_factory=Counter)
    predicate_locks: list[int] = field(default_factory=list)
    collections: int = 0
    collection_seconds: list[float] = field(default_factory=list)
    marked: int = 0
    faults: list[str] = field(default_factory=list)

    @property
    def shares(self) -> dict[str, float]:
        """Share of the sampled backends by what they waited for, the largest first."""
        total = self.waits.total() or 1
        return {name: round(count / total, 3) for name, count in self.waits.most_common(6)}


@contextmanager
def watch_references(
    conninfo: str, audit: AuditQuery | None, *, collect: Callable[[], int] | None = None, collect_seconds: float = 0.02
) -> Iterator[ReferenceWatch]:
    """Audit, sample and collect on connections of their own, until the block ends; what fails there is in ``faults``."""
    watch, stop = ReferenceWatch(), threading.Event()
    acts: list[tuple[float, Callable[[], None]]] = []
    with psycopg.connect(conninfo, autocommit=True) as sampling, psycopg.connect(conninfo, autocommit=True) as auditing:
        auditing.execute("SET default_transaction_isolation = 'repeatable read'")

        def sample() -> None:
            watch.samples += 1
            watch.waits.update(dict(sampling.execute(WAITS).fetchall()))
            watch.predicate_locks.append(one_number(sampling, PREDICATE_LOCKS))

        acts.append((SAMPLE_SECONDS, sample))
        if audit is not None:
            acts.append((audit.every_seconds, lambda: audit_once(auditing, audit, watch)))
        if collect is not None:
            acts.append((collect_seconds, lambda: collect_once(collect, watch)))
        threads = [threading.Thread(target=repeat, args=(act, seconds, stop, watch)) for seconds, act in acts]
        for thread in threads:
            thread.start()
        try:
            yield watch
        finally:
            stop.set()
            for thread in threads:
                thread.join()


def repeat(act: Callable[[], None], seconds: float, stop: threading.Event, watch: ReferenceWatch) -> None:
    """As often as the time allows; at least once."""
    try:
        while True:
            due = time.monotonic() + seconds
            act()
            if stop.wait(max(0.0, due - time.monotonic())):
                return
    except Exception as fault:  # noqa: BLE001 - the run that is watched reports it
        watch.faults.append(f"{type(fault).__name__}: {fault}")


def audit_once(connection: psycopg.Connection[Any], audit: AuditQuery, watch: ReferenceWatch) -> None:
    watch.violations += one_number(connection, audit.statement, audit.values)
    watch.audits += 1


def collect_once(collect: Callable[[], int], watch: ReferenceWatch) -> None:
    started = time.perf_counter()
    watch.marked += collect()
    watch.collection_seconds.append(time.perf_counter() - started)
    watch.collections += 1


def one_number(connection: psycopg.Connection[Any], statement: str, values: tuple[Any, ...] = ()) -> int:
    row = connection.execute(statement.encode(), values).fetchone()
    return 0 if row is None else int(row[0])
