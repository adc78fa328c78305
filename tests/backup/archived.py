"""A realm with a catalog whose history is told by times, and archives of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from faulty_backend import FaultyBackend
from headwater.backup import ExportOrder, ExportResult, export_realm
from headwater.catalogs import Catalog, Catalogs, ContentKey, IcebergTable, Put
from headwater.clock import Clock, Micros
from headwater.realms import Realm, RealmRegistry, bootstrap, hash_credentials, new_credentials
from headwater.settings import Settings
from headwater.store import Backend, ObjectId, ScanSplit, Store
from headwater.store.backends.memory import MemoryBackend
from headwater.tasks import TaskLease, TaskQueue

__all__ = ["REALM", "SLACK", "claim_of", "copied", "exported", "make_realm", "open_lake", "open_on", "put", "tables"]

REALM = "acme"
SLACK = 46.0
"""Seconds after which a moment can be read, by the settings of the tests: 15 for a commit, 30 for clocks, and one."""
_HASH = hash_credentials(new_credentials())


def open_on(backend: Backend | FaultyBackend, settings: Settings, clock: Clock) -> Store:
    """A process of its own: its cache and its node are not shared."""
    return Store(backend, url="memory://", settings=settings, clock=clock)  # type: ignore[arg-type]  # faulty is any backend


def copied(backend: Backend) -> MemoryBackend:
    """The same rows in a memory of their own."""
    copy = MemoryBackend()
    for reference in backend.scan_references(ScanSplit(), None, 100_000):
        copy.create_references([row for row in backend.read_references(reference.realm, [reference.name]) if row is not None])
    for key in backend.scan_objects(ScanSplit(), None, 100_000):
        copy.write_objects([row for row in backend.read_objects(key.realm, [(key.id, key.part)]) if row is not None])
    return copy


def make_realm(store: Store) -> Realm:
    """An ACTIVE realm with an empty catalog ``lake``."""
    realms = RealmRegistry(store)
    realms.create_realm(REALM, properties={"team": "data"}, deletion_protection=True)
    realm = bootstrap(realms, REALM, _HASH)
    Catalogs(realms.open_realm(REALM)).create_catalog("lake", base_location="s3://lake/")
    return realm


def open_lake(store: Store, realm: str = REALM) -> Catalog:
    return Catalogs(RealmRegistry(store).open_realm(realm)).open_catalog("lake")


def put(store: Store, *names: str, branch: str = "main", realm: str = REALM) -> ObjectId:
    """Commit new tables."""
    wanted = [Put(ContentKey.of(name), IcebergTable(metadata_location=f"s3://lake/{name}/v1.json")) for name in names]
    done = open_lake(store, realm).commit(branch, wanted, message="put " + ", ".join(names))
    assert done.commit_id is not None
    return done.commit_id


def tables(store: Store, realm: str, branch: str = "main") -> list[str]:
    return [str(entry.key) for entry in open_lake(store, realm).entries(branch).entries]


def exported(
    store: Store, file: Path, *, time: Micros | None = None, realm: str = REALM, task: ObjectId | None = None
) -> ExportResult:
    """An archive of the newest moment that can be read, or of another."""
    return export_realm(store, ExportOrder(realm=realm, file=file, time=time, task=task or store.new_id()))


def claim_of(store: Store, kind: str, realm: str, **arguments: Any) -> TaskLease:
    """The first attempt of a task that was asked for just now."""
    tasks = TaskQueue(store)
    claim = tasks.claim_task(tasks.submit_task(kind, realm=realm, arguments=arguments).id, "worker")
    assert claim is not None
    return claim
