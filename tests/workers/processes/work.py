"""Real work for each kind of task, enough of it to be interrupted, and what must be true once it is done."""

from __future__ import annotations

import json
import time
import uuid
from dataclasses import dataclass
from pathlib import Path

from headwater.catalogs import Catalogs, ContentKey, ContentType, ImportSpec, Namespace
from headwater.realms import Realm, RealmRegistry, RealmState, bootstrap, hash_credentials, new_credentials
from headwater.reconcile.observed_state import import_arguments, import_subject
from headwater.store import ObjectId, Store
from headwater.tasks import TaskQueue

__all__ = ["Collection", "Import", "Purge", "Work", "make_realm", "write_warehouse"]

ROWS = 5000
TABLES = 600


class Work:
    """Work that a task was submitted for."""

    task: ObjectId

    def check(self, store: Store) -> None:
        """Assert that it is done, and done right."""
        raise NotImplementedError


@dataclass(frozen=True)
class Collection(Work):
    """Rows that nothing reaches, in a realm with a catalog that is kept."""

    task: ObjectId

    @classmethod
    def prepare(cls, store: Store, folder: Path, *, garbage: int = ROWS) -> Collection:
        realm = make_realm(store, garbage=garbage)
        time.sleep(2.2)  # the writer's grace
        return cls(TaskQueue(store).submit_task("gc", realm=realm.id, realm_key=realm.key).id)

    def check(self, store: Store) -> None:
        rows = RealmRegistry(store).open_realm("acme")
        assert Catalogs(rows).open_catalog("lake").definition.name == "lake"
        assert not [key for batch in rows.scan_objects() for key in batch if key.type == Namespace.type_name]


@dataclass(frozen=True)
class Purge(Work):
    """A realm in PURGING."""

    task: ObjectId
    key: int

    @classmethod
    def prepare(cls, store: Store, folder: Path, *, garbage: int = ROWS) -> Purge:
        realm = make_realm(store, garbage=garbage)
        realms = RealmRegistry(store)
        inactive = realms.move_realm(realms.read_realm("acme"), RealmState.INACTIVE)
        time.sleep(1.1)  # the hold
        realms.move_realm(inactive, RealmState.PURGING)
        return cls(TaskQueue(store).submit_task("purge", realm=realm.id, realm_key=realm.key).id, realm.key)

    def check(self, store: Store) -> None:
        realm = RealmRegistry(store).read_realm("acme")
        assert realm.state is RealmState.PURGED
        assert store.rows(realm.id, realm.key).is_empty()


@dataclass(frozen=True)
class Import(Work):
    """Tables in a warehouse, one commit each."""

    task: ObjectId

    @classmethod
    def prepare(cls, store: Store, folder: Path) -> Import:
        realm = make_realm(store)
        spec = ImportSpec(name="initial", locations=(write_warehouse(folder / "warehouse", tables=TABLES),))
        catalogs = Catalogs(RealmRegistry(store).open_realm("acme"))
        definition = catalogs.update_catalog(catalogs.read_catalog("lake"), imports=(spec,), allowed_locations=spec.locations)
        submitted = TaskQueue(store).submit_task(
            "import",
            realm=realm.id,
            realm_key=realm.key,
            subject=import_subject("lake", "initial"),
            arguments=import_arguments(definition, spec),
        )
        return cls(submitted.id)

    def check(self, store: Store) -> None:
        catalog = Catalogs(RealmRegistry(store).open_realm("acme")).open_catalog("lake")
        puts = [operation.key for entry in catalog.log() for operation in entry.operations]
        tables = [key for key in puts if key != ContentKey(("sales",))]
        assert catalog.count(content_type=ContentType.ICEBERG_TABLE) == TABLES
        assert sorted(tables) == sorted(set(tables)), "a table was put twice"


def make_realm(store: Store, name: str = "acme", *, garbage: int = 0) -> Realm:
    """An ACTIVE realm with an empty catalog, and rows that nothing reaches."""
    realms = RealmRegistry(store)
    realms.create_realm(name)
    bootstrap(realms, name, hash_credentials(new_credentials()))
    rows = realms.open_realm(name)
    Catalogs(rows).create_catalog("lake", base_location="s3://lake/")
    rows.write_objects([(rows.new_id(), Namespace()) for _ in range(garbage)])
    return realms.read_realm(name)


def write_warehouse(folder: Path, *, tables: int) -> str:
    """Empty Iceberg tables in one namespace; returns the folder's URL."""
    for number in range(tables):
        _write_table(folder / "sales" / f"table{number}")
    return folder.as_uri()


def _write_table(directory: Path) -> None:
    metadata = {
        "format-version": 2,
        "table-uuid": str(uuid.uuid4()),
        "location": directory.as_uri(),
        "last-sequence-number": 0,
        "last-updated-ms": 1_750_000_000_000,
        "last-column-id": 0,
        "schemas": [{"type": "struct", "schema-id": 0, "fields": []}],
        "current-schema-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "default-spec-id": 0,
        "last-partition-id": 999,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "default-sort-order-id": 0,
        "properties": {},
        "current-snapshot-id": -1,
        "snapshots": [],
        "snapshot-log": [],
        "metadata-log": [],
    }
    (directory / "metadata").mkdir(parents=True)
    (directory / "metadata" / "v1.metadata.json").write_text(json.dumps(metadata))
