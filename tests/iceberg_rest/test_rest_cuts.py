"""Connections that end at any byte of a request or an answer: a change happens whole or not at all, and its repeat settles it."""

from __future__ import annotations

import json
import logging
import re
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import structlog
from rest_actions import PREFIX, TABLES, append_body, properties_body
from rest_caller import RestCaller, new_key

from headwater import Settings, Store
from headwater.catalogs import Catalog
from headwater.clock import SystemClock
from headwater_server.call import ServedStore
from headwater_server.iceberg_rest import iceberg_table
from headwater_server.server_application import ServerApplication
from tiers import Sample, long_but_for
from wire_server import WireAnswer, WireConnection, WireServer, request, until

SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "id", "type": "long", "required": True}]}
STRIDE = 7
RESET = struct.pack("ii", 1, 0)
GAUGE = re.compile(rb"^headwater_server_(requests_running|requests_waiting|connections|body_bytes) ([\d.]+)$", re.MULTILINE)


@dataclass
class CutServer:
    """A served lake with the tables ``orders`` and ``lines``, and bodies of changes that were not made yet."""

    wire: WireServer
    lake: Catalog
    documents: dict[str, Any]
    numbers: dict[str, int] = field(default_factory=lambda: {"orders": 0, "lines": 0})

    @property
    def commits(self) -> int:
        head = self.lake.resolve("main")
        return 0 if head is None else head.commit.seq

    def append(self) -> bytes:
        return _post(f"{TABLES}/orders", self._append("orders"))

    def creation(self) -> bytes:
        return _post(TABLES, {"name": f"new-{self.commits}", "schema": SCHEMA})

    def transaction(self) -> bytes:
        changes = {"lines": self._append("lines"), "orders": properties_body(owner=f"{self.commits}")}
        identified = [{"identifier": {"namespace": ["sales"], "name": name}, **change} for name, change in changes.items()]
        return _post(f"{PREFIX}/transactions/commit", {"table-changes": identified})

    def chunked(self) -> bytes:
        """An append in chunks of 100 bytes, as Java sends them."""
        body = json.dumps(self._append("orders")).encode()
        chunks = [body[start : start + 100] for start in range(0, len(body), 100)]
        head = request("POST", f"{TABLES}/orders", None, "Transfer-Encoding: chunked", _key())
        return head + b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\n\r\n"

    def settle(self, raw: bytes) -> WireAnswer:
        """Send a request as a client does that heard nothing; the numbers of snapshots go on."""
        with self.wire.connect() as connection:
            return connection.send(raw).answer("POST")

    def quiet(self) -> None:
        """Wait until nobody is connected any more, and nothing runs."""
        until(lambda: self.wire.connections == 0 and self.wire.application.admission.running == 0)

    def gauges(self) -> dict[str, float]:
        content = self.wire.get("/metrics").content
        return {name.decode(): float(value) for name, value in GAUGE.findall(content)}

    def _append(self, name: str) -> dict[str, Any]:
        """An append to what the table has now, whether or not the one before happened."""
        with self.wire.connect() as connection:
            document = connection.send(request("GET", f"{TABLES}/{name}")).answer().data
        main = document["metadata"].get("refs", {}).get("main", {}).get("snapshot-id")
        self.numbers[name] += 1
        number = document["metadata"]["last-sequence-number"] + 1
        return append_body(document, 1000 + self.numbers[name], after=main, number=number)


def _key() -> str:
    return f"Idempotency-Key: {new_key()}"


def _post(path: str, body: Any) -> bytes:
    return request("POST", path, json.dumps(body).encode(), "Content-Type: application/json", _key())


CHANGES: dict[str, Callable[[CutServer], bytes]] = {
    "append": CutServer.append,
    "creation": CutServer.creation,
    "transaction": CutServer.transaction,
    "chunked append": CutServer.chunked,
}


@pytest.fixture
def server(store: Store, lake: Catalog, sales: RestCaller) -> Iterator[CutServer]:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    documents = {
        name: sales.post("namespaces/sales/tables", {"name": name, "schema": SCHEMA}).json for name in ("orders", "lines")
    }
    settings = Settings(server_threads=4)
    application = ServerApplication(ServedStore(store), [iceberg_table()], settings=settings, clock=SystemClock(), version="1")
    with WireServer(application, settings) as wire:
        yield CutServer(wire, lake, documents)
    application.close()


def end(connection: WireConnection, *, abruptly: bool) -> None:
    """Close a connection; abruptly as when a process dies, or a proxy gives up: nothing more is read or sent."""
    if abruptly:
        connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    connection.close()


def once(raw: bytes) -> bytes:
    """A request whose answer ends its connection."""
    return raw.replace(b"Host:", b"Connection: close\r\nHost:", 1)


def places(raw: bytes) -> list[int]:
    """Where a request is cut: at every byte around its line, the end of its head and its own end, and here and there between."""
    edges = (0, raw.index(b"\r\n"), raw.index(b"\r\n\r\n") + 4, len(raw))
    near = {place for edge in edges for place in range(edge - 3, edge + 4)}
    return sorted(place for place in near | set(range(0, len(raw), STRIDE)) if 0 <= place <= len(raw))


@pytest.mark.parametrize("change", long_but_for({"append"}, CHANGES))
def test_request_that_is_cut_happens_whole_or_not(server: CutServer, change: str, sample: Sample) -> None:
    raw = CHANGES[change](server)
    for place in sample.one_in(60, places(raw)):
        before = server.commits
        connection = server.wire.connect().send(raw[:place])
        end(connection, abruptly=place % 2 == 0)
        server.quiet()
        assert server.commits - before in ((0,) if place < len(raw) else (0, 1)), f"cut at {place} of {len(raw)}"
        if place % 5 == 0 or place == len(raw):
            assert server.settle(raw).status in (200, 204)
            assert server.settle(raw).status in (200, 204)
            assert server.commits == before + 1, f"cut at {place} of {len(raw)}"
            raw = CHANGES[change](server)


@pytest.mark.parametrize("change", long_but_for({"append"}, CHANGES))
def test_answer_that_is_cut_is_given_again(server: CutServer, change: str, sample: Sample) -> None:
    with server.wire.connect() as connection:
        length = len(connection.send(once(CHANGES[change](server))).rest())
    for place in sample.one_in(40, [*range(4), *range(4, length, 4 * STRIDE), length - 1]):
        raw, before = CHANGES[change](server), server.commits
        connection = server.wire.connect().send(once(raw))
        connection.read(place)
        end(connection, abruptly=place % 2 == 0)
        server.quiet()
        assert server.commits - before in ((0, 1) if place == 0 else (1,)), f"cut at {place} of {length}"
        assert server.settle(raw).status in (200, 204)
        assert server.commits == before + 1, f"cut at {place} of {length}"


def test_cut_connections_leave_nothing_behind(server: CutServer) -> None:
    raw = server.append()
    assert server.settle(raw).status == 200
    threads = threading.active_count()
    for place in range(0, len(raw), 10 * STRIDE):
        end(server.wire.connect().send(raw[:place]), abruptly=place % 2 == 0)

    nothing = dict.fromkeys(("requests_running", "requests_waiting", "connections", "body_bytes"), 0)
    until(lambda: server.gauges() | {"connections": 0} == nothing)  # a body is given back a moment after its connection is gone
    assert threading.active_count() <= threads + server.wire.settings.server_threads
