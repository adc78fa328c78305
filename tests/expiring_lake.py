"""A lake whose tables get snapshots a minute apart, and runs of expiry on it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

from fake_clock import FakeClock
from headwater import Store
from headwater.catalogs import Catalog, Catalogs, ContentKey
from headwater.expiry import AskedRules, CatalogExpiry, ExpiryCounts, ExpiryRules, ExpiryWish
from headwater.iceberg.table_storage import TableStorage
from headwater.iceberg_catalog import IcebergCatalog, LoadedTable, TableCommit, TableCreation
from headwater.realms import RealmRegistry
from headwater.store import RealmStore

SCHEMA = {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "id", "required": True, "type": "long"}]}
MINUTE = 60.0
LAST = AskedRules(max_age_ms=0, keep=1)


@dataclass
class ExpiringLake:
    """
    homes         the tables that the catalog is the home of: those that were created here
    """

    store: Store
    clock: FakeClock
    warehouse: Path
    homes: set[UUID] = field(default_factory=set)

    @property
    def rows(self) -> RealmStore:
        return RealmRegistry(self.store).open_realm("acme")

    @property
    def catalog(self) -> Catalog:
        return Catalogs(self.rows).open_catalog("lake")

    def key(self, name: str) -> ContentKey:
        return ContentKey.of("sales", name)

    def on(self, branch: str | None = None) -> IcebergCatalog:
        return IcebergCatalog.open(self.store, "acme", "lake", branch)

    def create(self, name: str, snapshots: int = 0, **fields: Any) -> LoadedTable:
        table = self.on().tables.create(TableCreation(key=self.key(name), schema=SCHEMA, **fields))
        self.homes.add(table.content_id)
        for _ in range(snapshots):
            self.append(name)
        return self.load(name)

    def load(self, name: str, branch: str | None = None) -> LoadedTable:
        return self.on(branch).tables.load(self.key(name))

    def append(self, name: str, *, branch: str | None = None, ref: str = "main") -> int:
        """Add a snapshot a minute after everything else; returns its number: 1 for the first."""
        self.clock.advance(MINUTE)
        document = self.load(name, branch).document
        parent = document.get("refs", {}).get(ref, {}).get("snapshot-id")
        number = document["last-sequence-number"] + 1
        snapshot = {
            "snapshot-id": number,
            "sequence-number": number,
            "timestamp-ms": self.clock.now() // 1000,
            "manifest-list": f"{document['location']}/metadata/snap-{number}.avro",
            "summary": {"operation": "append"},
            "schema-id": 0,
        }
        snapshot |= {} if parent is None else {"parent-snapshot-id": parent}
        self.change(
            name,
            {"action": "add-snapshot", "snapshot": snapshot},
            {"action": "set-snapshot-ref", "ref-name": ref, "type": "branch", "snapshot-id": number},
            branch=branch,
        )
        return number

    def tag(self, name: str, ref: str, number: int, *, branch: str | None = None, **limits: int) -> None:
        update = {"action": "set-snapshot-ref", "ref-name": ref, "type": "tag", "snapshot-id": number}
        self.change(name, update | {limit.replace("_", "-"): value for limit, value in limits.items()}, branch=branch)

    def set_properties(self, name: str, **properties: str) -> None:
        self.change(name, {"action": "set-properties", "updates": properties})

    def change(self, name: str, *updates: dict[str, Any], branch: str | None = None) -> None:
        self.on(branch).tables.commit(TableCommit(self.key(name), [], updates))

    def snapshots(self, name: str, branch: str | None = None) -> list[int]:
        return [snapshot["snapshot-id"] for snapshot in self.load(name, branch).document["snapshots"]]

    def files(self) -> set[str]:
        """The names of the metadata files that are there."""
        return {path.name for path in self.warehouse.rglob("*.metadata.json")}

    def expire(self, rules: ExpiryRules = LAST, **wish: Any) -> ExpiryCounts:
        return self.expiry(rules, **wish).expire()

    def expiry(
        self,
        rules: ExpiryRules = LAST,
        *,
        check: Callable[[], None] = lambda: None,
        fence: Callable[[], None] = lambda: None,
        storage: TableStorage | None = None,
        rows: RealmStore | None = None,
        **wish: Any,
    ) -> CatalogExpiry:
        chosen = ExpiryWish(now=self.clock.now(), rules=rules, is_home=self.homes.__contains__, **wish)
        reached = storage or TableStorage(realm="acme", catalog="lake")
        return CatalogExpiry(rows or self.rows, self.catalog.definition, reached, chosen, check=check, fence=fence)
