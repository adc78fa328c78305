"""Nessie's API: what its clients call most, beside constant answers, and commits of tables beside those of Iceberg REST."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from statistics import median
from urllib.parse import quote

from benchmarks.catalog import plant_catalog
from benchmarks.http_calls import HttpConnection, HttpReply, request_bytes, run_scripts
from benchmarks.places import Place
from benchmarks.report import Row, at_least_of_floor, at_most_of_floor, say
from benchmarks.served_lakes import CATALOG, CONSTANT, PREFIX, REALM, make_active_realm
from benchmarks.server_bench import MILLIS, ServedLake, ServerBench, repeat
from benchmarks.storms import Storm
from benchmarks.tables import table_keys
from benchmarks.timing import timed

from headwater.catalogs import Catalog, ContentKey, IcebergTable, Namespace, Put
from headwater.realms import RealmRegistry
from headwater.store import Store, open_store

__all__ = ["measure_nessie"]

_API = f"/nessie/{REALM}/{CATALOG}/api"
_TOP_NAMESPACES = "entry.contentType == 'NAMESPACE' && size(entry.keyElements) == 1"
"""How Iceberg's Java client asks for the namespaces at the top."""
_LISTED_FEW, _LISTED_MANY = 1000, 30_000
_ASKED = 9


def measure_nessie(bench: ServerBench, place: Place) -> Iterator[Row]:
    """The floors: a constant answer of a load's size, a change of a namespace by Iceberg REST, a listing among few tables."""
    yield from _measure_reads(bench, place)
    yield from _measure_commits(bench, place)
    yield from _measure_listings(bench, place)


def _measure_reads(bench: ServerBench, place: Place) -> Iterator[Row]:
    scale, lake = bench.scale, bench.make_lake(place, 1)
    with open_store(lake.url) as store:
        head = _open_catalog(store).branch("main").hash
    asked = json.dumps({"requestedKeys": [{"elements": list(lake.keys[0].elements)}]}).encode()
    requests = {
        "a constant answer": request_bytes("GET", CONSTANT),
        "where main is": request_bytes("GET", f"{_API}/v2/trees/main?fetch=MINIMAL"),
        "one content of main@hash": request_bytes("POST", f"{_API}/v2/trees/main%40{head}/contents", body=asked),
    }
    with bench.serve(lake) as server:
        storms = bench.by_turns(
            {
                name: partial(bench.run, repeat, server.port, request, 200, scale.clients, scale.seconds)
                for name, request in requests.items()
            }
        )
    assert not any(each.failures for each in storms.values()), storms
    floor = storms.pop("a constant answer")
    for name, storm in storms.items():
        yield Row(f"nessie: {name}", place.name, storm.rate, "reads/s", floor.rate, at_least_of_floor(0.5))
        waits = [each.percentile(0.99) * MILLIS for each in (storm, floor)]
        yield Row(f"nessie: {name}: wait, p99", place.name, waits[0], "ms", waits[1])


@dataclass
class _AlternatingRequest:
    """Two requests by turns, so that each changes something."""

    requests: tuple[bytes, bytes]
    sent: int = field(default=0)

    def next_request(self) -> bytes:
        self.sent += 1
        return self.requests[self.sent % 2]

    def take_reply(self, reply: HttpReply) -> str | None:
        return None if reply.status == 200 else str(reply.status)


