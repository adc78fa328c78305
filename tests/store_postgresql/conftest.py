"""A server of our own that may be killed and paused, the way to it that may be spoiled, and stores that are closed again."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest

from headwater.store import open_backend
from headwater.store.backends.postgresql import PostgresqlBackend
from headwater.store.urls import parse_url
from servers.postgresql import PostgresqlServer
from servers.proxy import Proxy


@pytest.fixture(scope="session")
def one_server() -> Iterator[PostgresqlServer]:
    with PostgresqlServer() as server:
        yield server


@pytest.fixture
def server(one_server: PostgresqlServer) -> Iterator[PostgresqlServer]:
    """It runs, whatever the test before did to it."""
    if not one_server.is_running:
        one_server.start()
    yield one_server
    one_server.resume()


@pytest.fixture
def schema() -> str:
    return f"test_{os.urandom(6).hex()}"


@pytest.fixture
def proxy(server: PostgresqlServer) -> Iterator[Proxy]:
    with Proxy(server.host, server.port) as proxy:
        yield proxy


@pytest.fixture
def open_at() -> Iterator[Callable[[str], PostgresqlBackend]]:
    """Opens the store at a URL; closes it in the end."""
    opened: list[PostgresqlBackend] = []

    def open_one(url: str) -> PostgresqlBackend:
        backend = open_backend(parse_url(url))
        assert isinstance(backend, PostgresqlBackend)
        opened.append(backend)
        return backend

    yield open_one
    for backend in opened:
        backend.close()


@pytest.fixture
def direct(server: PostgresqlServer, schema: str, open_at: Callable[[str], PostgresqlBackend]) -> PostgresqlBackend:
    """A store whose way to the server nobody spoils."""
    return open_at(server.url(schema))


@pytest.fixture
def patient(
    server: PostgresqlServer, schema: str, direct: PostgresqlBackend, open_at: Callable[[str], PostgresqlBackend]
) -> PostgresqlBackend:
    """The same store as ``direct``, with a time-out short enough to wait for, which leaves a busy server time to say that it gave up."""
    return open_at(server.url(schema, timeout="3s"))


@pytest.fixture
def spoiled(
    server: PostgresqlServer, proxy: Proxy, schema: str, direct: PostgresqlBackend, open_at: Callable[[str], PostgresqlBackend]
) -> PostgresqlBackend:
    """The same store as ``direct``, through the proxy, with a time-out short enough to wait for."""
    return open_at(server.url(schema, port=proxy.port, timeout="600ms", connect_timeout="2s"))
