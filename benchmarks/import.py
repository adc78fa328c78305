"""Imports of a lake that exists: tables a second in process and on Spark, beside a loop of pyiceberg's ``register_table``.

Run it with ``make bench SUITE=import``; ``--quick`` is small and shows that it works, ``--only=rate,growth`` measures some only,
``--into=FOLDER`` keeps the figures there. The rate is told after start-up, which is shown apart and ends when one table was surveyed;
each import is a process of its own, so that its memory is known. Everything is on SQLite, as pyiceberg's SqlCatalog is here.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.disk import working_folder
from benchmarks.lakes import ENGINES, Imported, import_apart, make_lake, metadata_files
from benchmarks.options import Options, read_options
from benchmarks.pictures import Curve, Series
from benchmarks.report import Row, at_least_of_floor, at_most, say, show, write_results
from benchmarks.timing import median

from headwater.settings import Settings
from headwater_workers.pipeline import find_engine

SUITE = "import"
PARTS = ("rate", "growth")
BACKEND = "sqlite"
MIB = 1024 * 1024
TABLES_PER_COMMIT = 500


@dataclass(frozen=True)
class Scale:
    sizes: tuple[int, ...]
    """Tables of the lakes; the rate is told over ``compared`` of them, growth over all."""
    compared: int
    registered: int
    """Of the lake's tables, how many pyiceberg registers: its loop does not depend on their number."""
    turns: int
    """How often engines and loop take turns over the lake that is compared; the median of each is told."""


FULL = Scale(sizes=(2_000, 10_000, 50_000), compared=10_000, registered=2_000, turns=3)
QUICK = Scale(sizes=(100, 200), compared=200, registered=50, turns=1)


def main(arguments: list[str]) -> int:
    options = read_options(arguments, PARTS)
    scale = QUICK if options.is_quick else FULL
    rows: list[Row] = []
    curves: list[Curve] = []
    engines = [engine for engine in ENGINES if engine == "process" or find_engine(Settings()).is_spark]
    if len(engines) < len(ENGINES):
        say(f"Spark is left out: {find_engine(Settings())}")
    with working_folder() as folder:
        rows += measure(folder, scale, options, engines, curves)
    print(show(rows))
    settings = {"sizes": scale.sizes, "registered": scale.registered, "turns": scale.turns, "load_before": options.load}
    kept = write_results(SUITE, rows, settings=settings, is_quick=options.is_part, folder=options.into, curves=curves)
    print(f"\nwritten to {kept}")
    return 0


def measure(folder: Path, scale: Scale, options: Options, engines: list[str], curves: list[Curve]) -> Iterator[Row]:
    """Every size by every engine, and pyiceberg's loop over the lake that is compared, in the same run."""
    sizes = [size for size in scale.sizes if options.wants("growth") or size == scale.compared]
    measured: dict[str, dict[int, Imported]] = {engine: {} for engine in engines}
    floors: list[float] = []
    for size in sizes:
        say(f"making a lake of {size:,} tables")
        lake = make_lake(folder / f"lake-{size}", size)
        is_compared = size == scale.compared and options.wants("rate")
        found: dict[str, list[Imported]] = {engine: [] for engine in engines}
        for turn in range(scale.turns if is_compared else 1):
            for engine in engines:
                say(f"{engine}: {size:,} tables")
                found[engine].append(import_apart(engine, f"sqlite:///{folder}/{engine}-{size}-{turn}.db", lake))
            if is_compared:
                say(f"pyiceberg: {scale.registered:,} of them")
                floors.append(registered_per_second(folder / f"pyiceberg-{turn}.db", lake, scale.registered))
        for engine, done in found.items():
            measured[engine][size] = sorted(done, key=_per_table)[len(done) // 2]
    floor = median(floors) if floors else None
    for engine, by_size in measured.items():
        if options.wants("rate"):
            yield from rates(engine, by_size[scale.compared], floor)
        if options.wants("growth"):
            yield from growth(engine, by_size)
    if options.wants("growth"):
        curves.append(_curve(measured))


def registered_per_second(file: Path, lake: Path, tables: int) -> float:
    """pyiceberg's own way to take over tables that exist: each by its metadata file, each in a transaction."""
    from pyiceberg.catalog.sql import SqlCatalog

    files = list(metadata_files(lake))[:tables]
    catalog = SqlCatalog("bench", uri=f"sqlite:///{file}", warehouse=lake.as_uri())
    try:
        for namespace in sorted({name[0] for name, _ in files}):
            catalog.create_namespace(namespace)
        started = time.perf_counter()
        for name, file in files:
            catalog.register_table(name, file.as_uri())
        return len(files) / (time.perf_counter() - started)
    finally:
        catalog.close()


def rates(engine: str, done: Imported, floor: float | None) -> Iterator[Row]:
    case = f"{engine}, {done.tables:,} tables"
    seconds = done.survey + done.commit
    yield Row(f"import, {case}: after start-up", BACKEND, done.tables / seconds, "tables/s", floor, at_least_of_floor(3))
    yield Row(f"start-up, {case}", BACKEND, done.start, "s")
    yield Row(f"import, {case}: with start-up", BACKEND, done.tables / (done.start + seconds), "tables/s", floor)
    yield Row(f"survey alone, {case}", BACKEND, done.tables / done.survey, "tables/s")
    yield Row(f"claims and commits alone, {case}", BACKEND, done.tables / done.commit, "tables/s")
    yield Row(f"run again, {case}", BACKEND, done.tables / done.again, "tables/s")
    yield Row(f"commits, {case}", BACKEND, done.commits, "commits", None, at_most(-(-done.tables // TABLES_PER_COMMIT)))
    yield Row(f"commits when run again, {case}", BACKEND, done.commits_again, "commits", None, at_most(0))


def growth(engine: str, by_size: Mapping[int, Imported]) -> Iterator[Row]:
    """How time per table and memory change from the smallest lake to the largest."""
    first, last = by_size[min(by_size)], by_size[max(by_size)]
    case = f"{engine}: {last.tables:,} by {first.tables:,} tables"
    yield Row(f"time per table, {case}", BACKEND, _per_table(last) / _per_table(first), "times", None, at_most(1.3))
    for done in by_size.values():
        yield Row(f"peak memory above idle, {engine}, {done.tables:,} tables", BACKEND, (done.peak - done.idle) / MIB, "MiB")
    middle = sorted(by_size)[-2]
    grown = (last.peak - last.idle) / (by_size[middle].peak - by_size[middle].idle)
    case = f"{engine}: {last.tables:,} by {middle:,} tables"
    yield Row(f"peak memory above idle, {case}", BACKEND, grown, "times", None, at_most(1.3))


def _per_table(done: Imported) -> float:
    return (done.survey + done.commit) / done.tables


def _curve(measured: Mapping[str, Mapping[int, Imported]]) -> Curve:
    series = [
        Series(engine, [(float(size), done.tables / (done.survey + done.commit)) for size, done in by_size.items()])
        for engine, by_size in measured.items()
    ]
    return Curve(name="import", title="Import of a lake, SQLite", x="tables", y="tables a second", series=series, x_scale="log")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
