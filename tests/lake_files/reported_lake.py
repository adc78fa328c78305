"""A lake to report on: a realm that keeps no history, a catalog, a client, and a report at any moment."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from fake_clock import FakeClock
from headwater import Settings, Store, open_store
from headwater.catalogs import CatalogDefinition, Catalogs
from headwater.clients.pyiceberg import HeadwaterCatalog
from headwater.gc import collect_realm
from headwater.lake_files import (
    FileReason,
    LakeFileExplanation,
    MarkedFile,
    ReadReport,
    explain_lake_file,
    read_last_report,
    report_files,
)
from headwater.realms import HistoryRetention, RealmRegistry, bootstrap, hash_credentials, new_credentials
from headwater.store import RealmStore

HOUR, DAY = 3600.0, 86_400.0
ROWS = pa.table({"id": [1, 2]}, schema=pa.schema([pa.field("id", pa.int64())]))
_HASH = hash_credentials(new_credentials())


@dataclass(slots=True)
class ReportedLake:
    store: Store
    clock: FakeClock
    folder: Path
    client: HeadwaterCatalog

    @property
    def rows(self) -> RealmStore:
        return RealmRegistry(self.store).open_realm("acme")

    @property
    def definition(self) -> CatalogDefinition:
        return Catalogs(self.rows).read_catalog("lake")

    def branch(self, name: str) -> HeadwaterCatalog:
        return HeadwaterCatalog.on(self.store, realm="acme", catalog="lake", branch=name)

    def make_table(self, name: str, *, appends: int = 2) -> Any:
        """A table with a snapshot for each append."""
        table = self.client.create_table(f"sales.{name}", ROWS.schema)
        for _ in range(appends):
            table.append(ROWS)
        return table

    def expire(self, name: str) -> None:
        """Take all snapshots but the current one out of a table, and let a collection delete the history that has them."""
        table = self.client.load_table(f"sales.{name}")
        ids = [snapshot.snapshot_id for snapshot in table.snapshots()][:-1]
        table.maintenance.expire_snapshots().by_ids(ids).commit()
        self.collect()

    def collect(self) -> None:
        """Another commit, so that what was the head is history; then all graces end, and a collection runs."""
        self.client.create_namespace_if_not_exists(f"later{self.clock.now()}")
        self.clock.advance(HOUR)
        collect_realm(self.store, "acme")

    def report(self, **options: Any) -> ReadReport:
        now = self.clock.now() / 1_000_000
        for file in self.folder.rglob("*"):
            if file.is_file() and file.stat().st_mtime > now:  # the clock of the file system is not that of the test
                os.utime(file, (now, now))
        return report_files(self.store, self.rows, self.definition, **options)

    def marks(self) -> dict[str, MarkedFile]:
        """The last report's marks, by the names of their files."""
        return {mark.path.rpartition("/")[2]: mark for mark in read_last_report(self.store, "acme", "lake").marks()}

    def codes(self) -> dict[str, FileReason]:
        return {name: mark.code for name, mark in self.marks().items()}

    def explain(self, file: Path | str) -> LakeFileExplanation:
        return explain_lake_file(self.store, file.as_uri() if isinstance(file, Path) else file)

    def place(self, name: str) -> Path:
        return Path(self.client.load_table(f"sales.{name}").location().removeprefix("file://"))

    def data_files(self, name: str) -> set[str]:
        """The names of the data files that are there."""
        return {file.name for file in (self.place(name) / "data").rglob("*.parquet")}


@contextmanager
def open_reported_lake(url: str, clock: FakeClock, folder: Path) -> Iterator[ReportedLake]:
    graces = Settings(unsafe_short_graces=True, writer_grace_seconds=60, reader_grace_seconds=60)
    with open_store(url, settings=graces, clock=clock) as store:
        realms = RealmRegistry(store)
        realms.create_realm("acme", retention=HistoryRetention(content_age_seconds=0, content_commits=1, reference_commits=1))
        bootstrap(realms, "acme", _HASH)
        Catalogs(realms.open_realm("acme")).create_catalog("lake", base_location=folder.as_uri())
        client = HeadwaterCatalog.on(store, realm="acme", catalog="lake", branch="main")
        client.create_namespace("sales")
        yield ReportedLake(store, clock, folder, client)
