"""What a Python user has for Iceberg tables without Headwater: pyiceberg's SqlCatalog; and the same with its pointers in Headwater.

Both run pyiceberg's own code for a commit of table properties: read the table's metadata.json, apply the update, write a new
metadata.json, and move the pointer from the one file to the other. Only where the pointer lies differs. Neither waits for the disk
to have a metadata.json; SQLite and PostgreSQL wait for their own logs, at the durability that a store has.
"""

from __future__ import annotations

import random
import sqlite3
import time
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit, urlunsplit
from uuid import uuid4

from benchmarks.places import Place
from benchmarks.storms import Act
from benchmarks.tables import CONTENT, Made, churn, plant, value_of
from pyiceberg.catalog import MetastoreCatalog
from pyiceberg.catalog.sql import IcebergTables, SqlCatalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.schema import Schema
from pyiceberg.serializers import FromInputFile
from pyiceberg.table import CommitTableResponse, StagedTable, Table
from pyiceberg.types import LongType, NestedField, StringType
from sqlalchemy import insert
from sqlalchemy.orm import Session

from headwater.catalogs.content import IcebergTable
from headwater.commits import Transaction, commit_change, read_head
from headwater.index import Index
from headwater.store import RealmStore

__all__ = [
    "NAMESPACE",
    "HeadwaterChanges",
    "HeadwaterPointers",
    "files_in",
    "insert_tables",
    "new_table",
    "open_sql_catalog",
    "retried",
    "setting_properties",
    "warehouse_of",
]

NAMESPACE = "sales"
TABLE = f"{NAMESPACE}.orders"
SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "customer", StringType()),
    NestedField(3, "region", StringType()),
)
RETRY_SECONDS = 15.0
"""As long as a commit of ours may try."""


