"""A server of our own that may be killed and paused, the way to it that may be spoiled, and stores that are closed again."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest

from headwater.store import open_backend
from headwater.store.backends.mongodb import MongodbBackend
from headwater.store.urls import parse_url
from servers.mongodb import MongodbServer
from servers.proxy import Proxy
from specimens import eventually

Open = Callable[[str], MongodbBackend]


@pytest.fixture(scope="session")
def one_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MongodbServer]:
    server = MongodbServer(tmp_path_factory.mktemp("mongodb"))
    server.start()
    yield server
    server.stop()


@pytest.fixture
def server(one_server: MongodbServer) -> MongodbServer:
    """It runs, whatever the test before did to it."""
    if not one_server.is_running:
        one_server.start()
    return one_server


@pytest.fixture
def our_server(server: MongodbServer) -> MongodbServer:
    """One that may be killed, paused and made to fail."""
    if not server.is_ours:
        pytest.skip("the server of HEADWATER_TEST_MONGODB is not ours to disturb")
    return server


@pytest.fixture
def database(server: MongodbServer) -> Iterator[str]:
    name = f"test_{os.urandom(6).hex()}"
    yield name
    if not server.is_ours:
        server.drop(name)


@pytest.fixture
def proxy(our_server: MongodbServer) -> Iterator[Proxy]:
    with Proxy("127.0.0.1", our_server.port) as proxy:
        yield proxy


@pytest.fixture
def open_at() -> Iterator[Open]:
    """Opens the store at a URL; closes it in the end."""
    opened: list[MongodbBackend] = []

    def open_one(url: str) -> MongodbBackend:
        backend = open_backend(parse_url(url))
        assert isinstance(backend, MongodbBackend)
        opened.append(backend)
        return backend

    yield open_one
    for backend in opened:
        backend.close()


@pytest.fixture
def direct(server: MongodbServer, database: str, open_at: Open) -> MongodbBackend:
    """A store whose way to the server nobody spoils."""
    return open_at(server.url(database))


@pytest.fixture
def by_proxy(our_server: MongodbServer, proxy: Proxy, database: str) -> Callable[[str], str]:
    """The URL of the same store through the proxy, with a time-out."""
    address = f"127.0.0.1:{our_server.port}"
    return lambda timeout: our_server.url(database, directConnection="true", timeout=timeout).replace(
        address, f"127.0.0.1:{proxy.port}"
    )


@pytest.fixture
def spoiled(direct: MongodbBackend, by_proxy: Callable[[str], str], open_at: Open) -> MongodbBackend:
    """The same store as ``direct``, through the proxy. A busy machine may take longer to open it than its calls may take."""
    return eventually(lambda: open_at(by_proxy("3s")))
