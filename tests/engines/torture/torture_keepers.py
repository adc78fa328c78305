"""What keeps a store under torture: workers that do its tasks, somebody who collects by hand, and a realm that is purged and made anew."""

from __future__ import annotations

from torture_actors import Actor
from torture_users import FORGETFUL, STEADY

from headwater.catalogs import Catalogs, ContentKey, IcebergTable, Put
from headwater.errors import RefusedError
from headwater.gc import collect_realm
from headwater.jobs import COLLECT, PURGE
from headwater.realms import Realm, RealmRegistry, RealmState, bootstrap
from headwater.store import SYSTEM_REALM, RealmStore
from headwater.tasks import LeaseExpiry, LeaseWatch, TaskQueue
from headwater_workers.task_executor import TASK_BODIES, execute_task

__all__ = ["PHOENIX", "collect_without_a_task", "purge_and_create", "work", "write_late"]

PHOENIX = "phoenix"
"""A realm that is purged and created again."""


def work(actor: Actor) -> None:
    """A worker's life: look at the due tasks, do one; and now and then ask for more."""
    tasks = TaskQueue(actor.store)
    watch = LeaseWatch(actor.clock, actor.stage.settings.task_lease_seconds)
    while actor.goes_on(pause_seconds=0.15):
        with actor.trying("work"):
            _ask(actor, tasks)
            found = tasks.find_claimable(watch)
            if found:
                one = actor.chance.choice(found)
                is_stopping = lambda: actor.is_ending  # noqa: E731
                execute_task(
                    actor.store, one.id, LeaseExpiry(one.token), owner=actor.name, is_stopping=is_stopping, kinds=TASK_BODIES
                )
                task = tasks.read_task(one.id).value
                actor.note("task", kind=task.kind, realm=task.realm, state=task.state, outcome=task.outcome, error=task.error)


def _ask(actor: Actor, tasks: TaskQueue) -> None:
    """For collections of all realms; and for a purge of one that is ACTIVE, as a task from another time would."""
    if actor.chance.random() < 0.7:
        realm_id = actor.chance.choice((STEADY, FORGETFUL, FORGETFUL, PHOENIX, SYSTEM_REALM))
        realm = RealmRegistry(actor.store).find_realm(realm_id)
        if realm is not None or realm_id == SYSTEM_REALM:
            tasks.submit_task(COLLECT, realm=realm_id, realm_key=0 if realm is None else realm.key)
    if actor.chance.random() < 0.02:
        tasks.submit_task(PURGE, realm=STEADY, realm_key=RealmRegistry(actor.store).read_realm(STEADY).key)
    tasks.forget_finished()


def collect_without_a_task(actor: Actor) -> None:
    """Somebody who collects by hand, whatever the tasks do meanwhile."""
    while actor.goes_on(pause_seconds=0.5):
        with actor.trying("collect"):
            collected = collect_realm(actor.store, actor.chance.choice((STEADY, FORGETFUL, SYSTEM_REALM)), owner=actor.name)
            actor.note("collected", realm=collected.realm, deleted=collected.deleted)


def purge_and_create(actor: Actor) -> None:
    """One step of the realm's life after the other, from whatever state it is found in."""
    while actor.goes_on(pause_seconds=0.1):
        with actor.trying("purge and create", may_be_gone=True):
            _live(actor, RealmRegistry(actor.store))


def _live(actor: Actor, realms: RealmRegistry) -> None:
    realm = realms.find_realm(PHOENIX)
    if realm is None:
        realm = realms.create_realm(PHOENIX)
    match realm.state:
        case RealmState.CREATED | RealmState.INITIALIZING:
            realm = bootstrap(realms, PHOENIX, actor.stage.root)
            actor.note(
                "born", key=realm.key, catalogs=[found.name for found in Catalogs(realms.open_realm(PHOENIX)).list_catalogs()]
            )
        case RealmState.ACTIVE:
            _live_on(actor, realms, realm)
        case RealmState.INACTIVE:
            if actor.chance.random() < 0.05:
                realms.move_realm(realm, RealmState.ACTIVE)  # called off
            else:
                realms.move_realm(realm, RealmState.PURGING)
        case RealmState.PURGING:
            TaskQueue(actor.store).submit_task(PURGE, realm=PHOENIX, realm_key=realm.key)
        case RealmState.PURGED:
            _remove(actor, realms, realm)


def _live_on(actor: Actor, realms: RealmRegistry, realm: Realm) -> None:
    if actor.chance.random() < 0.2:
        realms.move_realm(realm, RealmState.INACTIVE)
    elif actor.chance.random() < 0.2:
        try:
            realms.move_realm(realm, RealmState.PURGING)
        except RefusedError:
            return
        actor.note("damage", step="purge", fault=f"the ACTIVE realm {realm.key} could be purged")
    else:
        _fill(actor, realms.open_realm(PHOENIX))


def _remove(actor: Actor, realms: RealmRegistry, realm: Realm) -> None:
    try:
        realms.remove_realm(realm)
    except RefusedError:  # a late writer: the purge is to look again
        TaskQueue(actor.store).submit_task(PURGE, realm=PHOENIX, realm_key=realm.key)
    else:
        actor.note("removed", key=realm.key)


def write_late(actor: Actor) -> None:
    """Write to the realm all the time with a handle that is opened once in a while: mostly it is one of before."""
    rows: RealmStore | None = None
    while actor.goes_on(pause_seconds=0.06):
        with actor.trying("write late", may_be_gone=True):
            if rows is None or actor.chance.random() < 0.1:
                rows = RealmRegistry(actor.store).open_realm(PHOENIX)
            _fill(actor, rows)


def _fill(actor: Actor, rows: RealmStore) -> None:
    """Catalogs and tables that carry the realm's key in their names: none of them may ever be seen in a later realm."""
    name = f"lake-{rows.key}"
    catalogs = Catalogs(rows)
    strangers = [found.name for found in catalogs.list_catalogs() if found.name != name]
    if strangers:
        actor.note("damage", step="fill", fault=f"the realm with the key {rows.key} has the catalogs {strangers}")
    catalogs.create_catalog(name, base_location=f"s3://{name}/")
    table = f"table-{actor.chance.randrange(50)}"
    if catalogs.open_catalog(name).get_content(None, ContentKey.of(table)) is None:
        catalogs.open_catalog(name).commit(
            None, [Put(ContentKey.of(table), IcebergTable(metadata_location=f"s3://{name}/{table}"))]
        )
