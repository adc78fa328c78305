"""Lakes to serve, and the process that serves one: ``headwater serve``'s own parts, with two constant answers beside its routes.

``python -m benchmarks.served_lakes URL [PATH]`` serves a store on a free port, which it prints. A constant answer has the bytes that the
load of the table at PATH is answered with, and comes from the same process through everything that a request goes through; without a
PATH there is none.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil
from benchmarks.disk import ROOT
from benchmarks.http_calls import HttpConnection, request_bytes
from benchmarks.lakes import metadata_files

from headwater.catalogs import Catalogs, ContentKey, Namespace, Put
from headwater.clock import SystemClock
from headwater.iceberg import StorageFile, TableStorage
from headwater.iceberg_catalog import IcebergCatalog
from headwater.logs import log_to_stderr
from headwater.realms import REALM_REFERENCES, RealmRegistry, RealmState
from headwater.settings import Settings
from headwater.store import Store, open_store
from headwater_server.call import Answer, Call, ServedStore
from headwater_server.iceberg_rest import iceberg_table
from headwater_server.nessie import nessie_table
from headwater_server.request_target import path_segments
from headwater_server.route_table import Route, RouteTable
from headwater_server.server_application import ServerApplication, encoded_answer
from headwater_server.server_process import ListenAddress, serve_application

__all__ = ["LoadedServer", "make_active_realm", "open_lake", "register_tables", "serve_apart", "table_path"]

REALM, CATALOG = "bench", "lake"
PREFIX = f"{REALM}~{CATALOG}"
CONSTANT, UNCHANGED = "/constant/answer", "/constant/unchanged"
_URL = re.compile(r"serving http://127\.0\.0\.1:(\d+)")


def make_active_realm(store: Store) -> None:
    realms = RealmRegistry(store)
    realms.move_realm(realms.create_realm(REALM), RealmState.INITIALIZING)
    realms.open_realm_for(REALM, RealmState.INITIALIZING).ensure_references(REALM_REFERENCES)
    realms.move_realm(realms.read_realm(REALM), RealmState.ACTIVE)


def open_lake(store: Store) -> IcebergCatalog:
    """The default branch, as a session of the server has it."""
    storage = TableStorage(StorageFile(""), realm=REALM, catalog=CATALOG)
    return IcebergCatalog.open(store, REALM, CATALOG, None, storage=storage)


def register_tables(store: Store, folder: Path) -> list[ContentKey]:
    """Make the realm and the catalog, and register all tables of a folder of metadata files."""
    make_active_realm(store)
    catalogs = Catalogs(RealmRegistry(store).open_realm(REALM))
    catalogs.create_catalog(CATALOG, base_location=folder.as_uri())
    files = {ContentKey(name): file for name, file in metadata_files(folder)}
    spaces = sorted({key.parent for key in files if key.parent is not None})
    catalogs.open_catalog(CATALOG).commit(None, [Put(space, Namespace()) for space in spaces])
    lake = open_lake(store)
    for key, file in files.items():
        lake.tables.register(key, file.as_uri())
    return list(files)


def table_path(key: ContentKey) -> str:
    """The path of a table below the server's URL; names here need no escapes."""
    return f"/iceberg/v1/{PREFIX}/namespaces/{'%1F'.join(key.elements[:-1])}/tables/{key.name}"


@dataclass(frozen=True)
class LoadedServer:
    """A server in a process of its own.

    ready_seconds   from the start of its process until it said that it is ready
    """

    port: int
    process: psutil.Process
    ready_seconds: float

    @property
    def resident_bytes(self) -> int:
        return int(self.process.memory_info().rss)

    def call(self, method: str, path: str, **parts: Any) -> Any:
        connection = HttpConnection(self.port)
        try:
            return connection.call(request_bytes(method, path, **parts))
        finally:
            connection.close()


@contextmanager
def serve_apart(command: list[str], folder: Path, *, settings: dict[str, str] | None = None) -> Iterator[LoadedServer]:
    """A server's process until it answers ``/readyz`` with 200, and then while the block lasts. Its log goes to a file."""
    environment = os.environ | {f"HEADWATER_SERVER_{name}": value for name, value in (settings or {}).items()}
    environment |= {"HEADWATER_LOG_FORMAT": "json"}
    started = time.perf_counter()
    with (
        (folder / "server.log").open("ab") as log,
        subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=log, text=True, env=environment) as process,
    ):
        try:
            yield _ready_server(process, folder / "server.log", started)
        finally:
            process.terminate()
            try:
                process.wait(30)
            finally:
                process.kill()


def _ready_server(process: subprocess.Popen[str], log: Path, started: float) -> LoadedServer:
    assert process.stdout is not None
    match = _URL.search(line := process.stdout.readline())
    if match is None:
        raise RuntimeError(f"the server did not start, it said {line!r}: {log.read_text(encoding='utf-8')[-1500:]}")
    server = LoadedServer(int(match[1]), psutil.Process(process.pid), 0.0)
    while server.call("GET", "/readyz").status != 200:
        time.sleep(0.002)
    return replace(server, ready_seconds=time.perf_counter() - started)


def main(url: str, path: str | None = None) -> int:
    settings = Settings.from_environment()
    log_to_stderr(settings, package="headwater_server")
    with open_store(url, settings=settings) as store:
        served, table = ServedStore(store), iceberg_table()
        application = ServerApplication(
            served,
            [table, nessie_table(), *([] if path is None else [constant_table(loaded_answer(served, table, path))])],
            settings=settings,
            clock=SystemClock(),
            version=version("headwater"),
        )
        listener = ListenAddress("127.0.0.1", 0).listen()
        return serve_application(
            application, listener, settings=settings, tell=lambda url: print(f"serving {url}/iceberg", flush=True)
        )


def loaded_answer(served: ServedStore, table: RouteTable, path: str) -> Answer:
    """The answer to a load, encoded."""
    match = table.find(path_segments(path.encode()))
    assert match is not None, f"nothing is served at {path}"
    route = match.routes["GET"]
    query = None if route.query is None else route.query()
    answer = route.handler(Call(served=served, method="GET", raw_path=path, path=match.path["GET"], query=query, body=None))
    return Answer(body=encoded_answer(answer).content, headers=answer.headers)


def constant_table(answer: Answer) -> RouteTable:
    unchanged = Answer(304, headers=answer.headers)
    answers = {
        "answer": (answer, "The bytes of a load, from memory."),
        "unchanged": (unchanged, "304 and a tag, from memory."),
    }
    routes = [
        Route(method="GET", template=f"/{name}", handler=lambda call, given=given: given, name=name, summary=summary)  # type: ignore[misc]
        for name, (given, summary) in answers.items()
    ]
    return RouteTable("/constant", routes)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
