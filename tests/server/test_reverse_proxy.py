"""A server behind the proxy of the chart's example: what goes through unharmed, and what does not arrive at all."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from nginx_proxy import NGINX, NginxProxy
from structlog.testing import capture_logs
from things import Things

from wire_server import SECONDS, WireAnswer, WireServer, until

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(NGINX is None, reason="there is no nginx: `make test-long` unpacks Debian's, where apt-get has it"),
]
LARGE = bytes(range(256)) * 4096 * 15


@pytest.fixture
def server(serve: Callable[..., WireServer]) -> WireServer:
    return serve(threads=2, queue=1, proxies="127.0.0.1", hosts="lake.example.com")


@pytest.fixture
def proxy(server: WireServer, tmp_path: Path) -> Iterator[NginxProxy]:
    with NginxProxy(tmp_path, server.port) as proxy:
        yield proxy


@pytest.mark.parametrize("mount", ["", "/lake"])
def test_path_goes_on_as_it_came(proxy: NginxProxy, mount: str) -> None:
    answer = proxy.request("GET", f"{mount}/api/v1/things/a%2Fb%1Fc%252F..%20d?pageToken=%2B")

    assert answer.data["thing"] == "a/b\x1fc%2F.. d"
    assert answer.data["query"]["pageToken"] == "+"


def test_client_is_who_the_proxy_says(proxy: NginxProxy, server: WireServer) -> None:
    with capture_logs() as lines:
        proxy.request("GET", "/api/v1/things", Host="lake.example.com", X_Forwarded_For="203.0.113.9")
        proxy.request("GET", "/api/v1/things", Authorization="none")
        until(lambda: len(lines) > 0)

    assert [(line["client"], line["status"]) for line in lines] == [("203.0.113.9", 200)]


def test_large_bodies_go_through(proxy: NginxProxy) -> None:
    taken = proxy.request("POST", "/api/v1/things/a/raw", LARGE)

    assert (taken.status, taken.content == LARGE) == (200, True)


def test_answer_is_packed_on_its_way(proxy: NginxProxy) -> None:
    path = f"/api/v1/things/{'a' * 5000}"
    plain, packed = (proxy.request("GET", path, Accept_Encoding=coding) for coding in ("identity", "gzip"))

    assert "content-encoding" not in plain.headers
    assert (packed.headers["content-encoding"], packed.headers["vary"]) == ("gzip", "Accept-Encoding")
    assert len(packed.content) < 500 and gzip.decompress(packed.content) == plain.content
    assert proxy.request("GET", path, If_None_Match=plain.headers["etag"]).status == 304


def test_refusals_go_through_as_they_are(proxy: NginxProxy, server: WireServer, things: Things) -> None:
    with ThreadPoolExecutor(3) as pool:
        busy = [pool.submit(proxy.request, "POST", "/api/v1/things/a/wait", b"") for _ in range(2)]
        assert all(things.begun.acquire(timeout=SECONDS) for _ in busy)
        busy.append(pool.submit(proxy.request, "POST", "/api/v1/things/a/wait", b""))
        until(lambda: server.application.admission.waiting == 1)
        overload = proxy.request("POST", "/api/v1/things", b'{"name": "b"}')
        things.may_end.set()

        assert [answer.result(SECONDS).status for answer in busy] == [204, 204, 204]
    unavailable = proxy.request("POST", "/api/v1/things/a/errors/unavailable", b"")
    assert (overload.status, overload.headers["retry-after"]) == (429, "1")
    assert (unavailable.status, unavailable.headers["retry-after"]) == (503, "1")
    assert unavailable.data["error"]["type"] == "ServiceUnavailableException"
    assert things.made == ["a", "a", "a"]


def test_draining_server_answers_through_kept_connections(proxy: NginxProxy, server: WireServer, things: Things) -> None:
    def change() -> WireAnswer:
        return proxy.request("POST", "/api/v1/things/a/wait", b"")

    proxy.request("GET", "/api/v1/things")
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(change)
        assert things.begun.acquire(timeout=SECONDS)
        server.application.drain.begin()
        refused = [proxy.request("POST", "/api/v1/things", b'{"name": "b"}') for _ in range(3)]
        read = proxy.request("GET", "/api/v1/things")
        things.may_end.set()

        assert (running.result(SECONDS).status, read.status) == (204, 200)
    assert {answer.status for answer in refused} == {503}
    assert things.made == ["a"]
