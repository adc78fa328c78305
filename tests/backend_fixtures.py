"""Every backend, in one list for all suites: fresh and empty for each test, on servers that start with the first test in need.

Each process of a parallel run has servers of its own. A folder's conftest takes the fixtures that it needs by importing them.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from faulty_backend import FaultyBackend
from headwater.store import Backend, open_backend
from headwater.store.urls import parse_url
from tiers import long_but_for
from unordered import UnorderedBackend

if TYPE_CHECKING:  # most tests need no driver: theirs are loaded with the servers
    from servers.mongodb import MongodbServer
    from servers.postgresql import PostgresqlServer

__all__ = [
    "BACKENDS",
    "STORES",
    "backend",
    "make_backend",
    "mongodb_server",
    "mongodb_url",
    "postgresql_server",
    "postgresql_url",
    "store_url",
]

_numbers = itertools.count(1)
_names: list[str] = []
"""Schemas and databases that were handed out."""


def _memory(request: pytest.FixtureRequest) -> str:
    return "memory://"


def _sqlite(request: pytest.FixtureRequest) -> str:
    folder: Path = request.getfixturevalue("tmp_path")
    return f"sqlite:///{folder}/store-{next(_numbers)}.db"


def _postgresql(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue("postgresql_server").url(_fresh_name()))


def _mongodb(request: pytest.FixtureRequest) -> str:
    # the server of the tests takes seconds to find a thousand ids
    return str(request.getfixturevalue("mongodb_server").url(_fresh_name(), timeout="60s"))


def _fresh_name() -> str:
    """A name that no other test has, nor another process of this run or of one that shares its server."""
    _names.append(f"test_{os.getpid()}_{os.urandom(3).hex()}_{next(_numbers)}")
    return _names[-1]


STORES: dict[str, Callable[[pytest.FixtureRequest], str]] = {
    "memory": _memory,
    "sqlite": _sqlite,
    "postgresql": _postgresql,
    "mongodb": _mongodb,
}
"""The four databases, and how a test gets the URL of an empty store on each."""


def _bare(make: Callable[[pytest.FixtureRequest], str]) -> Callable[[pytest.FixtureRequest], Backend]:
    return lambda request: open_backend(parse_url(make(request)))


BACKENDS: dict[str, Callable[[pytest.FixtureRequest], Backend]] = {
    **{name: _bare(make) for name, make in STORES.items()},
    "faulty": lambda request: FaultyBackend(_bare(_memory)(request)),
    "unordered": lambda request: UnorderedBackend(),
}
"""All that has to keep the protocol's promises, and how a test gets an empty one."""


@pytest.fixture(params=long_but_for({"memory", "sqlite"}, BACKENDS))
def make_backend(request: pytest.FixtureRequest) -> Iterator[Callable[[], Backend]]:
    """Each backend in turn; every call makes another empty one."""
    made: list[Backend] = []

    def make() -> Backend:
        made.append(BACKENDS[request.param](request))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def backend(make_backend: Callable[[], Backend]) -> Backend:
    """An empty one of each backend."""
    return make_backend()


@pytest.fixture(params=long_but_for({"memory", "sqlite"}, STORES))
def store_url(request: pytest.FixtureRequest) -> str:
    """An empty store on each of the four databases; the quick tests know from the contract what the servers promise."""
    return STORES[request.param](request)


@pytest.fixture
def postgresql_url(request: pytest.FixtureRequest) -> str:
    """An empty store on PostgreSQL, on the server that all tests share: not to be stopped."""
    return _postgresql(request)


@pytest.fixture
def mongodb_url(request: pytest.FixtureRequest) -> str:
    """An empty store on MongoDB, on the server that all tests share: not to be stopped."""
    return _mongodb(request)


@pytest.fixture(scope="session")
def postgresql_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresqlServer]:
    """Its schemas go with its folder."""
    from servers.postgresql import PostgresqlServer

    server = PostgresqlServer(tmp_path_factory.mktemp("postgresql"))
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def mongodb_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MongodbServer]:
    """Its databases go with its folder, and those of tests that ran from a server that is not ours."""
    from servers.mongodb import MongodbServer

    server = MongodbServer(tmp_path_factory.mktemp("mongodb"))
    server.start()
    yield server
    if not server.is_ours:
        for name in _names:
            server.drop(name)
    server.stop()
