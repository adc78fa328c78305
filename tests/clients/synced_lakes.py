"""A lake with a writer outside of it, whose table is imported again and again."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyiceberg.catalog import Catalog as IcebergCatalog

from fake_clock import FakeClock
from headwater import Store
from headwater.catalogs import (
    Catalog,
    ContentKey,
    IcebergTable,
    ImportOptions,
    ImportReport,
    ImportSpec,
    Namespace,
    Put,
    ReportRow,
    TableClaims,
)
from headwater.catalogs.importer.import_commit import import_tables, survey_scope
from headwater.gc import collect_realm
from headwater.iceberg import survey_in_process
from headwater.realms import RealmRegistry

__all__ = ["KEY", "Synced"]

KEY = ContentKey.of("sales", "orders")
MONTH = 31 * 24 * 3600


class Synced:
    """The lake, a writer outside of it, and the report of the last import."""

    def __init__(self, store: Store, lake: Catalog, outside: IcebergCatalog, place: str, rows: pa.Table) -> None:
        self.store, self.lake, self.outside, self.rows = store, lake, outside, rows
        self._place = place

    def sync(self, mode: Any = "sync", *, dry_run: bool = False, drops_gone: bool = False) -> ReportRow:
        """The row of the first table; of what an import says of all ``rows_told``, and in ``report``."""
        spec = ImportSpec(name="nightly", locations=(self._place,), mode=mode)
        return self.sync_by(spec, dry_run=dry_run, drops_gone=drops_gone)

    def sync_by(self, spec: ImportSpec, *, dry_run: bool = False, drops_gone: bool = False) -> ReportRow:
        scope = survey_scope(self.lake.definition, spec, now=self.store.clock.now())
        self.rows_told: list[ReportRow] = []
        options = ImportOptions(mode=spec.mode, name=spec.name, scope=scope, dry_run=dry_run, drops_gone=drops_gone)
        self.report: ImportReport = import_tables(
            self.lake,
            TableClaims(RealmRegistry(self.store).open_realm("acme")),
            survey_in_process(scope),
            options=options,
            write=self.rows_told.append,
        )
        return self.rows_told[0]

    def seen_by(self, store: Store, lake: Catalog) -> Synced:
        """The same files for another catalog."""
        return Synced(store, lake, self.outside, self._place, self.rows)

    def append(self, *catalogs: IcebergCatalog) -> None:
        for catalog in catalogs:
            catalog.load_table("sales.orders").append(self.rows)

    def now(self, branch: str | None = None) -> str | None:
        """Where the metadata of the table lies on a branch."""
        table = self.lake.get_content(branch, KEY)
        return table.metadata_location if isinstance(table, IcebergTable) else None

    @property
    def latest_outside(self) -> str:
        return self.outside.load_table("sales.orders").metadata_location

    def collect(self) -> None:
        clock = self.store.clock
        assert isinstance(clock, FakeClock)
        clock.advance(MONTH)
        for number in range(120):  # beyond the number of commits that are kept
            self.lake.commit(None, [Put(ContentKey.of(f"n{clock.now()}-{number}"), Namespace())])
        clock.advance(MONTH)
        assert collect_realm(self.store, "acme").deleted
