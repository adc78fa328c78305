"""A real server and raw bytes: requests that end anywhere, come slowly, come at once or are none, and clients that do not read."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest
from things import Things

from certificates import trusting, write_certificate
from headwater_server.tls import CertificateFiles
from wire_server import SECONDS, WireConnection, WireServer, request, until

pytestmark = pytest.mark.long

MAKE = request("POST", "/api/v1/things", b'{"name": "a"}')
CHUNKED = b"POST /api/v1/things HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
READ = request("GET", "/api/v1/things/a")
NO_REQUESTS = [
    CHUNKED + b"zz\r\n",
    CHUNKED + b"5\r\nabcdefg\r\n",
    CHUNKED.replace(b"chunked", b"chunked, identity"),
    b"POST /api/v1/things HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
    b"POST /api/v1/things HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
    b"GET /api/v1/things HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n",
    b"GET /api/v1/things HTTP/1.1\r\n\r\n",
    b"GET /api/v1/things HTTP/1.1\r\nHost: localhost\r\nX: a\x00b\r\n\r\n",
    b"GET /a b HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 100_000,
]


@pytest.fixture
def server(serve: Callable[..., WireServer]) -> WireServer:
    return serve()


@pytest.mark.parametrize("whole", [MAKE, CHUNKED + b'5\r\n{"nam\r\n8\r\ne": "a"}\r\n0\r\n\r\n'], ids=["length", "chunked"])
def test_request_cut_at_any_byte_changes_nothing(server: WireServer, things: Things, whole: bytes) -> None:
    for end in range(len(whole)):
        with server.connect() as connection:
            connection.send(whole[:end])

    assert server.get("/api/v1/things/a").status == 200
    assert things.made == []
    with server.connect() as connection:
        assert connection.send(whole).answer().status == 200
    assert things.made == ["a"]


def test_connection_cut_after_the_request_lets_it_end(server: WireServer, things: Things) -> None:
    with server.connect() as connection:
        connection.send(request("POST", "/api/v1/things/a/wait", b""))
        assert things.begun.acquire(timeout=SECONDS)
    until(lambda: server.connections == 0)

    things.may_end.set()
    until(lambda: things.made == ["a"])


def test_pipelined_requests_are_answered_in_order(server: WireServer) -> None:
    with server.connect() as connection:
        connection.send(b"".join(request("GET", f"/api/v1/things/{name}") for name in "abc"))

        assert [connection.answer().data["thing"] for _ in "abc"] == ["a", "b", "c"]


def test_request_behind_a_refused_body_is_answered(server: WireServer) -> None:
    with server.connect() as connection:
        connection.send(request("POST", "/nowhere", b"x" * 100_000) + READ)

        assert [connection.answer().status for _ in range(2)] == [404, 200]


@pytest.mark.parametrize("method", ["GET", "HEAD", "DELETE"])
def test_body_that_nobody_reads_is_skipped(server: WireServer, method: str) -> None:
    with server.connect() as connection:
        connection.send(request(method, "/api/v1/things/a", b'{"GET / HTTP/1.1": 1}\r\n\r\n') + READ)

        assert connection.answer(method).status == (405 if method == "DELETE" else 200)
        assert connection.answer().status == 200


def test_bytes_that_are_no_request_end_the_connection(server: WireServer, things: Things) -> None:
    for sent in NO_REQUESTS:
        with server.connect() as connection:
            answer = connection.send(sent).answer()

            assert answer.status in (400, 431, 505) and answer.headers["connection"] == "close", sent[:100]
            assert answer.data["error"]["code"] == answer.status
            assert connection.rest() == b""
    assert things.made == []


def test_large_head_is_refused_in_one_packet_too(server: WireServer, things: Things) -> None:
    large = b"POST /api/v1/things HTTP/1.1\r\nHost: localhost\r\n" + b"".join(
        b"X-%d: %s\r\n" % (n, b"y" * 1000) for n in range(100)
    )

    for sent in (large + b"Content-Length: 2\r\n\r\n{}", large):
        with server.connect() as connection:
            answer = connection.send(sent).answer()

            assert (answer.status, answer.headers["connection"], connection.rest()) == (431, "close", b"")
            assert answer.data["error"]["type"] == "HeadTooLargeException"
    assert things.made == []


@pytest.mark.parametrize("version", ["0.9", "2.0", "3.7"])
def test_other_version_of_http_is_refused(server: WireServer, version: str) -> None:
    with server.connect() as connection:
        answer = connection.send(f"GET /api/v1/things/a HTTP/{version}\r\nHost: localhost\r\n\r\n".encode()).answer()

        assert (answer.status, answer.headers["connection"], connection.rest()) == (505, "close", b"")


def test_request_hidden_in_a_body_is_not_read(server: WireServer, things: Things) -> None:
    hidden = (
        b"POST /api/v1/things HTTP/1.1\r\nHost: localhost\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
        + MAKE
    )

    with server.connect() as connection:
        answer = connection.send(hidden).answer()

        assert (answer.status, answer.headers["connection"], connection.rest()) == (400, "close", b"")
    assert things.made == []


def test_large_body_is_answered_after_it_was_sent(serve: Callable[..., WireServer]) -> None:
    with serve(body_bytes=1_000_000).connect() as connection:
        answer = connection.send(request("POST", "/api/v1/things", b"x" * 1_500_000)).answer()

        assert (answer.status, answer.headers["connection"]) == (413, "close")


def test_large_body_is_not_asked_for(serve: Callable[..., WireServer]) -> None:
    head = b"POST /api/v1/things HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 999999999\r\n\r\n"

    with serve(body_bytes=1000).connect() as connection:
        assert connection.send(head).answer().status == 413


def test_body_is_asked_for(server: WireServer, things: Things) -> None:
    head, _, body = MAKE.partition(b"\r\n\r\n")

    with server.connect() as connection:
        connection.send(head + b"\r\nExpect: 100-continue\r\n\r\n")
        assert connection.socket.recv(1000).startswith(b"HTTP/1.1 100 ")
        assert connection.send(body).answer().status == 200
    assert things.made == ["a"]


def test_head_that_comes_slowly_is_not_waited_for(serve: Callable[..., WireServer]) -> None:
    with serve(head_timeout_seconds=0.3).connect() as connection:
        for byte in READ[:100]:
            try:
                connection.send(bytes([byte]))
            except ConnectionError:
                break
            time.sleep(0.05)

        assert connection.rest() == b""


def test_body_that_comes_slowly_is_not_waited_for(serve: Callable[..., WireServer], things: Things) -> None:
    with serve(body_timeout_seconds=0.3).connect() as connection:
        answer = connection.send(MAKE[:-5]).answer()

        assert (answer.status, answer.headers["connection"], connection.rest()) == (408, "close", b"")
    assert things.made == []


def test_idle_connection_is_closed(serve: Callable[..., WireServer]) -> None:
    server = serve(idle_timeout_seconds=0.5)
    with server.connect() as silent, server.connect() as used:
        assert used.send(READ).answer().status == 200

        assert [silent.rest(), used.rest()] == [b"", b""]


def test_client_that_does_not_read_is_given_up(serve: Callable[..., WireServer]) -> None:
    server = serve(body_timeout_seconds=0.3)
    with server.connect() as connection:
        connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.send(request("GET", "/api/v1/bytes/20000000") + READ + READ)
        until(lambda: server.connections == 1)

        until(lambda: server.connections == 0)


def test_client_that_reads_slowly_gets_all(serve: Callable[..., WireServer]) -> None:
    server = serve(body_timeout_seconds=0.2)
    with server.connect() as connection:
        connection.send(request("GET", "/api/v1/bytes/20000000", None, "Connection: close"))
        received = 0
        while data := connection.socket.recv(1_000_000):
            received += len(data)
            time.sleep(0.02)

    assert received > 20_000_000


def test_surplus_connection_is_answered_429(serve: Callable[..., WireServer]) -> None:
    server = serve(connections=2)
    with ExitStack() as open_ones:
        connections = [open_ones.enter_context(server.connect()) for _ in range(3)]
        until(lambda: server.connections == 3)

        assert [connection.send(READ).answer().status for connection in connections] == [200, 200, 429]


def test_overload_is_answered_at_once(serve: Callable[..., WireServer], things: Things) -> None:
    server = serve(threads=2, queue=2)
    with ExitStack() as open_ones:
        busy = [open_ones.enter_context(server.connect()) for _ in range(4)]
        for connection in busy:
            connection.send(request("POST", "/api/v1/things/a/wait", b""))
        until(lambda: server.application.admission.waiting == 2)
        surplus = [open_ones.enter_context(server.connect()).send(MAKE) for _ in range(20)]
        statuses = {connection.answer().status for connection in surplus}
        things.may_end.set()

        assert statuses == {429}
        assert [connection.answer().status for connection in busy] == [204] * 4


def test_body_does_not_wait_for_the_heads_acknowledgement(server: WireServer) -> None:
    with server.connect() as connection:
        connection.send(READ).answer()
        [accepted] = [each.transport.get_extra_info("socket") for each in server.server.server_state.connections]

        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_absolute_target_is_read(server: WireServer) -> None:
    assert server.get("http://localhost/api/v1/things/a%2Fb").data["thing"] == "a/b"


def test_tls_follows_its_files(serve: Callable[..., WireServer], tmp_path: Path) -> None:
    certificate, key = write_certificate(tmp_path, "old")
    server = serve(certificate=CertificateFiles(certificate, key))

    def read(trusted: Path) -> int:
        connection = WireConnection(server.port)
        connection.socket = trusting(trusted).wrap_socket(connection.socket, server_hostname="localhost")
        connection._file = connection.socket.makefile("rb")
        with connection:
            return connection.send(READ).answer().status

    assert read(certificate) == 200
    new_certificate, new_key = write_certificate(tmp_path, "new")
    new_key.rename(key)
    certificate.write_bytes(new_certificate.read_bytes())
    until(lambda: server.certificate is not None and not server.certificate.reread())
    assert read(new_certificate) == 200


def test_draining_server_ends_what_runs(serve: Callable[..., WireServer], things: Things) -> None:
    server = serve()
    with server.connect() as running, server.connect() as idle, server.connect() as late:
        idle.send(READ).answer()
        running.send(request("POST", "/api/v1/things/a/wait", b""))
        assert things.begun.acquire(timeout=SECONDS)
        server.application.drain.begin()

        refused = late.send(MAKE).answer()
        assert (refused.status, refused.headers["retry-after"], refused.headers["connection"]) == (503, "1", "close")
        things.may_end.set()
        assert running.answer().status == 204
        server.join()
        assert idle.rest() == b""
        with pytest.raises(ConnectionRefusedError):
            server.connect()
    assert things.made == ["a"]


def test_draining_server_gives_up_what_hangs(serve: Callable[..., WireServer], things: Things) -> None:
    server = serve(drain_timeout_seconds=0.3)
    with server.connect() as running:
        running.send(request("POST", "/api/v1/things/a/wait", b""))
        assert things.begun.acquire(timeout=SECONDS)
        server.application.drain.begin()

        server.join()
        assert server.application.admission.changes_begun == 1
