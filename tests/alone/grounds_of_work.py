"""Something to do for each kind of task: what there is before, the task that asks for it, and what must be true once it has ended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from engines.model import Kept, garbage_is_gone, heads_can_be_read, purged_realms_have_no_rows
from fake_clock import FakeClock
from headwater.catalogs import Catalog, Catalogs, ContentKey, IcebergTable, Put
from headwater.fsck import FindingWeight, check_store
from headwater.gc import collect_realm
from headwater.jobs import COLLECT, EXPORT, LOAD, PURGE, run_export
from headwater.realms import HistoryRetention, RealmRegistry, RealmState, bootstrap, hash_credentials, new_credentials
from headwater.store import ObjectId, Store
from headwater.tasks import TaskQueue

__all__ = ["HOUR", "ROOT", "WORKS", "Work", "faults_of_realm", "faults_of_store", "lake", "make_garbage", "make_realm"]

HOUR = 3600.0
ROOT = hash_credentials(new_credentials())


@dataclass(frozen=True, slots=True)
class Work:
    """One kind of work.

    submit        prepares an empty store, and submits the task
    faults        what is wrong once the task has ended
    """

    submit: Callable[[Store, FakeClock, Path], ObjectId]
    faults: Callable[[Store, FakeClock, Path], list[str]]


def make_realm(store: Store, name: str = "acme") -> Catalog:
    """An ACTIVE realm that keeps two commits of everything, and its empty catalog."""
    realms = RealmRegistry(store)
    realms.create_realm(name, retention=HistoryRetention(content_commits=2, content_age_seconds=0, reference_commits=2))
    bootstrap(realms, name, ROOT)
    Catalogs(realms.open_realm(name)).create_catalog("lake", base_location="s3://lake/")
    return lake(store, name)


def lake(store: Store, name: str = "acme") -> Catalog:
    return Catalogs(RealmRegistry(store).open_realm(name)).open_catalog("lake")


def make_garbage(catalog: Catalog, clock: FakeClock, *, versions: int = 6) -> None:
    """Versions of a table, and a branch that is deleted; all of it older than the graces in the end."""
    for version in range(versions):
        key = ContentKey.of("orders")
        there = catalog.get_content(None, key)
        table = IcebergTable(id=None if there is None else there.id, metadata_location=f"s3://lake/orders/{version}.json")
        catalog.commit(None, [Put(key, table)])
    catalog.create_branch("gone", "main")
    catalog.commit("gone", [Put(ContentKey.of("customers"), IcebergTable(metadata_location="s3://lake/customers.json"))])
    catalog.delete_branch("gone")
    clock.advance(HOUR)


def faults_of_store(store: Store) -> list[str]:
    """What is wrong with a store, by fsck and by a walk that is not ours. Left-overs, which harm nobody, are not."""
    findings = [
        f"{found.code} {found.realm} {found.subject}: {found.message}"
        for found in check_store(store)
        if found.weight != FindingWeight.LEFTOVER
    ]
    return findings + heads_can_be_read(store) + purged_realms_have_no_rows(store)


def faults_of_realm(store: Store, clock: FakeClock, name: str = "acme") -> list[str]:
    """The same, and what one more collection leaves: the one before may have pushed commits out of what is kept, by its own."""
    clock.advance(HOUR)
    collect_realm(store, name)
    orders = lake(store, name).get_content(None, ContentKey.of("orders"))
    wrong = [] if getattr(orders, "metadata_location", "").endswith("/5.json") else [f"orders of {name} is {orders}"]
    return wrong + faults_of_store(store) + garbage_is_gone(store, name, Kept(commits=2))


def _submit_collection(store: Store, clock: FakeClock, folder: Path) -> ObjectId:
    make_garbage(make_realm(store), clock)
    return TaskQueue(store).submit_task(COLLECT, realm="acme", realm_key=RealmRegistry(store).read_realm("acme").key).id


def _submit_purge(store: Store, clock: FakeClock, folder: Path) -> ObjectId:
    make_garbage(make_realm(store), clock)
    realms = RealmRegistry(store)
    inactive = realms.move_realm(realms.read_realm("acme"), RealmState.INACTIVE)
    clock.advance(store.settings.purge_hold_seconds + 1)
    purging = realms.move_realm(inactive, RealmState.PURGING)
    return TaskQueue(store).submit_task(PURGE, realm="acme", realm_key=purging.key).id


def _purge_faults(store: Store, clock: FakeClock, folder: Path) -> list[str]:
    realm = RealmRegistry(store).read_realm("acme")
    wrong = [] if realm.state is RealmState.PURGED else [f"the realm is {realm.state}"]
    return wrong + ([] if RealmRegistry(store).is_realm_empty(realm) else ["the realm has rows"]) + faults_of_store(store)


def _submit_export(store: Store, clock: FakeClock, folder: Path) -> ObjectId:
    make_garbage(make_realm(store), clock)
    arguments = {"file": str(folder / "acme.archive")}
    key = RealmRegistry(store).read_realm("acme").key
    return TaskQueue(store).submit_task(EXPORT, realm="acme", realm_key=key, subject=arguments["file"], arguments=arguments).id


def _export_faults(store: Store, clock: FakeClock, folder: Path) -> list[str]:
    """One file, and nothing pinned any more."""
    left = sorted(path.name for path in folder.iterdir())
    return ([] if left == ["acme.archive"] else [f"files: {left}"]) + faults_of_store(store)


def _submit_load(store: Store, clock: FakeClock, folder: Path) -> ObjectId:
    tasks = TaskQueue(store)
    claim = tasks.claim_task(_submit_export(store, clock, folder), "an exporter")
    assert claim is not None
    claim.finish_task(run_export(store, claim))
    return tasks.submit_task(LOAD, realm="copy", arguments={"file": str(folder / "acme.archive"), "inactive": False}).id


def _load_faults(store: Store, clock: FakeClock, folder: Path) -> list[str]:
    there = RealmRegistry(store).read_realm("copy")
    if there.state is not RealmState.ACTIVE:
        return [f"the realm is {there.state}"]
    same = lake(store, "copy").get_content(None, ContentKey.of("orders")) == lake(store).get_content(
        None, ContentKey.of("orders")
    )
    return ([] if same else ["the copy is another"]) + faults_of_realm(store, clock, "copy")


WORKS = {
    "gc": Work(_submit_collection, lambda store, clock, folder: faults_of_realm(store, clock)),
    "purge": Work(_submit_purge, _purge_faults),
    "export": Work(_submit_export, _export_faults),
    "load": Work(_submit_load, _load_faults),
}
