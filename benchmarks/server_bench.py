"""What the parts of the suite ``server`` share: its scale, a process that makes the load, and lakes that are served."""

from __future__ import annotations

import multiprocessing
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from benchmarks.http_calls import RepeatedRequest, run_scripts
from benchmarks.lakes import make_lake
from benchmarks.places import Place
from benchmarks.served_lakes import LoadedServer, register_tables, serve_apart, table_path
from benchmarks.storms import Storm

from headwater.catalogs import ContentKey
from headwater.store import open_store

__all__ = ["FULL", "MIB", "MILLIS", "QUICK", "Scale", "ServedLake", "ServerBench", "load_process", "repeat"]

K = TypeVar("K")
MIB = 1024**2
MILLIS = 1000


@dataclass(frozen=True)
class Scale:
    seconds: float
    """Of one turn of a load."""
    turns: int
    clients: int
    """That load one table."""
    writers: int
    """Clients that commit, each to a table of its own."""
    tables: int
    """Of the large catalog whose pages are read."""
    few_tables: int
    pages: int
    busy: int
    """Connections, each with a request at a time."""
    idle: int
    starts: int
    grants: int
    """Of a caller about whom is decided."""
    listed: int
    """Tables of a namespace that is listed whole."""


FULL = Scale(
    seconds=4,
    turns=3,
    clients=16,
    writers=64,
    tables=1_000_000,
    few_tables=1000,
    pages=60,
    busy=200,
    idle=1000,
    starts=5,
    grants=10_000,
    listed=10_000,
)
QUICK = Scale(
    seconds=0.2,
    turns=1,
    clients=4,
    writers=3,
    tables=2000,
    few_tables=500,
    pages=3,
    busy=40,
    idle=20,
    starts=1,
    grants=1000,
    listed=1000,
)


@dataclass(frozen=True)
class ServedLake:
    """Tables of 20 snapshots in a store.

    folder        with their metadata files
    """

    url: str
    folder: Path
    keys: Sequence[ContentKey]

    @property
    def paths(self) -> list[str]:
        return [table_path(key) for key in self.keys]


@dataclass
class ServerBench:
    """One run of the suite."""

    folder: Path
    load: ProcessPoolExecutor
    scale: Scale
    names: int = 0

    def run(self, function: Callable[..., Storm], *arguments: Any) -> Storm:
        """Run a load in the process that makes it."""
        return self.load.submit(function, *arguments).result()

    def by_turns(self, contenders: dict[K, Callable[[], Storm]]) -> dict[K, Storm]:
        """Each by turns, so that what else the machine does meets all of them alike. A turn of each goes before, and does not count."""
        for run in contenders.values():
            run()
        storms = {name: Storm() for name in contenders}
        for turn in range(self.scale.turns):
            for name, run in list(contenders.items())[:: 1 if turn % 2 else -1]:
                storms[name].add(run())
        return storms

    def new_name(self) -> str:
        """A name for a database or a folder that no other part has."""
        self.names += 1
        return f"server{self.names}"

    def make_lake(self, place: Place, tables: int) -> ServedLake:
        name = self.new_name()
        folder = make_lake(self.folder / name, tables)
        url = place.url(name)
        with open_store(url) as store:
            return ServedLake(url, folder, register_tables(store, folder))

    @contextmanager
    def serve(self, lake: ServedLake, *, is_loaded: bool = True, **settings: int | Path) -> Iterator[LoadedServer]:
        """A server of a lake, with settings that are named without ``server_``.

        is_loaded     it has constant answers beside, with the bytes of the first table's load
        """
        command = [sys.executable, "-m", "benchmarks.served_lakes", lake.url, *lake.paths[: int(is_loaded)]]
        environment = {name.upper(): str(value) for name, value in settings.items()}
        with serve_apart(command, self.folder, settings=environment) as server:
            yield server


@contextmanager
def load_process() -> Iterator[ProcessPoolExecutor]:
    """A process that makes load: this one may have a server in its threads."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield pool


def repeat(port: int, request: bytes, status: int, clients: int, seconds: float) -> Storm:
    """So many clients that send one request again and again."""
    return run_scripts(port, [RepeatedRequest(request, status)] * clients, seconds)
