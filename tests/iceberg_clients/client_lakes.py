"""Lakes as programs of others meet them: catalogs of a process that serves a store, with files on a disk or in buckets."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.types import LongType, NestedField, StringType

from headwater.catalogs import Catalog
from servers.s3 import S3_LOGIN

SCHEMA = Schema(NestedField(1, "id", LongType(), required=True), NestedField(2, "city", StringType()))
_COLUMNS = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("city", pa.string())])
_SERVING = "serving "
_SECONDS = 30


def rows(*values: tuple[int, str | None]) -> pa.Table:
    """Rows of that schema."""
    return pa.Table.from_pylist([{"id": number, "city": city} for number, city in values], schema=_COLUMNS)


@contextmanager
def client_server(store_url: str, storage_folder: Path, *, signing_keys: str = "") -> Iterator[str]:
    """Serve a store by a process of its own, which finds options of storages in a folder; gives the URI for clients.

    signing_keys  the folder of keys for tokens; empty: whoever calls may do everything
    """
    command = [sys.executable, "-m", "headwater", "--store", store_url, "serve", "--listen", "127.0.0.1:0"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("HEADWATER_", "AWS_"))}
    environment["HEADWATER_STORAGE_FILE"] = str(storage_folder)
    environment["HEADWATER_SERVER_SIGNING_KEYS"] = signing_keys
    log = storage_folder.with_suffix(".log")
    with log.open("w") as said:
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=said, text=True)
    with process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line.startswith(_SERVING), log.read_text()[-2000:]
            yield line.removeprefix(_SERVING).strip()
            process.send_signal(signal.SIGTERM)
            assert process.wait(_SECONDS) == 0
        finally:
            process.kill()


@dataclass(frozen=True)
class ClientLake:
    """A catalog that is served. ``endpoint`` is that of the storage, if the files are in a bucket; the server tells no client a login."""

    uri: str
    warehouse: str
    catalog: Catalog
    endpoint: str = ""

    @property
    def properties(self) -> dict[str, str]:
        """What a client of pyiceberg is configured with."""
        login = {f"s3.{name}": value for name, value in S3_LOGIN.items()} if self.endpoint else {}
        return {"type": "rest", "uri": self.uri, "warehouse": self.warehouse, **login}

    def at(self, reference: str) -> ClientLake:
        """The same catalog at a branch, a tag or a commit."""
        return replace(self, warehouse=f"{self.warehouse}@{reference}")

    def connect(self) -> RestCatalog:
        return RestCatalog("lake", **self.properties)

    def create_orders(self, *values: tuple[int, str | None]) -> Table:
        """The table ``sales.orders`` with these rows, by pyiceberg."""
        client = self.connect()
        client.create_namespace("sales")
        table = client.create_table("sales.orders", SCHEMA)
        table.append(rows(*values))
        return table

    def append_orders(self, *values: tuple[int, str | None]) -> None:
        """Append rows to that table."""
        self.connect().load_table("sales.orders").append(rows(*values))

    def ids(self, table: str = "sales.orders") -> list[int]:
        """What pyiceberg reads now."""
        return sorted(self.connect().load_table(table).scan().to_arrow()["id"].to_pylist())

    def commits(self) -> int:
        return len(list(self.catalog.log()))


def storage_options(bucket: str, endpoint: str) -> str:
    """The file by which a server reaches a bucket, with credentials that it keeps for itself."""
    return json.dumps({"storages": [{"location": f"s3://{bucket}", "endpoint": endpoint, "region": "us-east-1", **S3_LOGIN}]})