def _measure_commits(bench: ServerBench, place: Place) -> Iterator[Row]:
    """Each client puts its own table by turns at two metadata files of 20 snapshots, which the server reads, checks and stores."""
    scale = bench.scale
    lake = bench.make_lake(place, scale.clients)
    with open_store(lake.url) as store:
        puts = _table_commits(store, lake)
    spaces = sorted({key.elements[0] for key in lake.keys})
    changes = [
        _two(f"/iceberg/v1/{PREFIX}/namespaces/{quote(spaces[number % len(spaces)])}/properties", number)
        for number in range(scale.clients)
    ]
    with bench.serve(lake, is_loaded=False) as server:
        storms = bench.by_turns(
            {
                "puts": partial(bench.run, _run_alternating, server.port, puts, scale.seconds),
                "changes": partial(bench.run, _run_alternating, server.port, changes, scale.seconds),
            }
        )
    assert not any(each.failures for each in storms.values()), storms
    floor, storm = storms["changes"], storms["puts"]
    case = f"nessie: {scale.clients} clients, each commits to its own table of 20 snapshots"
    yield Row(case, place.name, storm.rate, "commits/s", floor.rate)


def _table_commits(store: Store, lake: ServedLake) -> list[tuple[bytes, bytes]]:
    catalog = _open_catalog(store)
    made = []
    for key, content in catalog.get_contents(None, lake.keys).items():
        assert isinstance(content, IcebergTable)
        first = content.metadata_location
        second = first.replace(".metadata.json", "-again.metadata.json")
        with open(first.removeprefix("file://"), "rb") as file, open(second.removeprefix("file://"), "wb") as copy:  # noqa: PTH123
            copy.write(file.read())
        made.append((_commit(key, content, first), _commit(key, content, second)))
    return made


def _commit(key: ContentKey, content: IcebergTable, place: str) -> bytes:
    body = {
        "type": "ICEBERG_TABLE",
        "id": str(content.id),
        "metadataLocation": place,
        "snapshotId": content.snapshot_id,
        "schemaId": content.schema_id,
        "specId": content.spec_id,
        "sortOrderId": content.sort_order_id,
    }
    put = {"type": "PUT", "key": {"elements": list(key.elements)}, "content": body}
    text = json.dumps({"commitMeta": {"message": "put"}, "operations": [put]}).encode()
    return request_bytes("POST", f"{_API}/v1/trees/branch/main/commit", body=text)


def _two(path: str, number: int) -> tuple[bytes, bytes]:
    bodies = [json.dumps({"updates": {f"p{number}": value}, "removals": []}).encode() for value in ("a", "b")]
    first, second = (request_bytes("POST", path, body=body) for body in bodies)
    return first, second


def _run_alternating(port: int, pairs: list[tuple[bytes, bytes]], seconds: float) -> Storm:
    return run_scripts(port, [_AlternatingRequest(pair) for pair in pairs], seconds)


def _measure_listings(bench: ServerBench, place: Place) -> Iterator[Row]:
    few, many = (_listing_seconds(bench, place, count) for count in (_LISTED_FEW, _LISTED_MANY))
    case = f"nessie: namespaces at the top by an expression, beside {_LISTED_MANY:,} tables"
    yield Row(case, place.name, many * MILLIS, "ms", few * MILLIS, at_most_of_floor(3))


def _listing_seconds(bench: ServerBench, place: Place, tables: int) -> float:
    url = place.url(bench.new_name())
    with open_store(url) as store:
        make_active_realm(store)
        say(f"{place.name}: a catalog of {tables:,} tables")
        catalog = plant_catalog(
            RealmRegistry(store).open_realm(REALM), [ContentKey.from_index(key) for key in table_keys(tables)]
        )
        catalog.commit(None, [Put(ContentKey.of(f"top{number}"), Namespace()) for number in range(10)])
    lake = ServedLake(url, bench.folder, [])
    request = request_bytes("GET", f"{_API}/v2/trees/main/entries?filter={quote(_TOP_NAMESPACES)}")
    with bench.serve(lake, is_loaded=False) as server, closing(HttpConnection(server.port)) as line:

        def ask() -> None:
            reply = line.call(request)
            assert reply.status == 200 and reply.json["entries"], reply.body[:300]

        ask()
        return median(timed(ask) for _ in range(_ASKED))


def _open_catalog(store: Store) -> Catalog:
    return Catalog.open(RealmRegistry(store).open_realm(REALM), CATALOG)