def open_sql_catalog(place: Place, folder: Path, name: str) -> SqlCatalog:
    """A new catalog in a SQLite file or in a schema of a PostgreSQL server; its metadata in a folder of the same disk.

    The SQLite file is in WAL mode, as a store's is: it would be slower without.
    """
    warehouse = warehouse_of(folder, name)
    if place.name == "sqlite":
        file = folder / f"pyiceberg-{name}.db"
        with closing(sqlite3.connect(file)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
        uri = f"sqlite:///{file}"
    else:
        place.floor("pyiceberg").close()  # makes the schema
        parts = urlsplit(place.url("pyiceberg"))
        path = quote(f"-csearch_path={dict(parse_qsl(parts.query))['schema']}")
        uri = urlunsplit(("postgresql+psycopg2", parts.netloc, parts.path, f"options={path}", ""))
    return SqlCatalog(f"bench-{name}", uri=uri, warehouse=f"file://{warehouse}")


def warehouse_of(folder: Path, name: str) -> Path:
    warehouse = folder / f"warehouse-{name}"
    warehouse.mkdir(exist_ok=True)
    return warehouse


class HeadwaterPointers(SqlCatalog):
    """A catalog of one table whose pointer is a key of a branch among many others, and moves by a commit of ours."""

    def __init__(self, rows: RealmStore, branch: str, made: Made, folder: Path) -> None:
        MetastoreCatalog.__init__(self, "bench-headwater", warehouse=f"file://{warehouse_of(folder, branch)}")
        plant(rows, branch, made)
        churn(rows, branch, made.keys, 2 * len(made.keys), at_once=128)
        self._rows, self._branch, self._key = rows, branch, made.keys[len(made.keys) // 2]
        self._chance = random.Random()

    def create(self) -> None:
        staged = self._create_staged_table(TABLE, SCHEMA, f"{self.properties['warehouse']}/orders")
        self._write(staged)
        commit_change(self._rows, self._branch, lambda tx: self._point_to(staged, tx))

    def load_table(self, identifier: str | tuple[str, ...]) -> Table:
        found = read_head(self._rows, self._branch)
        assert found is not None
        return self._table(self._location(self._rows, found.index(CONTENT)))

    def commit_table(self, table: Table, requirements: Any, updates: Any) -> CommitTableResponse:
        """As a SqlCatalog does it: the file first, then the pointer, if it is still where it was."""
        current = self.load_table(TABLE)
        staged = self._update_and_stage_table(current, table.name(), requirements, updates)
        self._write(staged)

        def change(tx: Transaction) -> None:
            if self._location(tx.reader, tx.index(CONTENT)) != current.metadata_location:
                raise CommitFailedException(f"{TABLE} was changed meanwhile")
            self._point_to(staged, tx)

        commit_change(self._rows, self._branch, change)
        return CommitTableResponse(metadata=staged.metadata, metadata_location=staged.metadata_location)

    def _location(self, rows: RealmStore, index: Index) -> str:
        value = index.get(self._key)
        assert value is not None and value.object_id is not None
        return rows.read_object(value.object_id, IcebergTable).metadata_location

    def _table(self, location: str) -> Table:
        io = self._load_file_io(location=location)
        metadata = FromInputFile.table_metadata(io.new_input(location))
        return Table((NAMESPACE, "orders"), metadata, location, io, self)

    def _write(self, staged: StagedTable) -> None:
        self._write_metadata(staged.metadata, staged.io, staged.metadata_location)

    def _point_to(self, staged: StagedTable, tx: Transaction) -> None:
        table = IcebergTable(metadata_location=staged.metadata_location, table_uuid=str(staged.metadata.table_uuid))
        tx.index(CONTENT).put(self._key, value_of(tx.add_object(table), self._chance))


class HeadwaterChanges(HeadwaterPointers):
    """The whole of pyiceberg's commit as the change of a commit of ours: on the table as it is then, so it cannot be beaten."""

    def commit_table(self, table: Table, requirements: Any, updates: Any) -> CommitTableResponse:
        def change(tx: Transaction) -> CommitTableResponse:
            current = self._table(self._location(tx.reader, tx.index(CONTENT)))
            staged = self._update_and_stage_table(current, table.name(), requirements, updates)
            self._write(staged)
            self._point_to(staged, tx)
            return CommitTableResponse(metadata=staged.metadata, metadata_location=staged.metadata_location)

        return commit_change(self._rows, self._branch, change).result


def new_table(catalog: SqlCatalog) -> None:
    """The table that all write to."""
    if isinstance(catalog, HeadwaterPointers):
        catalog.create()
        return
    catalog.create_namespace_if_not_exists(NAMESPACE)
    catalog.create_table(TABLE, SCHEMA)


def setting_properties(catalog: SqlCatalog) -> Act:
    """A commit as users of pyiceberg write it, with the table as it is now."""

    def act(chance: random.Random) -> None:
        with catalog.load_table(TABLE).transaction() as transaction:
            transaction.set_properties(written_by=str(chance.random()))

    return act


def retried(act: Act, lost: list[int], failure: type[Exception] = CommitFailedException) -> Act:
    """The same in the loop that one puts around it: again from the start when beaten, after a wait of 5 to 25 ms that doubles."""

    def again(chance: random.Random) -> None:
        longest, end = 0.025, time.monotonic() + RETRY_SECONDS
        while True:
            try:
                act(chance)
                return
            except failure:
                lost.append(1)
                if time.monotonic() > end:
                    raise
            time.sleep(chance.uniform(0.005, longest))
            longest = min(2 * longest, 0.25)

    return again


def insert_tables(catalog: SqlCatalog, names: Iterable[str], namespace: str = NAMESPACE) -> None:
    """Tables straight into the catalog's database: creating them one by one, each with its metadata.json, would take far too long."""
    catalog.create_namespace_if_not_exists(namespace)
    rows = [
        {
            "catalog_name": catalog.name,
            "table_namespace": namespace,
            "table_name": name,
            "metadata_location": f"s3://warehouse/{namespace}/{name}/metadata/00000-{uuid4()}.metadata.json",
            "previous_metadata_location": None,
            "iceberg_type": "TABLE",
        }
        for name in names
    ]
    with Session(catalog.engine) as session:
        session.execute(insert(IcebergTables), rows)
        session.commit()


def files_in(folder: Path, name: str) -> int:
    """How many files of metadata a catalog has written."""
    return sum(1 for _ in warehouse_of(folder, name).rglob("*.metadata.json"))
