"""File references: three ways to keep them, when hundreds of jobs give up references to the same few files at once.

Run it with ``make bench SUITE=files``; ``--quick`` is small and shows that it works. ``--only=options,queue`` runs these parts, and
``--merge`` puts their figures into the results of the last full run; ``--repetitions=2`` is for a machine that is not free for an hour.
The part ``million`` takes long and runs only when it is named.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
from benchmarks.commit_crowd import PROCESSES, CommitCrowd, silence_retries
from benchmarks.contention import Arena, ContentionCase, ContentionRun, Workload, medians
from benchmarks.contention_curves import committer_curve, wait_curve, worker_curve
from benchmarks.disk import ROOT, working_folder
from benchmarks.file_garbage import garbage_rows
from benchmarks.file_queue import queue_rows
from benchmarks.file_updates import measure_updates
from benchmarks.options import Options, read_options
from benchmarks.pictures import Curve, curve_of
from benchmarks.reference_options import OPTIONS
from benchmarks.report import Row, Target, at_most, read_results, row_of, say, show, write_results

SUITE = "files"
BACKEND = "postgresql"
CONTENTION = ("options", "attempts", "workers", "queue", "batches", "collection", "keys", "large")
"""Parts that are cases of the contention scenario."""
PARTS = (*CONTENTION, "broker", "garbage", "rows", "million")
LONG_PARTS = ("million",)
"""Run only when they are named; a quick run leaves Spark out as well."""
SERIALIZABLE, REPEATABLE, COMMITTED, SHIPPED = "SERIALIZABLE", "REPEATABLE READ", "READ COMMITTED", "as shipped"
P99_SECONDS = 1.5
SERVER_SETTINGS = {"max_connections": "600"}
"""More than 100 as shipped: 500 workers have a connection each."""
SHOWN_SETTINGS = (
    "shared_buffers",
    "fsync",
    "synchronous_commit",
    "wal_level",
    "max_wal_size",
    "autovacuum",
    "deadlock_timeout",
    "max_pred_locks_per_transaction",
    "max_pred_locks_per_relation",
    "max_pred_locks_per_page",
)
ONE, SALTED, MORE_SALTED, TWO, THREE = OPTIONS


@dataclass(frozen=True)
class Scale:
    workload: Workload
    large: Workload
    crowds: Sequence[int]
    """Workers of the part that varies them."""
    workers: int
    """Of all others."""
    repetitions: int
    """Of the main table; the other parts have ``fewer``."""
    fewer: int
    garbage: int
    ingested: int
    updates: int
    most_cases: int
    """Of a part."""


FULL = Scale(
    workload=Workload(1024, 11),
    large=Workload(8192, 10),
    crowds=(20, 100, 300, 500),
    workers=300,
    repetitions=5,
    fewer=3,
    garbage=1_000_000,
    ingested=4_000_000,
    updates=1_000_000,
    most_cases=100,
)
QUICK = Scale(
    workload=Workload(128, 4),
    large=Workload(256, 4),
    crowds=(10, 24),
    workers=24,
    repetitions=1,
    fewer=1,
    garbage=2000,
    ingested=20_000,
    updates=2000,
    most_cases=2,
)


@dataclass
class FileBench:
    """A server with the crowd of a run, and what was measured so far."""

    server: Any
    arena: Arena
    scale: Scale
    rows: list[Row] = field(default_factory=list)
    curves: list[Curve] = field(default_factory=list)
    runs: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """What a table of the documentation is made of: for each part, factors and measures of each case."""

    def contend(self, part: str, cases: Sequence[ContentionCase], repetitions: int) -> dict[str, list[ContentionRun]]:
        """Run the cases by turns, so that what else the machine does meets all of them alike."""
        runs: dict[str, list[ContentionRun]] = {case.label: [] for case in cases}
        for number in range(repetitions):
            for case in cases if number % 2 == 0 else reversed(cases):
                run = self.arena.run(case)
                runs[case.label].append(run)
                said = "".join(f"; {problem.upper()}" for problem in run.problems)
                say(f"{part}: {case.label}: {run.wall:.2f} s, {run.failed} failed{said}")
        for case in cases:
            self.keep(part, case, runs[case.label])
        return runs

    def keep(self, part: str, case: ContentionCase, runs: Sequence[ContentionRun]) -> None:
        measures, last = medians(runs), runs[-1]
        self.runs.setdefault(part, []).append(
            {
                "label": case.label,
                "factors": case.factors(),
                "repetitions": len(runs),
                "measures": measures,
                "problems": sorted({problem for run in runs for problem in run.problems}),
                "waits": last.watch.shares,
            }
        )
        failed, p99 = targets_of(case, self.scale.workers)
        name = f"{part}: {case.label}"
        self.rows += [
            Row(f"{name}: jobs", BACKEND, measures["jobs_per_s"]["median"], "jobs/s"),
            Row(f"{name}: wait, p99", BACKEND, measures["p99_s"]["median"], "s", target=p99),
            Row(
                f"{name}: failed jobs, most of {len(runs)} runs", BACKEND, measures["failed_jobs"]["max"], "jobs", target=failed
            ),
            Row(
                f"{name}: wrong results and violations",
                BACKEND,
                measures["violations"]["max"] + sum(len(run.problems) for run in runs),
                "problems",
                target=at_most(0),
            ),
        ]


def targets_of(case: ContentionCase, workers: int) -> tuple[Target | None, Target | None]:
    """For failed jobs and for the wait: of options 2 and 3, with 3 attempts and the usual number of workers."""
    if case.option.number == 1 or case.attempts > 3 or case.workers != workers:
        return None, None
    return at_most(0), at_most(P99_SECONDS)


def main(arguments: list[str]) -> int:
    repetitions = next((int(each.partition("=")[2]) for each in arguments if each.startswith("--repetitions=")), None)
    own = ("--merge", "--repetitions=")
    options = read_options([each for each in arguments if not each.startswith(own)], PARTS)
    scale = QUICK if options.is_quick else FULL
    if repetitions is not None:
        scale = replace(scale, repetitions=repetitions, fewer=repetitions)
    silence_retries()
    sys.path.append(str(ROOT / "tests"))
    from servers.postgresql import PostgresqlServer

    with working_folder() as folder:
        say("starting a PostgreSQL server with fsync")
        with PostgresqlServer(folder=folder, is_synced=True, settings=SERVER_SETTINGS) as server, CommitCrowd() as crowd:
            bench = FileBench(server, Arena(server, crowd), scale)
            for part in PARTS:
                is_long = part in LONG_PARTS or (part == "rows" and options.is_quick)
                if part in options.only or (not is_long and options.wants(part)):
                    say(f"part {part}")
                    MEASURES[part](bench)
            versions, settings = server_versions(server), server_settings(server)
    print(show(bench.rows))
    kept = keep_results(bench, options, versions, settings, is_merged="--merge" in arguments)
    print(f"\nwritten to {kept}")
    return 0


def contention_cases(part: str, scale: Scale) -> tuple[list[ContentionCase], int]:
    """The cases of a part, and how often each is run."""
    case = partial(ContentionCase, workload=scale.workload, workers=scale.workers)
    few = scale.fewer
    if part == "options":
        cases = [case(option=each, isolation=level) for each in OPTIONS for level in (SERIALIZABLE, REPEATABLE, COMMITTED)]
        looking = [case(option=each.looking(), isolation=level) for each in (TWO, THREE) for level in (SERIALIZABLE, COMMITTED)]
        return [*cases, case(option=THREE, isolation=SHIPPED), *looking], scale.repetitions
    if part == "attempts":
        cases = [case(option=each, attempts=attempts) for attempts in (3, 5) for each in OPTIONS]
        return [*cases, *(case(option=each, isolation=COMMITTED, attempts=3) for each in OPTIONS)], few
    if part == "workers":
        options = [(each, SERIALIZABLE) for each in (ONE, SALTED, THREE)] + [(each, COMMITTED) for each in (ONE, TWO, THREE)]
        return [case(option=option, isolation=level, workers=crowd) for crowd in scale.crowds for option, level in options], few
    if part == "queue":
        options = [(ONE, COMMITTED), (THREE, SERIALIZABLE), (THREE, COMMITTED)]
        return [case(option=option, isolation=level, cap=cap) for cap in (4, 8, 16, 32) for option, level in options], few
    if part == "batches":
        levels = (SERIALIZABLE, REPEATABLE, COMMITTED)
        return [case(option=THREE, isolation=level, cap=4, batch=batch) for batch in (1, 10, 100) for level in levels], few
    if part == "collection":
        cases = [case(option=each, collection=to) for each in (TWO, THREE) for to in ("", SERIALIZABLE, COMMITTED)]
        return [*cases, *(case(option=THREE, isolation=COMMITTED, collection=to) for to in ("", COMMITTED))], few
    if part == "keys":
        turned = [each.turned() for each in (TWO, THREE)]
        return [case(option=option, isolation=level) for option in turned for level in (SERIALIZABLE, COMMITTED)], few
    large = partial(case, workload=scale.large, workers=min(200, scale.workers))
    return [large(option=THREE), large(option=TWO, isolation=COMMITTED), large(option=THREE, isolation=COMMITTED)], 1


def contend(part: str, bench: FileBench) -> None:
    cases, repetitions = contention_cases(part, bench.scale)
    cases = cases[-bench.scale.most_cases :]
    runs = bench.contend(part, cases, repetitions)
    if part in CURVES:
        bench.curves.append(CURVES[part]({case: runs[case.label] for case in cases}))


CURVES = {"options": wait_curve, "workers": worker_curve, "queue": committer_curve}


def collect_garbage(bench: FileBench) -> None:
    bench.rows += garbage_rows(bench.server, bench.scale.garbage)


def commit_by_queue(bench: FileBench) -> None:
    workload, repetitions = bench.scale.workload, bench.scale.repetitions
    bench.rows += queue_rows(bench.server, leaves=workload.leaves, files=workload.files, repetitions=repetitions)


def ingest(bench: FileBench) -> None:
    from benchmarks.file_rows import ingest_rates  # starts Spark when it is measured, and not before

    bench.rows += ingest_rates(rows=bench.scale.ingested, rounds=bench.scale.fewer)


def update_for_long(bench: FileBench) -> None:
    rows, curves = measure_updates(bench.server, bench.scale.updates)
    bench.rows += rows
    bench.curves += curves


MEASURES: dict[str, Callable[[FileBench], None]] = {
    **{part: partial(contend, part) for part in CONTENTION},
    "broker": commit_by_queue,
    "garbage": collect_garbage,
    "rows": ingest,
    "million": update_for_long,
}


def server_versions(server: Any) -> dict[str, str]:
    [(version,)] = server.execute("SHOW server_version")
    return {"PostgreSQL": version.partition(" ")[0], "psycopg": psycopg.__version__}


def server_settings(server: Any) -> dict[str, str]:
    """Those that matter here, and all that are not as shipped."""
    rows = server.execute(
        "SELECT name, setting || coalesce(unit, '') FROM pg_settings WHERE name = ANY(%s)"
        " OR (source NOT IN ('default', 'override') AND name !~ '^(lc_|log_|listen|unix_|port|Time|Date|default_text|dynamic)')",
        (list(SHOWN_SETTINGS),),
    )
    return dict(sorted(rows))


def keep_results(
    bench: FileBench, options: Options, versions: dict[str, str], server: dict[str, str], *, is_merged: bool
) -> Path:
    """Write the figures; merged, they take the place of those of the same parts in the last full run."""
    settings: dict[str, Any] = {
        "load_before": options.load,
        "server": server,
        "load_processes": PROCESSES,
        "contention": bench.runs,
    }
    rows, curves = list(bench.rows), list(bench.curves)
    kept = read_results(SUITE) if is_merged else None
    if kept is not None:
        measured = {row.case.partition(":")[0] for row in rows}
        rows = [row for row in map(row_of, kept["rows"]) if row.case.partition(":")[0] not in measured] + rows
        names = {curve.name for curve in curves}
        curves = [curve for curve in map(curve_of, kept["curves"]) if curve.name not in names] + curves
        settings["contention"] = kept["settings"]["contention"] | bench.runs
        settings["load_before"] = max(options.load, kept["settings"]["load_before"])
    rows.sort(key=lambda row: PARTS.index(row.case.partition(":")[0]))
    return write_results(
        SUITE,
        rows,
        settings=settings,
        is_quick=options.is_quick or (bool(options.only) and not is_merged),
        versions=versions,
        folder=options.into,
        curves=curves,
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
