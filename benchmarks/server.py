"""The server: loads, listings and commits over HTTP beside what the same costs without, other catalogs, many connections, the start, and
what it costs that callers prove who they are.

Run it with ``make bench SUITE=server``; ``--quick`` is small and shows that it works, ``--only=load,pages`` measures some parts, and
``--merge`` puts their figures into the results of the last full run.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from statistics import median

from benchmarks.catalog import plant_catalog
from benchmarks.disk import working_folder
from benchmarks.http_calls import HttpConnection, request_bytes
from benchmarks.options import Options, others_are_there, read_options
from benchmarks.places import Place, open_places
from benchmarks.report import Row, at_least_of_floor, at_most_of_floor, read_results, row_of, say, show, write_results
from benchmarks.served_lakes import CONSTANT, PREFIX, REALM, UNCHANGED, make_active_realm, serve_apart
from benchmarks.server_bench import FULL, MILLIS, QUICK, ServerBench, load_process, repeat
from benchmarks.server_crowds import measure_commits, measure_connections, measure_rivals, measure_start
from benchmarks.server_nessie import measure_nessie
from benchmarks.server_rights import measure_decisions, measure_identity, measure_listings
from benchmarks.tables import table_keys
from benchmarks.timing import timed

from headwater.catalogs import ContentKey
from headwater.realms import RealmRegistry
from headwater.store import open_store

SUITE = "server"
DATABASES = ("sqlite", "postgresql")
PAGE = 50


def main(arguments: list[str]) -> int:
    options = read_options([each for each in arguments if each != "--merge"], tuple(MEASURES))
    is_merged = "--merge" in arguments
    parts = [part for part in MEASURES if options.wants(part)]
    wanted = {kind for part in parts for kind in MEASURES[part][1] if kind in options.backends}
    if not others_are_there():
        return 0
    rows: list[Row] = []
    versions: dict[str, str] = {}
    with working_folder() as folder, open_places(folder, wanted) as places, load_process() as load:
        bench = ServerBench(folder, load, QUICK if options.is_quick else FULL)
        for part in parts:
            rows += measure(bench, part, places)
        for place in places:
            versions |= place.versions()
    print(show(rows))
    is_part = options.is_quick or bool(options.only) or not set(DATABASES) <= set(options.backends)
    kept_rows, load_before = merged(rows, options) if is_merged else (rows, options.load)
    kept = write_results(
        SUITE,
        kept_rows,
        settings={"load_before": load_before, "seconds": bench.scale.seconds, "turns": bench.scale.turns},
        is_quick=is_part and not is_merged,
        versions=versions,
        folder=options.into,
    )
    print(f"\nwritten to {kept}")
    return 0


def measure(bench: ServerBench, part: str, places: Sequence[Place]) -> Iterator[Row]:
    """The rows of a part, on each of the databases that it is about."""
    function, kinds = MEASURES[part]
    for place in places:
        if place.name in kinds:
            say(f"{place.name}: {part}")
            yield from function(bench, place)


def merged(rows: Sequence[Row], options: Options) -> tuple[list[Row], float]:
    """These rows in the place of those of the same parts in the last full run, and the larger load before either."""
    kept = read_results(SUITE) or {"rows": [], "settings": {"load_before": 0}}
    measured = {_part_of(row) for row in rows}
    others = [row for row in map(row_of, kept["rows"]) if _part_of(row) not in measured]
    return sorted([*others, *rows], key=lambda row: list(MEASURES).index(_part_of(row))), max(
        options.load, kept["settings"]["load_before"]
    )


def _part_of(row: Row) -> str:
    return row.case.partition(":")[0]


def measure_loads(bench: ServerBench, place: Place) -> Iterator[Row]:
    """The floor: the same bytes from memory, by the same process, through everything that a request goes through."""
    scale, lake = bench.scale, bench.make_lake(place, 1)
    path = lake.paths[0]
    with bench.serve(lake) as server:
        loaded = server.call("GET", path)
        constant = server.call("GET", CONSTANT)
        assert loaded.status == 200 and constant.body == loaded.body, "the floor has the same bytes"
        known = {"If-None-Match": loaded.header("etag")}
        requests = {
            "load": (request_bytes("GET", path), 200),
            "answer": (request_bytes("GET", CONSTANT), 200),
            "known": (request_bytes("GET", path, headers=known), 304),
            "unchanged": (request_bytes("GET", UNCHANGED, headers=known), 304),
        }
        storms = bench.by_turns(
            {
                name: lambda request=request, status=status: bench.run(  # type: ignore[misc]
                    repeat, server.port, request, status, scale.clients, scale.seconds
                )
                for name, (request, status) in requests.items()
            }
        )
    assert not any(each.failures for each in storms.values()), storms
    size = len(loaded.body) / 1024
    for case, name, floor, share in ((f"{size:.0f} KiB", "load", "answer", 0.5), ("304", "known", "unchanged", 0.65)):
        what = f"load: a table with 20 snapshots, {case}"
        yield Row(what, place.name, storms[name].rate, "loads/s", storms[floor].rate, at_least_of_floor(share))
        yield Row(
            f"{what}: wait, p99",
            place.name,
            storms[name].percentile(0.99) * MILLIS,
            "ms",
            storms[floor].percentile(0.99) * MILLIS,
        )


def measure_pages(bench: ServerBench, place: Place) -> Iterator[Row]:
    """The floor: the same among few tables. One client asks for the first page of one namespace after the other, each twice."""
    scale = bench.scale
    few, many = (page_seconds(bench, place, count) for count in (scale.few_tables, scale.tables))
    for how, at in (("asked for the first time", 0), ("asked for again", 1)):
        case = f"pages: first {PAGE} of a namespace among {scale.tables:,} tables, {how}"
        floor, target = few[at] * MILLIS, at_most_of_floor(3)
        yield Row(case, place.name, many[at] * MILLIS, "ms", floor, target)


def page_seconds(bench: ServerBench, place: Place, tables: int) -> tuple[float, float]:
    """The median seconds of a page that is asked for the first time, and again."""
    keys = [ContentKey.from_index(key) for key in table_keys(tables)]
    url = place.url(bench.new_name())
    with open_store(url) as store:
        make_active_realm(store)
        say(f"{place.name}: a catalog of {tables:,} tables")
        plant_catalog(RealmRegistry(store).open_realm(REALM), keys)
    spaces = sorted({key.elements[:-1] for key in keys})
    chosen = random.Random(1).sample(spaces, min(bench.scale.pages, len(spaces)))
    command = [sys.executable, "-m", "headwater", "--store", url, "serve", "--listen", "127.0.0.1:0"]
    taken: tuple[list[float], list[float]] = ([], [])
    with serve_apart(command, bench.folder) as server, closing(HttpConnection(server.port)) as connection:
        for space in chosen:
            request = request_bytes("GET", f"/iceberg/v1/{PREFIX}/namespaces/{'%1F'.join(space)}/tables?pageSize={PAGE}")
            for seconds in taken:
                seconds.append(timed(lambda request=request: _listed(connection, request)))
    return median(taken[0]), median(taken[1])


def _listed(connection: HttpConnection, request: bytes) -> None:
    reply = connection.call(request)
    assert reply.status == 200 and reply.body.count(b'"name":') == PAGE, reply.body[:200]


Measure = Callable[[ServerBench, Place], Iterator[Row]]
MEASURES: dict[str, tuple[Measure, Sequence[str]]] = {
    "load": (measure_loads, DATABASES),
    "pages": (measure_pages, DATABASES[:1]),
    "commits": (measure_commits, DATABASES[1:]),
    "rivals": (measure_rivals, DATABASES[1:]),
    "connections": (measure_connections, DATABASES[:1]),
    "start": (measure_start, DATABASES),
    "decisions": (measure_decisions, DATABASES[:1]),
    "identity": (measure_identity, DATABASES),
    "listings": (measure_listings, DATABASES),
    "nessie": (measure_nessie, DATABASES),
}
"""The parts, and the databases that each is measured on."""

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
