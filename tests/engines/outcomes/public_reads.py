"""Every public call that only reads, on the store of ``fault_world``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from fault_world import ORDERS, TABLE, World, claim_of

from headwater.catalogs import (
    Catalog,
    CatalogRoles,
    Catalogs,
    RefKind,
    TableClaims,
    content_ids,
    count_types,
    find_homes,
    listed_definitions,
    reference_names,
    reference_text,
)
from headwater.catalogs.registry import content_reference
from headwater.clock import Micros
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
from headwater.fsck import check_store
from headwater.fsck.explanation import explain
from headwater.gc import check_collectable
from headwater.jobs.task_runs import list_runs
from headwater.policies import (
    PolicyKind,
    StopScope,
    check_not_stopped,
    find_policy,
    find_policy_table,
    find_stops_around,
    list_policies,
    list_stops,
    read_scope,
    read_table_policies,
)
from headwater.realms import (
    RealmRegistry,
    RealmState,
    find_listed_principal,
    find_principal,
    find_root,
    list_principal_roles,
    list_principals,
    read_principal,
    read_principal_role,
    read_principals,
    read_realm_grants,
)
from headwater.reconcile import known_realms
from headwater.restore import RestoreRequest, RestoreTarget, plan_restoration
from headwater.store import ObjectId, RealmStore
from headwater.tasks import TaskQueue, entry_faults, unreadable_tasks
from request_keys import make_request

__all__ = ["READS", "Reader", "reader_of"]


class Reader(NamedTuple):
    """What reads, opened before anything fails."""

    world: World
    realms: RealmRegistry
    catalogs: Catalogs
    lake: Catalog
    claims: TableClaims
    tasks: TaskQueue
    rows: RealmStore
    main: str
    head: Head
    task: ObjectId


def reader_of(world: World) -> Reader:
    lake, rows = world.lake, world.rows
    main = content_reference(lake.definition.id, RefKind.BRANCH, "main")
    now = read_head(rows, main)
    assert now is not None
    return Reader(world, world.realms, world.catalogs, lake, world.claims, world.tasks, rows, main, now, world.task("waiting"))


READS: Mapping[str, Callable[[Reader], Any]] = {
    "RealmRegistry.find_realm": lambda it: it.realms.find_realm("acme"),
    "RealmRegistry.read_realm": lambda it: it.realms.read_realm("acme"),
    "RealmRegistry.list_realms": lambda it: it.realms.list_realms(),
    "RealmRegistry.has_realms": lambda it: it.realms.has_realms(),
    "RealmRegistry.is_realm_empty": lambda it: it.realms.is_realm_empty(it.realms.read_realm("acme")),
    "RealmRegistry.purged_keys": lambda it: it.realms.purged_keys(),
    "RealmRegistry.open_realm": lambda it: it.realms.open_realm("acme"),
    "RealmRegistry.open_realm_for": lambda it: it.realms.open_realm_for("acme", RealmState.ACTIVE),
    "find_principal": lambda it: find_principal(it.realms, "acme", "root"),
    "read_principals": lambda it: read_principals(it.rows),
    "find_listed_principal": lambda it: find_listed_principal(it.rows, read_principals(it.rows), "root"),
    "read_principal": lambda it: read_principal(it.realms, "acme", "root"),
    "read_principal_role": lambda it: read_principal_role(it.realms, "acme", "service_admin"),
    "list_principals": lambda it: list_principals(it.realms, "acme"),
    "list_principal_roles": lambda it: list_principal_roles(it.realms, "acme"),
    "read_realm_grants": lambda it: read_realm_grants(it.rows),
    "CatalogRoles.read_role": lambda it: CatalogRoles(it.rows, it.lake.definition).read_role("catalog_admin"),
    "CatalogRoles.list_roles": lambda it: CatalogRoles(it.rows, it.lake.definition).list_roles(),
    "CatalogRoles.read_access": lambda it: CatalogRoles(it.rows, it.lake.definition).read_access(),
    "find_root": lambda it: find_root(it.realms, "acme"),
    "Catalogs.find_catalog": lambda it: it.catalogs.find_catalog("lake"),
    "Catalogs.read_catalog": lambda it: it.catalogs.read_catalog("lake"),
    "Catalogs.list_catalogs": lambda it: it.catalogs.list_catalogs(),
    "Catalogs.open_catalog": lambda it: it.catalogs.open_catalog("lake"),
    "Catalogs.list_deleted": lambda it: it.catalogs.list_deleted(),
    "Catalogs.read_deleted": lambda it: it.catalogs.read_deleted("pond"),
    "Catalog.open": lambda it: Catalog.open(it.rows, "lake"),
    "Catalog.branches": lambda it: it.lake.branches(),
    "Catalog.tags": lambda it: it.lake.tags(),
    "Catalog.branch": lambda it: it.lake.branch("main"),
    "Catalog.tag": lambda it: it.lake.tag("v1"),
    "Catalog.deleted_branches": lambda it: it.lake.deleted_branches(),
    "Catalog.deleted_tags": lambda it: it.lake.deleted_tags(),
    "Catalog.get_content": lambda it: it.lake.get_content("main", ORDERS),
    "Catalog.get_contents": lambda it: it.lake.get_contents("main", [ORDERS]),
    "Catalog.metadata": lambda it: it.lake.metadata("main", ORDERS),
    "Catalog.locations": lambda it: it.lake.locations("main", [ORDERS]),
    "Catalog.known_metadata": lambda it: it.lake.known_metadata().find_many(["s3://lake/orders/v1.json"]),
    "Catalog.find_by_id": lambda it: it.lake.find_by_id("main", [TABLE]),
    "Catalog.entries": lambda it: it.lake.entries("main"),
    "Catalog.find_entries": lambda it: it.lake.find_entries("main", [ORDERS]),
    "Catalog.find_changes": lambda it: it.lake.find_changes("main", "dev", [ORDERS]),
    "Catalog.relation": lambda it: it.lake.relation("dev"),
    "Catalog.recent_pointers": lambda it: it.lake.recent_pointers("main", scan=9),
    "Catalog.children": lambda it: it.lake.children("main", None),
    "Catalog.read_target": lambda it: it.lake.read_target("main"),
    "Catalog.find_request": lambda it: it.lake.find_request("main", it.lake.resolve("main"), make_request()),
    "Catalog.diff": lambda it: it.lake.diff("main", "dev"),
    "Catalog.count": lambda it: it.lake.count("main"),
    "Catalog.counts": lambda it: it.lake.counts("main"),
    "Catalog.log": lambda it: list(it.lake.log("main")),
    "Catalog.history": lambda it: list(it.lake.history(ORDERS, "main")),
    "Catalog.recent_changes": lambda it: list(it.lake.recent_changes(ORDERS, "main", since=Micros(0), within=9)),
    "Catalog.resolve": lambda it: it.lake.resolve("main"),
    "find_homes": lambda it: find_homes(it.rows, it.lake.definition.id),
    "find_policy": lambda it: find_policy(it.rows, it.lake.definition.id, PolicyKind.SNAPSHOTS),
    "list_policies": lambda it: list_policies(it.rows, it.lake.definition.id),
    "find_policy_table": lambda it: find_policy_table(it.lake, ORDERS),
    "read_table_policies": lambda it: read_table_policies(it.rows, it.lake, ORDERS),
    "read_scope": lambda it: read_scope(it.world.store, "acme", "lake"),
    "list_stops": lambda it: list_stops(it.world.store),
    "find_stops_around": lambda it: find_stops_around(it.world.store, StopScope()),
    "check_not_stopped": lambda it: check_not_stopped(it.world.store, "acme", it.realms.read_realm("acme").key),
    "TableClaims.find_conflicts": lambda it: it.claims.find_conflicts([claim_of(it.world, TABLE, "s3://lake/other")]),
    "TableClaims.find_content_id": lambda it: it.claims.find_content_id(it.lake.definition.id, TABLE),
    "TableClaims.find_content_ids": lambda it: it.claims.find_content_ids(it.lake.definition.id, [TABLE]),
    "TableClaims.find_by_uuid": lambda it: it.claims.find_by_uuid([TABLE]),
    "TableClaims.find_holders": lambda it: it.claims.find_holders(["s3://lake/orders/data"]),
    "TableClaims.has_taken": lambda it: it.claims.has_taken(claim_of(it.world, TABLE, "s3://lake/orders")),
    "TableClaims.find_location": lambda it: it.claims.find_location("s3://lake/orders"),
    "TableClaims.find_locations": lambda it: it.claims.find_locations(["s3://lake/orders"]),
    "listed_definitions": lambda it: listed_definitions(it.rows),
    "content_ids": lambda it: list(content_ids(it.head)),
    "count_types": lambda it: count_types(it.head),
    "reference_names": lambda it: reference_names(it.rows),
    "reference_text": lambda it: reference_text(it.rows, it.main),
    "TaskQueue.read_task": lambda it: it.tasks.read_task(it.task),
    "TaskQueue.active_tasks": lambda it: it.tasks.active_tasks("gc", "acme", "waiting"),
    "TaskQueue.find_active": lambda it: it.tasks.find_active("gc", "acme", "waiting"),
    "TaskQueue.list_tasks": lambda it: it.tasks.list_tasks(),
    "TaskQueue.of_realm": lambda it: it.tasks.of_realm("acme"),
    "TaskQueue.read_figures": lambda it: it.tasks.read_figures(),
    "unreadable_tasks": lambda it: unreadable_tasks(it.world.store.system),
    "entry_faults": lambda it: list(entry_faults(it.world.store.system)),
    "read_head": lambda it: read_head(it.rows, it.main, fresh=True),
    "read_log": lambda it: list(read_log(it.rows, it.main)),
    "read_changes": lambda it: list(read_changes(it.rows, it.main)),
    "find_ahead": lambda it: find_ahead(it.rows, it.head.id),
    "read_pins": lambda it: read_pins(it.rows),
    "read_collection": lambda it: read_collection(it.rows),
    "read_commit": lambda it: read_commit(it.rows, it.head.id),
    "read_cuts": lambda it: read_cuts(it.rows, None),
    "list_runs": lambda it: list_runs(it.world.store),
    "check_store": lambda it: check_store(it.world.store, realm="acme"),
    "check_collectable": lambda it: check_collectable(it.world.store, "acme"),
    "explain": lambda it: explain(it.world.store, "acme", it.head.id),
    "plan_restoration": lambda it: plan_restoration(
        it.rows, RestoreRequest(reference="lake/main", aim=RestoreTarget(commit=it.head.id))
    ),
    "known_realms": lambda it: known_realms(it.world.store),
}
