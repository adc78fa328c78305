"""Marking and forgetting of many files without references, against the same statements by the bare driver."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any

from benchmarks.contention import mark_now
from benchmarks.reference_options import SHIPPED_OPTION, Tuning
from benchmarks.report import Row, at_least_of_floor, say
from benchmarks.timing import timed

from headwater.clock import Micros
from headwater.files.sql_references import NOT_MARKED

__all__ = ["garbage_rows"]

BATCH = 10_000
FILES, REFERENCES = "headwater.tracked_files", "headwater.file_references"
NEW_FILES = (
    f"INSERT INTO {FILES} (scope, filename, marked) SELECT scope, 'file:///data/table/' || to_char(number, 'FM0000000') || '.parquet',"
    f" {NOT_MARKED} FROM headwater.file_scopes, generate_series(1, %s) AS number"
)
FREE = f"NOT EXISTS (SELECT FROM {REFERENCES} AS r WHERE r.scope = f.scope AND r.filename = f.filename)"
MARK = (
    f"WITH d AS (SELECT f.ctid, f.filename FROM {FILES} AS f WHERE f.scope = 1 AND f.filename > %s AND f.marked = {NOT_MARKED} AND {FREE}"
    f" ORDER BY f.filename LIMIT {BATCH}), u AS (UPDATE {FILES} AS o SET marked = 1 FROM d WHERE o.ctid = d.ctid)"
    " SELECT max(filename) FROM d"
)
COLLECTABLE = f"SELECT filename FROM {FILES} AS f WHERE f.scope = 1 AND f.marked < 2 AND {FREE} ORDER BY filename"
FORGET = f"DELETE FROM {FILES} AS f WHERE f.scope = 1 AND f.filename = ANY(%s) AND {FREE}"
"""The statements that one would write. The planner is free to choose, after VACUUM ANALYZE."""
FUTURE = Micros(1 << 62)


def garbage_rows(server: Any, files: int) -> Iterator[Row]:
    """The bare driver and the library by turns, each on a database of its own with the same rows."""
    template = "garbage"
    server.execute(f'CREATE DATABASE "{template}"')
    with SHIPPED_OPTION.create_store(server.url(database=template)), server.connect(dbname=template) as admin:
        say(f"garbage: {files:,} files without references")
        admin.execute(NEW_FILES, (files,))
        admin.execute("VACUUM ANALYZE")
    seconds: dict[str, tuple[float, float]] = {}
    for name, act in (("bare", bare_seconds), ("library", library_seconds)):
        server.execute(f'CREATE DATABASE "garbage_{name}" TEMPLATE "{template}"')
        seconds[name] = act(server, f"garbage_{name}", files)
        server.execute(f'DROP DATABASE "garbage_{name}" WITH (FORCE)')
    for number, what in enumerate(("mark", "forget")):
        bare, ours = seconds["bare"][number], seconds["library"][number]
        name = f"garbage: {what} {files:,} files in batches of {BATCH:,}"
        yield Row(name, "postgresql", files / ours, "files/s", files / bare, at_least_of_floor(0.5))
        yield Row(f"{name}: seconds", "postgresql", ours, "s", bare)


def library_seconds(server: Any, database: str, files: int) -> tuple[float, float]:
    with closing(SHIPPED_OPTION.open_store(server.url(database=database), Tuning())) as store:
        marking = timed(mark_now, store)
        started = time.perf_counter()
        batch: list[str] = []
        for name in store.collectable_files(FUTURE):
            batch.append(name)
            if len(batch) == BATCH:
                store.forget_files(batch)
                batch = []
        store.forget_files(batch)
        forgetting = time.perf_counter() - started
        if not store.is_empty():
            raise RuntimeError(f"not all of {files:,} files were forgotten")
    return marking, forgetting


def bare_seconds(server: Any, database: str, files: int) -> tuple[float, float]:
    """Batches in the order of names, one transaction each."""
    with server.connect(dbname=database) as connection:
        started = time.perf_counter()
        after: str | None = ""
        while after is not None:
            (after,) = connection.execute(MARK, (after,)).fetchone()
        marking = time.perf_counter() - started
        started = time.perf_counter()
        names = [name for (name,) in connection.execute(COLLECTABLE).fetchall()]
        for first in range(0, len(names), BATCH):
            connection.execute(FORGET, (names[first : first + BATCH],))
        forgetting = time.perf_counter() - started
        if len(names) != files:
            raise RuntimeError(f"{len(names):,} of {files:,} files were collectable")
    return marking, forgetting
