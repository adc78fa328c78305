"""A catalog behind `headwater serve` that Spark uses by Nessie's API, as Iceberg's library speaks it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from py4j.protocol import Py4JJavaError
from spark_sql import Row, SparkSql, fault_of

from headwater.catalogs import Catalog, ContentKey
from servers.proxy import Proxy

COMMIT_LINE = "/history/commit HTTP/1.1"
"""What is in the first line of a commit, and of no other request."""


@dataclass(frozen=True)
class NessieLake:
    """A catalog of a test's own, which Spark knows as ``nessie``, with the namespace ``sales`` in it."""

    catalog: Catalog
    warehouse: str
    url: str
    folder: Path
    sql: SparkSql

    def options(self, *, version: int = 2, reference: str = "main", url: str | None = None) -> dict[str, str]:
        """What a session of Spark is configured with."""
        return {
            "type": "nessie",
            "uri": f"{url or self.url}/nessie/{self.warehouse}/api/v{version}",
            "ref": reference,
            "warehouse": self.folder.as_uri(),
            "authentication.type": "NONE",
        }

    def add(self, name: str, *, version: int = 2, reference: str = "main", **options: str) -> None:
        """Let Spark know the catalog by a name, at a branch or tag."""
        self.sql.set_catalog(name, self.options(version=version, reference=reference) | options)

    def add_rest(self, name: str, reference: str = "") -> None:
        """Let Spark know the catalog by a name, by Iceberg's REST protocol."""
        self.sql.add_catalog(name, self.url, f"{self.warehouse}@{reference}" if reference else self.warehouse)

    @contextmanager
    def through_proxy(self, name: str) -> Iterator[Proxy]:
        """Let Spark know the catalog by another name, too, behind a proxy."""
        with Proxy("127.0.0.1", urlsplit(self.url).port or 0) as proxy:
            self.sql.set_catalog(name, self.options(url=f"http://127.0.0.1:{proxy.port}"))
            yield proxy

    def rows(self, table: str = "nessie.sales.orders", columns: str = "id, city") -> list[Row]:
        return self.sql(f"SELECT {columns} FROM {table} ORDER BY {columns}")

    def hash(self, reference: str = "main") -> str:
        """The commit that a branch or tag is at."""
        return next(iter(self.catalog.log(reference))).hash

    def call(self, method: str, *arguments: Any) -> Any:
        """Call Iceberg's catalog itself; raises SparkFault."""
        try:
            return getattr(self.sql.iceberg_catalog("nessie"), method)(*arguments)
        except Py4JJavaError as error:
            raise fault_of(error) from None

    def identifier(self, name: str) -> Any:
        """A name as Iceberg's library has it; ``namespace()`` of it is what it lies in."""
        return self.sql.java_class("org.apache.iceberg.catalog.TableIdentifier").parse(name)

    def content_id(self, table: str, reference: str = "main") -> str:
        """The id of a content of ``sales``, as Headwater keeps it."""
        content = self.catalog.get_content(reference, ContentKey(("sales", table)))
        assert content is not None
        return str(content.id)

    def files(self) -> set[Path]:
        return {file for file in self.folder.rglob("*") if file.is_file() and not file.name.endswith(".crc")}
