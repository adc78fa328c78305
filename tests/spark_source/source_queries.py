"""A query of the data source without Spark: the same planning and reading, and what it asked of the database."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql.datasource import Filter

from headwater.realms import CredentialsHash, RealmRegistry, bootstrap
from headwater.store import ObjectKey, ObjectPosition, ObjectRow, RealmKey, ReferenceKey, ReferencePosition, ScanSplit, Store
from headwater.store.backends.memory import MemoryBackend
from headwater_workers.pipeline.source.data_source import read_from
from headwater_workers.pipeline.source.partitions import ScanPartition, divided
from headwater_workers.pipeline.source.pinned_states import pin_states, tenants
from headwater_workers.pipeline.source.pushdown import select
from headwater_workers.pipeline.source.reader_options import ReadRequest
from headwater_workers.pipeline.source.source_columns import TABLES, chosen

Row = dict[str, Any]
HASH = CredentialsHash(client_id="c", salt=b"s", digest=b"d")


class CountingBackend(MemoryBackend):
    """Counts the objects that were read, and the rows that were scanned."""

    def __init__(self) -> None:
        super().__init__()
        self.read = self.scanned = 0

    def read_objects(self, realm: RealmKey, keys: Sequence[tuple[Any, int]]) -> list[ObjectRow | None]:
        self.read += len(keys)
        return super().read_objects(realm, keys)

    def scan_objects(self, split: ScanSplit[ObjectPosition], after: ObjectPosition | None, limit: int) -> list[ObjectKey]:
        found = super().scan_objects(split, after, limit)
        self.scanned += len(found)
        return found

    def scan_references(
        self, split: ScanSplit[ReferencePosition], after: ReferencePosition | None, limit: int
    ) -> list[ReferenceKey]:
        found = super().scan_references(split, after, limit)
        self.scanned += len(found)
        return found


def make_realm(store: Store, realm: str) -> None:
    RealmRegistry(store).create_realm(realm)
    bootstrap(RealmRegistry(store), realm, HASH)


def request(table: str, **options: Any) -> ReadRequest:
    return ReadRequest(url="", table=table, columns=chosen(table, options.pop("columns", ())), **options)


def bundles(store: Store, asked: ReadRequest, filters: Sequence[Filter] = ()) -> list[list[ScanPartition]]:
    """What each task would read."""
    selection, _ = select(asked.table, filters)
    pins = pin_states(store, asked) if TABLES[asked.table].has_states else []
    return divided(store, asked, selection, tenants(store, asked), pins)


def rows_of(store: Store, asked: ReadRequest, filters: Sequence[Filter] = ()) -> list[Row]:
    """What Spark gets for a query, before it looks at the conditions that are left to it."""
    selection, _ = select(asked.table, filters)
    batches = (batch for bundle in bundles(store, asked, filters) for batch in read_from(store, asked, selection, bundle))
    return [row for batch in batches for row in batch.to_pylist()]
