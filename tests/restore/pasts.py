"""A realm with a past: what was put, dropped, moved and deleted, hour by hour."""

from __future__ import annotations

from functools import cache

from fake_clock import FakeClock
from headwater import Store
from headwater.catalogs import Catalog, Catalogs, ContentKey, Delete, IcebergTable, Put
from headwater.clock import Micros
from headwater.jobs import RESTORE, run_restore
from headwater.realms import CredentialsHash, Realm, RealmRegistry, bootstrap, hash_credentials, new_credentials
from headwater.restore import RestorePlan, RestoreRequest, RestoreTarget, plan_restoration
from headwater.store import ObjectId, RealmStore
from headwater.tasks import LeaseWatch, TaskLease, TaskQueue

MINUTE = 60.0


@cache
def credentials() -> CredentialsHash:
    """The same for all realms: hashing takes its time, as it must."""
    return hash_credentials(new_credentials())


def make_realm(store: Store) -> Realm:
    RealmRegistry(store).create_realm("acme")
    return bootstrap(RealmRegistry(store), "acme", credentials())


def rows_of(store: Store) -> RealmStore:
    return RealmRegistry(store).open_realm("acme")


def catalogs_of(store: Store) -> Catalogs:
    return Catalogs(rows_of(store))


def lake_of(store: Store) -> Catalog:
    return catalogs_of(store).open_catalog("lake")


def put(catalog: Catalog, table: str, version: int = 1, *, branch: str = "main") -> ObjectId:
    """Commit a version of a table; returns the commit."""
    key = ContentKey.of(table)
    there = catalog.get_content(branch, key)
    location = f"s3://lake/{table}/metadata/{version}.json"
    content = IcebergTable(id=None if there is None else there.id, metadata_location=location)
    done = catalog.commit(branch, [Put(key, content)], message=f"{table} v{version}")
    assert done.commit_id is not None
    return done.commit_id


def drop(catalog: Catalog, table: str, *, branch: str = "main") -> None:
    catalog.commit(branch, [Delete(ContentKey.of(table))], message=f"drop {table}")


def contents(catalog: Catalog, ref: str = "main") -> dict[str, str]:
    """The tables by key, each with its metadata."""
    keys = [entry.key for entry in catalog.entries(ref).entries]
    found = catalog.get_contents(ref, keys)
    return {str(key): content.metadata_location for key, content in found.items() if isinstance(content, IcebergTable)}


def passed(clock: FakeClock) -> Micros:
    """A moment after all that was done so far and before all that follows."""
    clock.advance(1)
    moment = clock.now()
    clock.advance(1)
    return moment


def request(reference: str, to: Micros | ObjectId, *, is_commit: bool = False, prune: bool = False) -> RestoreRequest:
    aim = RestoreTarget(commit=ObjectId(to)) if is_commit else RestoreTarget(time=Micros(to))
    return RestoreRequest(reference=reference, aim=aim, prune=prune)


def planned(store: Store, wanted: RestoreRequest) -> RestorePlan:
    return plan_restoration(rows_of(store), wanted)


def submitted(store: Store, wanted: RestoreRequest) -> ObjectId:
    realm = RealmRegistry(store).read_realm("acme")
    return (
        TaskQueue(store)
        .submit_task(RESTORE, realm=realm.id, realm_key=realm.key, subject=wanted.reference, arguments=wanted.arguments())
        .id
    )


def claimed(store: Store, task: ObjectId) -> TaskLease:
    claim = TaskQueue(store).claim_task(task, "test", LeaseWatch(store.clock, store.settings.task_lease_seconds))
    assert claim is not None
    return claim


def restored(store: Store, wanted: RestoreRequest) -> dict[str, object]:
    """Restore as a task; returns its outcome."""
    claim = claimed(store, submitted(store, wanted))
    outcome = run_restore(store, claim)
    claim.finish_task(outcome)
    return outcome
