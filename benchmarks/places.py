"""Where the databases of a run lie: new ones of each kind for the floor, for a store, and for both."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit, urlunsplit

import psutil
from benchmarks.disk import ROOT
from benchmarks.floor import Floor, MemoryFloor, MongodbFloor, PostgresqlFloor, SqliteFloor, drop_database, drop_schema
from benchmarks.report import say

__all__ = ["KINDS", "Place", "open_places"]

KINDS = ("memory", "sqlite", "postgresql", "mongodb")


class Place(Protocol):
    """Where databases of one kind are made, by name."""

    name: str
    is_shared: bool
    """Whether another process, or the floor, can open a store's database."""

    def floor(self, name: str) -> Floor:
        """The bare driver on a database, which is made if need be."""
        ...

    def url(self, name: str) -> str:
        """For a store on it."""
        ...

    def versions(self) -> dict[str, str]: ...

    def apart(self) -> AbstractContextManager[None]:
        """While this process and the database, where it is another process, run on processors of their own."""
        ...


class MemoryPlace:
    name = "memory"
    is_shared = False

    def floor(self, name: str) -> Floor:
        return MemoryFloor()

    def url(self, name: str) -> str:
        return "memory://"

    def versions(self) -> dict[str, str]:
        return {}

    def apart(self) -> AbstractContextManager[None]:
        return nullcontext()


@dataclass
class SqlitePlace:
    folder: Path
    name: str = "sqlite"
    is_shared: bool = True

    def floor(self, name: str) -> Floor:
        return SqliteFloor(self.folder / f"{name}.db")

    def url(self, name: str) -> str:
        return f"sqlite:///{self.folder / name}.db"

    def versions(self) -> dict[str, str]:
        return {}  # every machine's description has it

    def apart(self) -> AbstractContextManager[None]:
        return nullcontext()


@dataclass
class PostgresqlPlace:
    server: str
    process: psutil.Process | None = None
    """Of the server, if it is ours."""
    name: str = "postgresql"
    is_shared: bool = True
    made: set[str] = field(default_factory=set)

    def floor(self, name: str) -> Floor:
        return PostgresqlFloor(self.server, self._schema(name))

    def url(self, name: str) -> str:
        return f"{self.server}{'&' if '?' in self.server else '?'}schema={self._schema(name)}"

    def versions(self) -> dict[str, str]:
        import psycopg

        with psycopg.connect(self.server) as connection:
            server = connection.info.parameter_status("server_version") or ""
        return {"PostgreSQL": server.partition(" ")[0], "psycopg": psycopg.__version__}

    def apart(self) -> AbstractContextManager[None]:
        return nullcontext() if self.process is None else _apart(self.process)

    def _schema(self, name: str) -> str:
        """A new one at the first call, whatever an earlier run left."""
        schema = f"headwater_bench_{name}"
        if schema not in self.made:
            drop_schema(self.server, schema)
            self.made.add(schema)
        return schema

    def forget(self) -> None:
        for schema in self.made:
            drop_schema(self.server, schema)


@dataclass
class MongodbPlace:
    server: str
    name: str = "mongodb"
    is_shared: bool = True
    made: set[str] = field(default_factory=set)

    def floor(self, name: str) -> Floor:
        return MongodbFloor(self.server, self._database(name))

    def url(self, name: str) -> str:
        parts = urlsplit(self.server)
        return urlunsplit((parts.scheme, parts.netloc, f"/{self._database(name)}", parts.query, ""))

    def versions(self) -> dict[str, str]:
        import pymongo

        client: pymongo.MongoClient[dict[str, object]] = pymongo.MongoClient(self.server)
        server = str(client.server_info()["version"])
        client.close()
        return {"MongoDB": server, "pymongo": pymongo.version}

    def apart(self) -> AbstractContextManager[None]:
        return nullcontext()  # its server is never ours

    def _database(self, name: str) -> str:
        """A new one at the first call, whatever an earlier run left."""
        database = f"headwater_bench_{name}"
        if database not in self.made:
            drop_database(self.server, database)
            self.made.add(database)
        return database

    def forget(self) -> None:
        for database in self.made:
            drop_database(self.server, database)


@contextmanager
def open_places(folder: Path, wanted: Collection[str]) -> Iterator[list[Place]]:
    """A place of each kind that is wanted. What cannot be measured here is said, never left out in silence."""
    with ExitStack() as stack:
        places: list[Place] = []
        if "memory" in wanted:
            places.append(MemoryPlace())
        if "sqlite" in wanted:
            places.append(SqlitePlace(folder))
        if "postgresql" in wanted:
            postgresql = _postgresql(folder, stack)
            stack.callback(postgresql.forget)
            places.append(postgresql)
        if "mongodb" in wanted:
            places += _mongodb(stack)
        yield places


@contextmanager
def _apart(server: psutil.Process) -> Iterator[None]:
    """On Linux, this process on one processor and the server on the next.

    Left to itself, the system sometimes puts client and server of one contender on the same processor and those of another one
    apart. Then a round trip takes 28 µs here, and 75 there.
    """
    processors = psutil.Process().cpu_affinity() if psutil.LINUX else []
    if len(processors) < 2:
        yield
        return
    _bind(psutil.Process(), processors[:1])
    _bind(server, processors[1:2])
    try:
        yield
    finally:
        _bind(psutil.Process(), processors)
        _bind(server, processors)


def _bind(process: psutil.Process, processors: list[int]) -> None:
    """Also its children; those that it makes later follow."""
    for one in (process, *(process.children() if process.pid != os.getpid() else ())):
        with suppress(psutil.NoSuchProcess):
            one.cpu_affinity(processors)


def _postgresql(folder: Path, stack: ExitStack) -> PostgresqlPlace:
    """The server to measure: the one that is given, or one of our own with its settings as shipped, fsync on."""
    if given := os.environ.get("HEADWATER_BENCH_POSTGRESQL"):
        return PostgresqlPlace(given)
    sys.path.append(str(ROOT / "tests"))
    from servers.postgresql import PostgresqlServer

    say("starting a PostgreSQL server with fsync")
    server = stack.enter_context(PostgresqlServer(folder=folder, is_synced=True))
    return PostgresqlPlace(server.url(), psutil.Process(int((server.folder / "pid").read_text(encoding="utf-8"))))


def _mongodb(stack: ExitStack) -> list[Place]:
    given = os.environ.get("HEADWATER_BENCH_MONGODB")
    if not given:
        say("mongodb is left out: figures count only from a real mongod, and HEADWATER_BENCH_MONGODB holds no URL of one")
        return []
    mongodb = MongodbPlace(given)
    stack.callback(mongodb.forget)
    return [mongodb]
