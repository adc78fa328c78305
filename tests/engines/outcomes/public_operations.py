"""Every public operation that writes, each as something that one process does to the store of ``fault_world``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import UUID

from fault_world import (
    ORDERS,
    OTHER_ROOT,
    OTHER_TABLE,
    ROOT,
    SETTINGS,
    TABLE,
    World,
    claim_of,
    claim_task,
)
from msgspec import structs

from extensions import add_widgets
from fake_clock import FakeClock
from headwater.catalogs import (
    CatalogGrant,
    CatalogRoles,
    CommitMeta,
    ContentKey,
    Delete,
    Namespace,
    Put,
    drop_old_requests,
    finish_deletions,
    note_all_known,
    release_claims,
    release_location,
    release_name,
)
from headwater.catalogs.registry import RefKind, content_reference
from headwater.clock import Micros
from headwater.commits import (
    SeriesPart,
    Transaction,
    add_reference,
    assign_reference,
    commit_change,
    commit_series,
    create_reference_at,
    hold_pins,
    mend_time,
    pin_commits,
    remove_reference,
    unpin_commits,
)
from headwater.errors import ConflictError, HeadwaterError, NotFoundError, RefusedError, SwapConflictError
from headwater.fsck import check_store, plan_repairs, repair_realm
from headwater.gc import collect_realm
from headwater.index import IndexValue
from headwater.jobs import request_table_purge, retry_reachable_only
from headwater.jobs.task_runs import Run, record_run
from headwater.policies import (
    MetadataFileRule,
    PolicyKind,
    SnapshotRule,
    StopScope,
    StoredPolicy,
    declare_policies,
    release_policies,
    resume_maintenance,
    set_policy,
    set_snapshot_rule,
    stop_maintenance,
    unset_policy,
    unset_snapshot_rule,
)
from headwater.purge import DroppedTable, PurgeRequest
from headwater.purge.realm_purge import purge_realm
from headwater.realms import (
    RealmManager,
    RealmRegistry,
    RealmState,
    assign_principal_role,
    bootstrap,
    create_principal,
    create_principal_role,
    disable_principal,
    drop_principal,
    drop_principal_role,
    enable_principal,
    grant_on_realm,
    reset_principal,
    revoke_on_realm,
    revoke_sign_in,
    rotate_principal,
    unassign_principal_role,
)
from headwater.reconcile import (
    CatalogManifest,
    FileCredentials,
    ManagerIdentity,
    RealmManifest,
    ReconcileOutcome,
    read_manifest,
    reconcile_catalog,
    reconcile_realm,
    release_realm,
)
from headwater.restore import RestoreRequest, RestoreTarget, restore_state
from headwater.store import ObjectId, RealmId, Store
from headwater.tasks import FollowUpTask, LeaseWatch, TaskQueue, mend_entries
from request_keys import make_request

Act = Callable[[], Any]


@dataclass(frozen=True)
class Operation:
    """One operation.

    covers        the public names that it tries
    make          what it does on a world, after what has to be there before
    already       what it raises, done again when it had happened
    is_resumable  it is done in steps, of which each is done or not: what is done of it stays, and it is done again to its end
    is_contested  who is beaten tries again; otherwise that somebody was faster is what it has to find out
    meet          what the next one who comes along mends by the way
    """

    covers: str
    make: Callable[[World], Act]
    already: tuple[type[HeadwaterError], ...] = ()
    is_resumable: bool = False
    is_contested: bool = True
    meet: Callable[[World], Any] = lambda world: None


def _definite(answer: Any) -> Any:
    """None says that somebody else was faster."""
    if answer is None:
        raise SwapConflictError("somebody was faster")
    return answer


def _put(tx: Transaction) -> None:
    tx.index("things").put(b"thing", IndexValue(None, b"1"))


def _series(world: World) -> Act:
    rows = world.rows
    rows.ensure_reference("things")

    def part(key: bytes) -> SeriesPart[None]:
        return SeriesPart(lambda tx: tx.index("things").put(key, IndexValue(None, key)) and None)

    return lambda: commit_series(rows, "things", lambda head: [part(b"a"), part(b"b")])


def _commit(world: World) -> Act:
    rows = world.rows
    rows.ensure_reference("things")
    return lambda: commit_change(rows, "things", _put, message="put")


def _create_at(world: World) -> Act:
    rows, name = world.rows, content_reference(world.lake.definition.id, RefKind.BRANCH, "main")
    target = rows.read_reference(name).pointer
    assert target is not None
    return lambda: create_reference_at(rows, "things", target, among=[name])


def _assign(world: World) -> Act:
    rows, lake = world.rows, world.lake
    name = content_reference(lake.definition.id, RefKind.BRANCH, "dev")
    head, target = lake.branch("dev").head, lake.branch("main").head
    assert target is not None
    return lambda: assign_reference(
        rows, name, target, expected=head, among=[content_reference(lake.definition.id, RefKind.BRANCH, "main")]
    )


def _mend_time(world: World) -> Act:
    """A commit by a clock that was a day ahead."""
    ahead = FakeClock(world.clock.now() + 86_400_000_000)
    rows = Store(world.raw, url="memory://", settings=SETTINGS, clock=ahead).rows(world.rows.realm, world.rows.key)
    rows.ensure_reference("things")
    commit_change(rows, "things", _put)
    mine = world.rows
    return lambda: mend_time(mine, "things", properties=lambda head: {})


def _pin(world: World) -> Act:
    rows, name = world.rows, content_reference(world.lake.definition.id, RefKind.BRANCH, "main")
    target = rows.read_reference(name).pointer
    assert target is not None
    return lambda: pin_commits(rows, world.task("running"), {target: [name]})


def _hold(world: World) -> Act:
    _pin(world)()
    rows, owner = world.rows, world.task("running")
    return lambda: hold_pins(rows, owner, Micros(2**62))


def _unpin(world: World) -> Act:
    _pin(world)()
    rows, owner = world.rows, world.task("running")
    return lambda: unpin_commits(rows, owner)


def _release_name(world: World) -> Act:
    rows, name = world.rows, content_reference(world.lake.definition.id, RefKind.BRANCH, "late")
    row = rows.find_row(name)
    assert row is not None
    rows.remove_tombstone(row)
    return lambda: release_name(rows, name, older_than=Micros(2**62))


def _release_location(world: World) -> Act:
    """Two places of tables that no branch has."""
    rows, place = world.rows, "s3://lake/old"
    world.claims.take_claims([claim_of(world, UUID(int=77), f"{place}/a"), claim_of(world, OTHER_TABLE, f"{place}/b")])
    return lambda: release_location(rows, place)


def _add_reference(world: World) -> Act:
    rows = world.rows
    return lambda: add_reference(rows, "widgets")


def _remove_reference(world: World) -> Act:
    rows = world.rows
    add_widgets(rows, 2)
    return lambda: remove_reference(rows, "widgets")


def _release_claims(world: World) -> Act:
    rows = world.rows
    return lambda: release_claims(rows, {UUID(int=77)}, older_than=Micros(2**62))


POLICY = StoredPolicy(kind=PolicyKind.METADATA_FILES, catalog_id="", metadata_files=MetadataFileRule(keep=9))
RULE = SnapshotRule(min_to_keep=1)


def _with_policies(act: Callable[[Any, Any], Any]) -> Callable[[World], Act]:
    """With one of metadata files, one of snapshots, and one of a table that no commit has."""

    def make(world: World) -> Act:
        rows, definition = world.rows, world.lake.definition
        set_policy(rows, definition, POLICY)
        set_snapshot_rule(rows, definition, RULE)
        set_snapshot_rule(rows, definition, RULE, content_id=UUID(int=78))
        return lambda: act(rows, definition)

    return make


def _resume(world: World) -> Act:
    store = world.store
    stop_maintenance(store, StopScope(), by="ann")
    return lambda: resume_maintenance(store, StopScope())


def _in_lake(act: Callable[[Any], Any]) -> Callable[[World], Act]:
    def make(world: World) -> Act:
        lake = world.lake
        return lambda: act(lake)

    return make


def _in_catalogs(act: Callable[[Any], Any]) -> Callable[[World], Act]:
    def make(world: World) -> Act:
        catalogs = world.catalogs
        return lambda: act(catalogs)

    return make


def _in_realms(act: Callable[[Any], Any]) -> Callable[[World], Act]:
    def make(world: World) -> Act:
        realms = world.realms
        return lambda: act(realms)

    return make


def _with_task(subject: str, act: Callable[[Any, ObjectId], Any]) -> Callable[[World], Act]:
    def make(world: World) -> Act:
        tasks, task_id = world.tasks, world.task(subject)
        return lambda: act(tasks, task_id)

    return make


def _with_claim(act: Callable[[Any], Any]) -> Callable[[World], Act]:
    def make(world: World) -> Act:
        claim = claim_task(world, "waiting")
        return lambda: act(claim)

    return make


def _update_lake(world: World) -> Act:
    catalogs, seen = world.catalogs, world.lake.definition
    return lambda: catalogs.update_catalog(seen, properties={"owner": "me"})


def _complete(world: World) -> Act:
    rows, catalogs = world.rows, world.catalogs
    made = catalogs.create_catalog("third", base_location="s3://third/")
    row = rows.read_reference(content_reference(made.id, RefKind.BRANCH, "main"))
    rows.remove_tombstone(rows.delete_reference(row))
    return lambda: catalogs.complete_catalog(made)


def _drop_old_requests(world: World) -> Act:
    world.lake.commit("main", [Put(ContentKey.of("k"), Namespace())], request=make_request())
    world.clock.advance(SETTINGS.requests_kept_seconds + 1)
    return partial(drop_old_requests, world.rows, least=1)


def _finish_deletions(world: World) -> Act:
    world.clock.advance(25 * 3600)
    return partial(finish_deletions, world.rows)


def _assign_kind(kind: str) -> Callable[[World], Act]:
    def make(world: World) -> Act:
        lake = world.lake
        other = lake.branch("dev").head if kind == "tag" else lake.branch("main").head
        move, name = (lake.assign_tag, "v1") if kind == "tag" else (lake.assign_branch, "dev")
        assert other is not None
        return lambda: move(name, other)

    return make


def _transplant(world: World) -> Act:
    lake = world.lake
    head = lake.branch("dev").head
    assert head is not None
    return lambda: lake.transplant("dev", [head], "main")


def _update_realm(world: World) -> Act:
    realms, seen = world.realms, world.realms.read_realm("acme")
    return lambda: realms.update_realm(seen, properties={"tier": "gold"})


def _move_realm(world: World) -> Act:
    realms, seen = world.realms, world.realms.read_realm("idle")
    return lambda: realms.move_realm(seen, RealmState.INACTIVE)


def _remove_realm(world: World) -> Act:
    realms, seen = world.realms, world.realms.read_realm("gone")
    return lambda: realms.remove_realm(seen)


def _forget_keys(world: World) -> Act:
    realms, keys = world.realms, list(world.realms.purged_keys())
    return lambda: realms.forget_purged_keys(keys)


def _amend(world: World) -> Act:
    tasks, task_id, due = world.tasks, world.task("waiting"), Micros(world.clock.now() + 10**8)
    return lambda: tasks.amend_task(task_id, lambda task: {"dry": True}, due=due)


def _retry_amended(tasks: TaskQueue, task_id: ObjectId) -> Any:
    return tasks.retry_task(task_id, arguments=lambda task: {"dry": True})


def _claim_waiting(tasks: Any, task_id: ObjectId) -> Any:
    return _definite(tasks.claim_task(task_id, "worker-2"))


def _claim_silent(world: World) -> Act:
    tasks, task_id, watch = world.tasks, world.task("running"), LeaseWatch(world.clock, 60)
    tasks.find_claimable(watch)
    world.clock.advance(61)
    tasks.find_claimable(watch)
    return lambda: _definite(tasks.claim_task(task_id, "worker-2", watch))


def _claim_last(world: World) -> Act:
    """A silent task that has no attempt left."""
    tasks = world.tasks
    task_id = tasks.submit_task("gc", realm="acme", subject="last", max_attempts=1).id
    claim_task(world, "last")
    watch = LeaseWatch(world.clock, 60)
    tasks.find_claimable(watch)
    world.clock.advance(61)
    tasks.find_claimable(watch)
    return lambda: tasks.claim_task(task_id, "worker-2", watch)


def _look(world: World) -> Act:
    """A task whose entries say that it is active, and that is cancelled."""
    tasks, claim = world.tasks, claim_task(world, "waiting")
    world.faults.fail("swap_reference", times=10_000)
    claim.fail_task("no luck", retry=False)
    world.faults.heal()
    watch = LeaseWatch(world.clock, 60)
    return lambda: tasks.find_claimable(watch)


def _forget_finished(world: World) -> Act:
    world.clock.advance(91 * 24 * 3600)
    tasks = world.tasks
    return tasks.forget_finished


def _mend_entries(world: World) -> Act:
    _look(world)
    rows = world.store.system
    return lambda: mend_entries(rows)


def _overdue(world: World) -> Act:
    claim = claim_task(world, "waiting")
    claim.request_stop("it took too long", is_overdue=True)
    return claim.end_stopped


def _pass_by(world: World) -> None:
    """Another worker looks for something to do."""
    store = world.elsewhere()
    TaskQueue(store).find_claimable(LeaseWatch(world.clock, 60))


def _check(world: World) -> Act:
    claim = claim_task(world, "waiting")
    world.clock.advance(30)
    return claim.check_stop


def _wish(world: World) -> PurgeRequest:
    definition = world.lake.definition
    drop = DroppedTable(branch="main", key="orders", metadata="m", location="s3://lake/orders", asked=Micros(1))
    return PurgeRequest(catalog="lake", catalog_id=definition.id, content_id=TABLE, table_uuid=TABLE, drops=(drop,))


def _ask_for_purge(world: World) -> Act:
    wish, key = _wish(world), world.realms.read_realm("acme").key
    return lambda: request_table_purge(world.store, wish, realm="acme", realm_key=key)


def _ask_for_purge_again(world: World) -> Act:
    wish, key = _wish(world), world.realms.read_realm("acme").key
    request_table_purge(world.store, wish, realm="acme", realm_key=key)
    other = PurgeRequest(
        catalog="lake",
        catalog_id=wish.catalog_id,
        content_id=TABLE,
        table_uuid=TABLE,
        drops=(DroppedTable(branch="dev", key="orders", metadata="m", location="s3://lake/orders", asked=Micros(2)),),
    )
    return lambda: request_table_purge(world.store, other, realm="acme", realm_key=key)


def _retry_reachable(world: World) -> Act:
    tasks, task_id = world.tasks, _ask_for_purge(world)().id
    tasks.cancel_task(task_id)
    return lambda: retry_reachable_only(tasks, task_id)


def _record(world: World) -> Act:
    run = Run(kind="purge_realm", realm="acme", started=Micros(5), finished=Micros(6))
    return lambda: record_run(world.store, run)


def _repair(world: World) -> Act:
    _complete(world)
    steps = plan_repairs(check_store(world.store))

    def act() -> None:
        for step in repair_realm(world.store, "acme", steps):
            if step.result.startswith("not done"):
                raise SwapConflictError(step.result)

    return act


def _restore(world: World) -> Act:
    first = list(world.lake.log("main"))[-1]
    request = RestoreRequest(reference="lake/main", aim=RestoreTarget(commit=first.id))
    owner = world.task("running")
    return lambda: restore_state(world.rows, owner, request)


def _purge(world: World) -> Act:
    return lambda: purge_realm(world.store, "going")


def _collect(world: World) -> Act:
    world.clock.advance(3600)
    return lambda: collect_realm(world.store, "idle")


def _release(world: World) -> Act:
    seen = world.realms.read_realm("acme")
    world.realms.update_realm(seen, manager=RealmManager(cluster="c", namespace="n", name="acme"))
    return lambda: release_realm(world.store, "acme")


def _adopted(world: World) -> Act:
    """A manifest that adopts a realm and changes it."""
    annotations = {"headwater.dev/adopt": "idle"}
    body = _body("Realm", {"realmId": "idle", "deletionProtection": True}, annotations)
    manifest = read_manifest(body, settings=SETTINGS)
    assert isinstance(manifest, RealmManifest)
    sink = FileCredentials("/nowhere")  # a realm that is there needs none
    return lambda: _ended(reconcile_realm(world.store, manifest, credentials=sink, manager=ManagerIdentity(cluster="c")))


def _made(world: World) -> Act:
    """A manifest that asks for a catalog which is not there yet."""
    manifest = read_manifest(_body("Catalog", WANTED), settings=SETTINGS, realm_id=RealmId("acme"))
    assert isinstance(manifest, CatalogManifest)
    me, sink = ManagerIdentity(cluster="c"), FileCredentials("/nowhere")  # it has no connection
    return lambda: _ended(reconcile_catalog(world.store, manifest, credentials=sink, manager=me, may_be_unmanaged=True))


def _body(kind: str, spec: dict[str, Any], annotations: dict[str, str] | None = None) -> dict[str, Any]:
    metadata = {"name": "wanted", "namespace": "n", "annotations": annotations or {}}
    return {"apiVersion": "headwater.dev/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec}


def _ended(outcome: ReconcileOutcome) -> None:
    if outcome.error is not None:
        raise outcome.error


WANTED = {"realm": "acme", "storage": {"baseLocation": "s3://wanted/"}}
_FOLLOW_UP = FollowUpTask(kind="gc", realm="acme", subject="rest")
_LOST = (SwapConflictError, ConflictError, RefusedError, NotFoundError)


def _enable(world: World) -> Act:
    disable_principal(world.realms, "acme", "root")
    return lambda: enable_principal(world.realms, "acme", "root")


def _drop_principal(world: World) -> Act:
    create_principal(world.realms, "acme", "etl", OTHER_ROOT)
    create_principal_role(world.realms, "acme", "loaders")
    assign_principal_role(world.realms, "acme", "loaders", "etl")
    return lambda: drop_principal(world.realms, "acme", "etl")


DROP, LIST = (CatalogGrant(privilege=f"TABLE_{what}") for what in ("DROP", "LIST"))


def _with_role(act: Callable[[RealmRegistry, str, str], object]) -> Callable[[World], Act]:
    def make(world: World) -> Act:
        create_principal_role(world.realms, "acme", "loaders")
        grant_on_realm(world.realms, "acme", "loaders", "TASK_READ")
        assign_principal_role(world.realms, "acme", "loaders", "root")
        return lambda: act(world.realms, "acme", "loaders")

    return make


def _with_catalog_role(act: Callable[[CatalogRoles], object]) -> Callable[[World], Act]:
    def make(world: World) -> Act:
        roles = CatalogRoles(world.rows, world.lake.definition)
        roles.create_role("writer")
        roles.put_grants("writer", [LIST])
        roles.assign_role("writer", ObjectId(7))
        return lambda: act(roles)

    return make


OPERATIONS = (
    # realms
    Operation("RealmRegistry.create_realm", _in_realms(lambda realms: realms.create_realm("new")), _LOST),
    Operation("RealmRegistry.update_realm", _update_realm, _LOST),
    Operation("RealmRegistry.move_realm", _move_realm, _LOST),
    Operation("RealmRegistry.remove_realm", _remove_realm, _LOST),
    Operation("RealmRegistry.forget_purged_keys", _forget_keys),
    Operation("bootstrap", _in_realms(lambda realms: bootstrap(realms, "fresh", ROOT))),
    Operation(
        "rotate_principal",
        _in_realms(lambda realms: rotate_principal(realms, "acme", "root", OTHER_ROOT, replaces="root")),
        _LOST,
    ),
    Operation("reset_principal", _in_realms(lambda realms: reset_principal(realms, "acme", "root", OTHER_ROOT))),
    Operation("create_principal", _in_realms(lambda realms: create_principal(realms, "acme", "etl", OTHER_ROOT))),
    Operation("disable_principal", _in_realms(lambda realms: disable_principal(realms, "acme", "root"))),
    Operation("enable_principal", _enable),
    Operation(
        "revoke_sign_in",
        _in_realms(lambda realms: revoke_sign_in(realms, "acme", "root", "0123456789abcdef", until=2_000_000_000)),
    ),
    Operation("drop_principal", _drop_principal, (NotFoundError,), is_resumable=True),
    Operation("create_principal_role", _in_realms(lambda realms: create_principal_role(realms, "acme", "loaders"))),
    Operation("drop_principal_role", _with_role(drop_principal_role), (NotFoundError,), is_resumable=True),
    Operation(
        "assign_principal_role", _with_role(lambda realms, realm, role: assign_principal_role(realms, realm, role, "root"))
    ),
    Operation(
        "unassign_principal_role", _with_role(lambda realms, realm, role: unassign_principal_role(realms, realm, role, "root"))
    ),
    Operation("grant_on_realm", _with_role(lambda realms, realm, role: grant_on_realm(realms, realm, role, "TASK_MANAGE"))),
    Operation("revoke_on_realm", _with_role(lambda realms, realm, role: revoke_on_realm(realms, realm, role, "TASK_READ"))),
    Operation("CatalogRoles.create_role", _with_catalog_role(lambda roles: roles.create_role("reader"))),
    Operation(
        "CatalogRoles.drop_role",
        _with_catalog_role(lambda roles: roles.drop_role("writer")),
        (NotFoundError,),
        is_resumable=True,
    ),
    Operation(
        "CatalogRoles.put_grants",
        _with_catalog_role(lambda roles: roles.put_grants("writer", [DROP])),
    ),
    Operation(
        "CatalogRoles.remove_grants",
        _with_catalog_role(lambda roles: roles.remove_grants("writer", [LIST])),
    ),
    Operation("CatalogRoles.assign_role", _with_catalog_role(lambda roles: roles.assign_role("catalog_admin", ObjectId(7)))),
    Operation("CatalogRoles.unassign_role", _with_catalog_role(lambda roles: roles.unassign_role("writer", ObjectId(7)))),
    # catalogs
    Operation(
        "Catalogs.create_catalog", _in_catalogs(lambda catalogs: catalogs.create_catalog("third", base_location="s3://third/"))
    ),
    Operation("Catalogs.complete_catalog", _complete),
    Operation("Catalogs.update_catalog", _update_lake, _LOST),
    Operation("Catalogs.delete_catalog", _in_catalogs(lambda catalogs: catalogs.delete_catalog("lake"))),
    Operation("Catalogs.undelete_catalog", _in_catalogs(lambda catalogs: catalogs.undelete_catalog("pond")), _LOST),
    Operation("Catalogs.purge_catalog", _in_catalogs(lambda catalogs: catalogs.purge_catalog("pond"))),
    Operation("drop_old_requests", _drop_old_requests),
    Operation("finish_deletions", _finish_deletions, is_resumable=True),
    # branches and tags
    Operation("Catalog.create_branch", _in_lake(lambda lake: lake.create_branch("b")), _LOST),
    Operation("Catalog.create_tag", _in_lake(lambda lake: lake.create_tag("t")), _LOST),
    Operation("Catalog.assign_branch", _assign_kind("branch")),
    Operation("Catalog.assign_tag", _assign_kind("tag")),
    Operation("Catalog.delete_branch", _in_lake(lambda lake: lake.delete_branch("dev")), _LOST),
    Operation("Catalog.delete_tag", _in_lake(lambda lake: lake.delete_tag("v1")), _LOST),
    Operation("Catalog.undelete_branch", _in_lake(lambda lake: lake.undelete_branch("late")), _LOST),
    Operation("Catalog.undelete_tag", _in_lake(lambda lake: lake.undelete_tag("old")), _LOST),
    # content
    Operation("Catalog.commit", _in_lake(lambda lake: lake.commit("main", [Put(ContentKey.of("n"), Namespace())])), _LOST),
    Operation("Catalog.commit", _in_lake(lambda lake: lake.commit("main", [Delete(ORDERS)])), _LOST),
    Operation(
        "Catalog.commit",
        _in_lake(lambda lake: lake.commit("main", [Put(ContentKey.of("k"), Namespace())], request=make_request())),
    ),
    Operation("Catalog.merge", _in_lake(lambda lake: lake.merge("dev", "main", meta=CommitMeta(message="m")))),
    Operation("Catalog.transplant", _transplant),
    # claims
    Operation(
        "TableClaims.take_claims",
        lambda world: (lambda claims, claim: lambda: claims.take_claims([claim]))(
            world.claims, claim_of(world, OTHER_TABLE, "s3://lake/customers")
        ),
    ),
    Operation(
        "TableClaims.adopt_tables",
        lambda world: (lambda claims, claim: lambda: claims.adopt_tables([claim]))(
            world.claims, claim_of(world, TABLE, "s3://lake/orders")
        ),
    ),
    Operation(
        "TableClaims.release_own",
        lambda world: (lambda claims, claim: lambda: claims.release_own([claim]))(
            world.claims, claim_of(world, TABLE, "s3://lake/orders")
        ),
    ),
    Operation("release_claims", _release_claims),
    Operation("release_location", _release_location, (NotFoundError,), is_resumable=True),
    Operation("release_name", _release_name),
    # policies
    Operation(
        "set_policy",
        _with_policies(
            lambda rows, lake: set_policy(
                rows, lake, structs.replace(POLICY, metadata_files=MetadataFileRule(keep=3), content_id=TABLE)
            )
        ),
    ),
    Operation("unset_policy", _with_policies(lambda rows, lake: unset_policy(rows, lake, POLICY.kind)), (NotFoundError,)),
    Operation(
        "set_snapshot_rule",
        _with_policies(lambda rows, lake: set_snapshot_rule(rows, lake, SnapshotRule(branches="dev", min_to_keep=2))),
    ),
    Operation("unset_snapshot_rule", _with_policies(lambda rows, lake: unset_snapshot_rule(rows, lake, "*")), (NotFoundError,)),
    Operation("declare_policies", _with_policies(lambda rows, lake: declare_policies(rows, lake, [POLICY]))),
    Operation(
        "release_policies",
        _with_policies(lambda rows, lake: release_policies(rows, {UUID(int=77)}, older_than=Micros(2**62))),
    ),
    Operation(
        "stop_maintenance",
        lambda world: (lambda store: lambda: stop_maintenance(store, StopScope(), by="ann"))(world.store),
    ),
    Operation("resume_maintenance", _resume),
    # tasks
    Operation("TaskQueue.submit_task", lambda world: lambda: world.tasks.submit_task("gc", realm="acme", subject="new")),
    Operation("TaskQueue.submit_task", lambda world: lambda: world.tasks.submit_task("gc", realm="acme", subject="failed")),
    Operation("TaskQueue.cancel_task", _with_task("waiting", lambda tasks, one: tasks.cancel_task(one))),
    Operation("TaskQueue.cancel_task", _with_task("running", lambda tasks, one: tasks.cancel_task(one))),
    Operation("TaskQueue.amend_task", _amend),
    Operation(
        "TaskQueue.retry_task", _with_task("failed", lambda tasks, one: tasks.retry_task(one)), _LOST, is_contested=False
    ),
    Operation("TaskQueue.retry_task", _with_task("failed", _retry_amended), _LOST, is_contested=False),
    Operation("TaskQueue.run_now", _with_task("later", lambda tasks, one: tasks.run_now(one))),
    Operation("TaskQueue.find_claimable", _look),
    Operation("TaskQueue.claim_task", _with_task("waiting", _claim_waiting), _LOST),
    Operation("TaskQueue.claim_task", _claim_silent, _LOST, is_contested=False),
    Operation("TaskQueue.claim_task", _claim_last, _LOST, is_contested=False),
    Operation("TaskQueue.forget_finished", _forget_finished),
    Operation("TaskLease.check_stop", _check, is_resumable=True),
    Operation("TaskLease.heartbeat", _with_claim(lambda claim: claim.heartbeat())),
    Operation("TaskLease.finish_task", _with_claim(lambda claim: claim.finish_task({}, _FOLLOW_UP)), _LOST, meet=_pass_by),
    Operation("TaskLease.fail_task", _with_claim(lambda claim: claim.fail_task("no luck")), _LOST),
    Operation("TaskLease.hand_back", _with_claim(lambda claim: claim.hand_back("stopping")), _LOST),
    Operation("TaskLease.put_off", _with_claim(lambda claim: claim.put_off("not there yet")), _LOST),
    Operation("TaskLease.end_stopped", _overdue, _LOST),
    Operation("mend_entries", _mend_entries, is_resumable=True),
    # commits
    Operation("commit_change", _commit),
    Operation("commit_series", _series),
    Operation("create_reference_at", _create_at, _LOST),
    Operation("assign_reference", _assign, _LOST),
    Operation("RealmStore.ensure_reference", lambda world: (lambda rows: lambda: rows.ensure_reference("things"))(world.rows)),
    Operation(
        "RealmStore.ensure_references",
        lambda world: (lambda rows: lambda: rows.ensure_references(["things", "more"]))(world.rows),
    ),
    Operation("add_reference", _add_reference, is_resumable=True),
    Operation("remove_reference", _remove_reference),
    Operation("mend_time", _mend_time, is_resumable=True),
    Operation("pin_commits", _pin),
    Operation("hold_pins", _hold),
    Operation("unpin_commits", _unpin),
    # maintenance
    Operation("request_table_purge", _ask_for_purge),
    Operation("request_table_purge", _ask_for_purge_again),
    Operation("retry_reachable_only", _retry_reachable, _LOST, is_contested=False),
    Operation("note_all_known", lambda world: (lambda rows: lambda: note_all_known(rows))(world.rows)),
    Operation("record_run", _record),
    Operation("repair_realm", _repair, is_resumable=True),
    Operation("restore_state", _restore, is_resumable=True),
    Operation("purge_realm", _purge, is_resumable=True),
    Operation("reconcile_realm", _adopted, is_resumable=True),
    Operation("reconcile_catalog", _made, is_resumable=True),
    Operation("release_realm", _release),
    Operation("collect_realm", _collect, is_resumable=True, is_contested=False),
)
