"""A realm with one catalog, and what a damaged database, a lost answer or a killed process does to it."""

from __future__ import annotations

import dataclasses
from functools import cache

import msgspec

from faulty_backend import FaultyBackend
from headwater.catalogs import Catalog, Catalogs, ContentKey, IcebergTable, Put
from headwater.clock import Clock
from headwater.fsck import FindingCode, FsckFinding, check_store
from headwater.realms import (
    CredentialsHash,
    HistoryRetention,
    Realm,
    RealmRegistry,
    RealmState,
    bootstrap,
    hash_credentials,
    new_credentials,
)
from headwater.settings import Settings
from headwater.store import Backend, ObjectId, RealmStore, Store

REALM = "acme"
HOUR = 3600.0


def open_on(backend: Backend | FaultyBackend, settings: Settings, clock: Clock) -> Store:
    """A process of its own: its cache and its node are not shared."""
    return Store(backend, url="memory://", settings=settings, clock=clock)  # type: ignore[arg-type]  # faulty is any backend


def make_realm(store: Store, *, commits: int = 1) -> Realm:
    """An ACTIVE realm that keeps so much history."""
    realms = RealmRegistry(store)
    realms.create_realm(REALM, retention=HistoryRetention(content_commits=commits, content_age_seconds=0.0))
    return bootstrap(realms, REALM, credentials())


@cache
def credentials() -> CredentialsHash:
    """Hashed once: that is meant to take long."""
    return hash_credentials(new_credentials())


def rows_of(store: Store) -> RealmStore:
    return RealmRegistry(store).open_realm(REALM)


def make_lake(store: Store) -> Catalog:
    Catalogs(rows_of(store)).create_catalog("lake", base_location="s3://lake/")
    return Catalogs(rows_of(store)).open_catalog("lake")


def put(catalog: Catalog, version: int, *tables: str, branch: str = "main", table_uuid: str | None = None) -> ObjectId:
    """Commit a version of tables, of "orders" where none is named; returns the commit."""
    puts = []
    for table in tables or ("orders",):
        there = catalog.get_content(branch, ContentKey.of(table))
        location = f"s3://lake/{table}/v{version}.json"
        content = IcebergTable(id=None if there is None else there.id, metadata_location=location, table_uuid=table_uuid)
        puts.append(Put(ContentKey.of(table), content))
    done = catalog.commit(branch, puts, message=f"v{version}")
    assert done.commit_id is not None
    return done.commit_id


def table_of(catalog: Catalog, table: str = "orders", *, branch: str = "main") -> ObjectId:
    """The object that holds a table."""
    head = catalog.resolve(branch)
    value = None if head is None else head.index("content").get(ContentKey.of(table).to_index())
    assert value is not None and value.object_id is not None
    return value.object_id


def lose(rows: RealmStore, object_id: ObjectId) -> None:
    """The rows of an object are gone."""
    rows.delete_unchanged([key for batch in rows.scan_objects() for key in batch if key.id == object_id])
    rows.store.cache.clear()


def alter(store: Store, rows: RealmStore, object_id: ObjectId) -> None:
    """One byte of an object is another."""
    [row] = store.backend.read_objects(rows.key, [(object_id, 0)])
    assert row is not None
    value = row.value[:-1] + bytes([row.value[-1] ^ 1])
    store.backend.write_objects([msgspec.structs.replace(row, value=value)])
    store.cache.clear()


def lose_row(store: Store, rows: RealmStore, reference: str) -> None:
    row = rows.find_row(reference)
    assert row is not None
    store.backend.remove_reference(row)


def point_at(store: Store, rows: RealmStore, reference: str, pointer: ObjectId) -> None:
    """As somebody did who asked nobody."""
    row = rows.find_row(reference)
    assert row is not None
    store.backend.swap_reference(row, dataclasses.replace(row, pointer=pointer, version=row.version + 1))
    store.cache.clear()


def findings(store: Store, realm: str | None = REALM) -> dict[FindingCode, FsckFinding]:
    """What fsck finds, by its code; a code that is found twice is an error."""
    found = check_store(store, realm=realm)
    assert all(one.repair and one.message and one.subject for one in found)
    by_code = {one.code: one for one in found}
    assert len(by_code) == len(found), found
    return by_code


def deactivate(store: Store) -> Realm:
    realms = RealmRegistry(store)
    return realms.move_realm(realms.read_realm(REALM), RealmState.INACTIVE)
