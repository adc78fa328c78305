"""Catalogs behind `headwater serve`, and Spark's ways to them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from pyiceberg.catalog.rest import RestCatalog
from spark_sql import Row, SparkSql

from headwater.catalogs import Catalog
from servers.child_servers import command_of
from servers.proxy import Proxy

URL_LINE = "serving "
SECONDS = 20.0

_RUN = "from headwater.cli import main; main(sys.argv[1:])"


@contextmanager
def headwater_server(store_url: str, log: Path) -> Iterator[str]:
    """`headwater serve` as a process; gives its URL."""
    command = [*command_of(_RUN), "--store", store_url, "serve", "--listen", "127.0.0.1:0"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HEADWATER_")}
    with (
        log.open("wb") as said,
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=said, text=True) as process,
    ):
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line.startswith(URL_LINE), log.read_text(encoding="utf-8")
            yield line.removeprefix(URL_LINE).strip().removesuffix("/iceberg")
        finally:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(SECONDS)
            process.kill()


@dataclass(frozen=True)
class ServedLake:
    """A catalog of the realm ``acme`` of a test's own, which Spark knows as ``lake``, with the namespace ``sales`` in it."""

    catalog: Catalog
    warehouse: str
    url: str
    sql: SparkSql

    def add_reference(self, name: str, reference: str) -> None:
        """Let Spark know a branch, a tag or a commit as a catalog, too."""
        self.sql.add_catalog(name, self.url, f"{self.warehouse}@{reference}")

    @contextmanager
    def through_proxy(self, name: str) -> Iterator[Proxy]:
        """Let Spark know the catalog by another name, too, behind a proxy."""
        with Proxy("127.0.0.1", urlsplit(self.url).port or 0) as proxy:
            self.sql.add_catalog(name, f"http://127.0.0.1:{proxy.port}", self.warehouse)
            yield proxy

    def commit_line(self, table: str = "orders") -> str:
        """How a commit to a table of ``sales`` begins."""
        return f"POST /iceberg/v1/{self.warehouse.replace('/', '~')}/namespaces/sales/tables/{table} HTTP/1.1"

    def pyiceberg(self) -> RestCatalog:
        return RestCatalog("rest", uri=f"{self.url}/iceberg", warehouse=self.warehouse)

    def rows(self, table: str = "lake.sales.orders", columns: str = "id, city") -> list[Row]:
        return self.sql(f"SELECT {columns} FROM {table} ORDER BY {columns}")

    def snapshots(self, table: str = "lake.sales.orders") -> list[int]:
        """The ids of a table's snapshots, oldest first."""
        return [number for (number,) in self.sql(f"SELECT snapshot_id FROM {table}.snapshots ORDER BY committed_at")]
