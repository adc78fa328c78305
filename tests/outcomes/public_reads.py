"""Every public call that only reads, on the store of ``fault_world``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from fault_world import ORDERS, TABLE, World, claim_of

from headwater.catalogs import Catalog, Catalogs, Claims, NameKind, content_ids, count_types, reference_names, reference_text
from headwater.catalogs.names import content_reference
from headwater.commits import (
    Head,
    find_ahead,
    read_changes,
    read_collection,
    read_commit,
    read_cuts,
    read_head,
    read_log,
    read_pins,
)
from headwater.maintenance import check_collectable, check_store, explain, list_runs
from headwater.maintenance.restoring import Aim, Request, plan_restoration
from headwater.realms import Realms, RealmState, find_root
from headwater.reconcile import known_realms
from headwater.store import ObjectId, RealmStore
from headwater.tasks import Tasks, entry_faults, unreadable_tasks

__all__ = ["READS", "Reader", "reader_of"]


class Reader(NamedTuple):
    """What reads, opened before anything fails."""

    world: World
    realms: Realms
    catalogs: Catalogs
    lake: Catalog
    claims: Claims
    tasks: Tasks
    rows: RealmStore
    main: str
    head: Head
    task: ObjectId


def reader_of(world: World) -> Reader:
    lake, rows = world.lake, world.rows
    main = content_reference(lake.definition.id, NameKind.BRANCH, "main")
    now = read_head(rows, main)
    assert now is not None
    return Reader(world, world.realms, world.catalogs, lake, world.claims, world.tasks, rows, main, now, world.task("waiting"))


READS: Mapping[str, Callable[[Reader], Any]] = {
    "Realms.find": lambda it: it.realms.find("acme"),
    "Realms.read": lambda it: it.realms.read("acme"),
    "Realms.list": lambda it: it.realms.list(),
    "Realms.is_empty": lambda it: it.realms.is_empty(it.realms.read("acme")),
    "Realms.purged_keys": lambda it: it.realms.purged_keys(),
    "Realms.open": lambda it: it.realms.open("acme"),
    "Realms.open_for": lambda it: it.realms.open_for("acme", RealmState.ACTIVE),
    "find_root": lambda it: find_root(it.realms, "acme"),
    "Catalogs.find": lambda it: it.catalogs.find("lake"),
    "Catalogs.read": lambda it: it.catalogs.read("lake"),
    "Catalogs.list": lambda it: it.catalogs.list(),
    "Catalogs.open": lambda it: it.catalogs.open("lake"),
    "Catalogs.deleted": lambda it: it.catalogs.deleted(),
    "Catalogs.read_deleted": lambda it: it.catalogs.read_deleted("pond"),
    "Catalog.branches": lambda it: it.lake.branches(),
    "Catalog.tags": lambda it: it.lake.tags(),
    "Catalog.branch": lambda it: it.lake.branch("main"),
    "Catalog.tag": lambda it: it.lake.tag("v1"),
    "Catalog.deleted_branches": lambda it: it.lake.deleted_branches(),
    "Catalog.deleted_tags": lambda it: it.lake.deleted_tags(),
    "Catalog.get": lambda it: it.lake.get("main", ORDERS),
    "Catalog.get_many": lambda it: it.lake.get_many("main", [ORDERS]),
    "Catalog.metadata": lambda it: it.lake.metadata("main", ORDERS),
    "Catalog.locations": lambda it: it.lake.locations("main", [ORDERS]),
    "Catalog.known_metadata": lambda it: it.lake.known_metadata().find_many(["s3://lake/orders/v1.json"]),
    "Catalog.find_by_id": lambda it: it.lake.find_by_id("main", [TABLE]),
    "Catalog.entries": lambda it: it.lake.entries("main"),
    "Catalog.diff": lambda it: it.lake.diff("main", "dev"),
    "Catalog.count": lambda it: it.lake.count("main"),
    "Catalog.counts": lambda it: it.lake.counts("main"),
    "Catalog.log": lambda it: list(it.lake.log("main")),
    "Catalog.history": lambda it: list(it.lake.history(ORDERS, "main")),
    "Catalog.resolve": lambda it: it.lake.resolve("main"),
    "Claims.check": lambda it: it.claims.check([claim_of(it.world, TABLE, "s3://lake/other")]),
    "Claims.find": lambda it: it.claims.find([TABLE]),
    "Claims.find_holders": lambda it: it.claims.find_holders(["s3://lake/orders/data"]),
    "Claims.has_taken": lambda it: it.claims.has_taken(claim_of(it.world, TABLE, "s3://lake/orders")),
    "Claims.find_location": lambda it: it.claims.find_location("s3://lake/orders"),
    "Claims.find_locations": lambda it: it.claims.find_locations(["s3://lake/orders"]),
    "content_ids": lambda it: list(content_ids(it.head)),
    "count_types": lambda it: count_types(it.head),
    "reference_names": lambda it: reference_names(it.rows),
    "reference_text": lambda it: reference_text(it.rows, it.main),
    "Tasks.read": lambda it: it.tasks.read(it.task),
    "Tasks.active": lambda it: it.tasks.active("gc", "acme", "waiting"),
    "Tasks.find_active": lambda it: it.tasks.find_active("gc", "acme", "waiting"),
    "Tasks.list": lambda it: it.tasks.list(),
    "Tasks.of_realm": lambda it: it.tasks.of_realm("acme"),
    "Tasks.figures": lambda it: it.tasks.figures(),
    "unreadable_tasks": lambda it: unreadable_tasks(it.world.store.system),
    "entry_faults": lambda it: list(entry_faults(it.world.store.system)),
    "head": lambda it: read_head(it.rows, it.main, fresh=True),
    "log": lambda it: list(read_log(it.rows, it.main)),
    "changes": lambda it: list(read_changes(it.rows, it.main)),
    "find_ahead": lambda it: find_ahead(it.rows, it.head.id),
    "pins": lambda it: read_pins(it.rows),
    "read_collection": lambda it: read_collection(it.rows),
    "read_commit": lambda it: read_commit(it.rows, it.head.id),
    "read_cuts": lambda it: read_cuts(it.rows, None),
    "list_runs": lambda it: list_runs(it.world.store),
    "check_store": lambda it: check_store(it.world.store, realm="acme"),
    "check_collectable": lambda it: check_collectable(it.world.store, "acme"),
    "explain": lambda it: explain(it.world.store, "acme", it.head.id),
    "plan_restoration": lambda it: plan_restoration(it.rows, Request(reference="lake/main", aim=Aim(commit=it.head.id))),
    "known_realms": lambda it: known_realms(it.world.store),
}
