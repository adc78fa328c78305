"""One row that cannot be read, of every type and damaged in every way: everything else goes on, and fsck takes it out of the way."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from fake_clock import FakeClock
from headwater.catalogs import CATALOGS, Catalogs
from headwater.clock import Micros
from headwater.commits import Transaction, commit_change, read_head
from headwater.errors import CorruptionError, HeadwaterError
from headwater.fsck import FindingCode, RepairAction, RepairStep, check_store, plan_repairs, repair_realm
from headwater.gc import collect_realm
from headwater.gc.shared_scan import SCAN_LOCK_ID, hold_scan_lock
from headwater.index import IndexValue
from headwater.jobs import COLLECT
from headwater.jobs.task_runs import Run, list_runs, record_run
from headwater.realms import REALMS, CredentialsHash, RealmRegistry, bootstrap
from headwater.reconcile import known_realms
from headwater.settings import Settings
from headwater.store import SYSTEM_REALM, ObjectId, ObjectRow, RealmStore, Store, id_text
from headwater.store.backends.memory import MemoryBackend
from headwater.tasks import LeaseWatch, TaskQueue
from headwater.throttle import FenceWatch
from lakes import open_on, rows_of
from newer_release import rewrite

Damage = Callable[[RealmStore, ObjectId], None]
BROKEN = "broken"


def held_in(rows: RealmStore, reference: str, index: str, key: bytes) -> ObjectId:
    at = read_head(rows, reference, fresh=True)
    value = None if at is None else at.index(index).get(key)
    assert value is not None and value.object_id is not None
    return value.object_id


# what is damaged


def a_waiting_task(store: Store) -> tuple[RealmStore, ObjectId]:
    return store.system, TaskQueue(store).submit_task("gc", realm=BROKEN).id


def a_running_task(store: Store) -> tuple[RealmStore, ObjectId]:
    task_id = TaskQueue(store).submit_task("import", realm="acme", subject="lake/all").id
    assert TaskQueue(store).claim_task(task_id, "worker-1") is not None
    return store.system, task_id


def a_finished_task(store: Store) -> tuple[RealmStore, ObjectId]:
    task_id = TaskQueue(store).submit_task("export", realm=BROKEN).id
    claim = TaskQueue(store).claim_task(task_id, "worker-1")
    assert claim is not None
    claim.finish_task({})
    return store.system, task_id


def a_realm(store: Store) -> tuple[RealmStore, ObjectId]:
    RealmRegistry(store).create_realm(BROKEN)
    return store.system, held_in(store.system, REALMS, "by-id", BROKEN.encode())


def a_run(store: Store) -> tuple[RealmStore, ObjectId]:
    record_run(store, Run(kind="gc", realm=BROKEN, started=Micros(5), finished=Micros(6)))
    at = read_head(store.system, "maintenance-runs", fresh=True)
    assert at is not None
    [(_, value)] = at.index("runs").range()
    assert value.object_id is not None
    return store.system, value.object_id


def a_catalog(store: Store) -> tuple[RealmStore, ObjectId]:
    rows = rows_of(store)
    Catalogs(rows).create_catalog("broken", base_location="s3://broken/")
    return rows, held_in(rows, CATALOGS, "by-name", b"broken")


ASIDE = {
    a_waiting_task: FindingCode.TASK_UNREADABLE,
    a_running_task: FindingCode.TASK_UNREADABLE,
    a_finished_task: FindingCode.TASK_UNREADABLE,
    a_realm: FindingCode.REALM_UNREADABLE,
    a_run: FindingCode.RUN_UNREADABLE,
}
VICTIMS = [*ASIDE, a_catalog]


# how it is damaged


def change_row(rows: RealmStore, object_id: ObjectId, **changes: object) -> None:
    [row] = rows.store.backend.read_objects(rows.key, [(object_id, 0)])
    assert isinstance(row, ObjectRow)
    rows.store.backend.write_objects([msgspec.structs.replace(row, **changes)])  # type: ignore[arg-type]
    rows.store.cache.clear()


def value_of(rows: RealmStore, object_id: ObjectId) -> bytes:
    [row] = rows.store.backend.read_objects(rows.key, [(object_id, 0)])
    assert row is not None
    return row.value


def truncate(rows: RealmStore, object_id: ObjectId) -> None:
    change_row(rows, object_id, value=value_of(rows, object_id)[:-3])


def empty(rows: RealmStore, object_id: ObjectId) -> None:
    change_row(rows, object_id, value=b"")


def flip(rows: RealmStore, object_id: ObjectId) -> None:
    value = value_of(rows, object_id)
    change_row(rows, object_id, value=value[:-1] + bytes([value[-1] ^ 1]))


def mistake(rows: RealmStore, object_id: ObjectId) -> None:
    """The bytes are of another type than the row says."""
    change_row(rows, object_id, type="cuts")


def lose_a_part(rows: RealmStore, object_id: ObjectId) -> None:
    change_row(rows, object_id, parts=2)


def format_of_tomorrow(rows: RealmStore, object_id: ObjectId) -> None:
    change_row(rows, object_id, value=b"\x02" + value_of(rows, object_id)[1:])


def state_of_tomorrow(rows: RealmStore, object_id: ObjectId) -> None:
    def change(body: dict[str, object]) -> None:
        body.update(state="HIBERNATING", kind=7) if "kind" in body and "counts" not in body else body.update(
            state="HIBERNATING", finished="tomorrow"
        )

    rewrite(rows, object_id, change)


def type_of_tomorrow(rows: RealmStore, object_id: ObjectId) -> None:
    value = value_of(rows, object_id)
    change_row(rows, object_id, type="from-tomorrow", value=value)


DAMAGED: list[Damage] = [truncate, empty, flip, mistake, lose_a_part, type_of_tomorrow]
LATER: list[Damage] = [format_of_tomorrow, state_of_tomorrow]


# what reads


def look(store: Store) -> object:
    return TaskQueue(store).find_claimable(LeaseWatch(store.clock, 60.0))


READERS: dict[str, Callable[[Store], object]] = {
    "look": look,
    "task list": lambda store: TaskQueue(store).list_tasks(),
    "task list of a realm": lambda store: TaskQueue(store).of_realm(BROKEN),
    "figures": lambda store: TaskQueue(store).read_figures(),
    "forget": lambda store: TaskQueue(store).forget_finished(),
    "submit": lambda store: TaskQueue(store).submit_task("purge", realm="acme"),
    "realm list": lambda store: RealmRegistry(store).list_realms(),
    "known realms": known_realms,
    "another realm": lambda store: RealmRegistry(store).open_realm("acme").check_write(),
    "a new realm": lambda store: RealmRegistry(store).create_realm(f"third-{store.new_id()}"),
    "catalog list": lambda store: Catalogs(rows_of(store)).list_catalogs(),
    "deleted catalogs": lambda store: Catalogs(rows_of(store)).list_deleted(),
    "another catalog": lambda store: Catalogs(rows_of(store)).read_catalog("lake"),
    "gc log": list_runs,
    "another run": lambda store: record_run(store, Run(kind="gc", realm="acme", started=Micros(7), finished=Micros(8))),
    "gc of another realm": lambda store: collect_realm(store, "other"),
    "fsck": check_store,
    "fsck of another realm": lambda store: check_store(store, realm="other"),
}


@pytest.fixture
def whole(settings: Settings, clock: FakeClock) -> Store:
    """Two realms, one with a catalog, and a task that is due."""
    store = open_on(MemoryBackend(), settings, clock)
    realms = RealmRegistry(store)
    for name in ("acme", "other"):
        realms.create_realm(name)
        bootstrap(realms, name, CredentialsHash(client_id="root", salt=b"", digest=b""))
    Catalogs(rows_of(store)).create_catalog("lake", base_location="s3://lake/")
    TaskQueue(store).submit_task(COLLECT, realm="acme")
    clock.advance(1.0)
    return store


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("victim", VICTIMS, ids=lambda victim: victim.__name__)
def test_one_unreadable_row_stops_no_reader(
    whole: Store, victim: Callable[[Store], tuple[RealmStore, ObjectId]], reader: str
) -> None:
    rows, object_id = victim(whole)
    sound = value_of(rows, object_id)
    [row] = rows.store.backend.read_objects(rows.key, [(object_id, 0)])
    for damage in (*DAMAGED, *LATER):
        rows.store.backend.write_objects([row])  # type: ignore[list-item]  # as it was
        assert value_of(rows, object_id) == sound
        damage(rows, object_id)
        READERS[reader](whole)


@pytest.mark.parametrize("damage", [*DAMAGED, *LATER], ids=lambda damage: damage.__name__)
def test_lists_give_the_others_and_name_what_they_leave_out(whole: Store, damage: Damage) -> None:
    victims = [victim(whole) for victim in (a_waiting_task, a_realm, a_run, a_catalog)]
    record_run(whole, Run(kind="gc", realm="acme", started=Micros(7), finished=Micros(8)))
    for rows, object_id in victims:
        damage(rows, object_id)
    tasks, realms, runs = TaskQueue(whole).list_tasks(), RealmRegistry(whole).list_realms(), list_runs(whole)
    catalogs = Catalogs(rows_of(whole)).list_catalogs()

    assert [seen.value.realm for seen in tasks] == ["acme"]
    assert [realm.id for realm in realms] == ["acme", "other"]
    assert ([run.realm for run in runs], [one.name for one in catalogs]) == (["acme"], ["lake"])
    named = [one.unreadable[0] for one in (tasks, realms, runs, catalogs)]
    assert [row.id for row in named] == [object_id for _, object_id in victims]
    assert str(named[0]).startswith(f"task gc of realm 'broken' ({id_text(victims[0][1])}) cannot be read: ")
    assert str(named[1]).startswith("realm 'broken' ")
    assert str(named[3]).startswith("catalog 'broken' ")


def test_reader_of_everything_is_told_what_is_missing(whole: Store) -> None:
    rows, object_id = a_realm(whole)
    flip(rows, object_id)

    with pytest.raises(CorruptionError, match=r"realm 'broken' \([0-9a-f]{16}\) cannot be read: .*altered"):
        RealmRegistry(whole).list_realms().complete()


def test_unreadable_rows_are_counted_by_kind(whole: Store) -> None:
    for victim in (a_waiting_task, a_running_task):
        flip(*victim(whole))

    assert TaskQueue(whole).read_figures().unreadable == {"gc": 1, "import": 1}


# set aside


@pytest.mark.parametrize("damage", DAMAGED, ids=lambda damage: damage.__name__)
@pytest.mark.parametrize("victim", ASIDE, ids=lambda victim: victim.__name__)
def test_fsck_sets_aside_what_is_damaged(
    whole: Store, victim: Callable[[Store], tuple[RealmStore, ObjectId]], damage: Damage, tmp_path: Path
) -> None:
    rows, object_id = victim(whole)
    damage(rows, object_id)
    kept: dict[str, bytes] = {}
    done = mend(whole, kept)

    assert [(step.action, step.because, step.target) for step in done if step.action is RepairAction.SET_ASIDE] == [
        (RepairAction.SET_ASIDE, (ASIDE[victim],), id_text(object_id))
    ]
    [text] = kept.values()
    plain = json.loads(text)
    assert plain["object"] == id_text(object_id)
    assert plain["entries"] and plain["rows"]
    assert ASIDE[victim] not in {one.code for one in check_store(whole)}
    assert [step.result for step in mend(whole, {}) if step.action is RepairAction.SET_ASIDE] == []


@pytest.mark.parametrize("damage", LATER, ids=lambda damage: damage.__name__)
@pytest.mark.parametrize("victim", ASIDE, ids=lambda victim: victim.__name__)
def test_fsck_leaves_a_later_releases_rows_until_told_otherwise(
    whole: Store, victim: Callable[[Store], tuple[RealmStore, ObjectId]], damage: Damage
) -> None:
    rows, object_id = victim(whole)
    damage(rows, object_id)
    kept: dict[str, bytes] = {}
    [finding] = [one for one in check_store(whole) if one.code is ASIDE[victim]]

    assert "a later release wrote them" in finding.repair
    assert not [step for step in mend(whole, kept) if step.action is RepairAction.SET_ASIDE] and not kept
    assert [step.action for step in mend(whole, kept, later=True) if step.target] == [RepairAction.SET_ASIDE]
    assert len(kept) == 1


def test_rows_are_not_set_aside_where_nobody_keeps_them(whole: Store) -> None:
    flip(*a_waiting_task(whole))
    steps = plan_repairs(check_store(whole))
    [done] = [step for step in repair_realm(whole, SYSTEM_REALM, steps) if step.action is RepairAction.SET_ASIDE]

    assert "not done: say with --aside FOLDER" in done.result
    assert FindingCode.TASK_UNREADABLE in {one.code for one in check_store(whole)}


def test_list_keeps_its_rows_when_the_file_cannot_be_written(whole: Store) -> None:
    def fail(name: str, content: bytes) -> str:
        raise HeadwaterError("the disk is full")

    flip(*a_waiting_task(whole))
    steps = plan_repairs(check_store(whole))
    [done] = [step for step in repair_realm(whole, SYSTEM_REALM, steps, keep=fail) if step.action is RepairAction.SET_ASIDE]

    assert done.result == "not done: the disk is full"
    assert FindingCode.TASK_UNREADABLE in {one.code for one in check_store(whole)}


def test_definition_that_is_lost_is_of_no_later_release(whole: Store) -> None:
    rows, object_id = a_realm(whole)
    rows.delete_unchanged([key for batch in rows.scan_objects() for key in batch if key.id == object_id])
    rows.store.cache.clear()
    [finding] = [one for one in check_store(whole) if one.code is FindingCode.REALM_UNREADABLE]

    assert "bring it back from a backup" in finding.repair


def test_entry_of_no_object_is_found_and_stops_no_check(whole: Store) -> None:
    commit_change(whole.system, REALMS, lambda tx: tx.index("by-id").put(BROKEN.encode(), IndexValue(None, b"")))
    [finding] = [one for one in check_store(whole) if one.code is FindingCode.REALM_UNREADABLE]

    assert finding.subject == BROKEN
    assert "bring it back from a backup" in finding.repair


def test_odd_key_beside_an_unreadable_task_stops_no_look(whole: Store) -> None:
    rows, task_id = a_waiting_task(whole)

    def damage(tx: Transaction) -> None:
        [value] = [value for _, value in tx.index("due").range() if value.object_id == task_id]
        for index in ("unique", "last"):
            tx.index(index).put(b"\xffno parts", value)

    commit_change(rows, "tasks", damage)
    flip(rows, task_id)

    assert len(TaskQueue(whole).find_claimable(LeaseWatch(whole.clock, 60))) == 1
    assert TaskQueue(whole).read_figures().unreadable == {"gc": 1}
    assert len(TaskQueue(whole).list_tasks(kind="gc").unreadable) == 1


def test_place_of_a_task_that_was_set_aside_is_free(whole: Store) -> None:
    rows, task_id = a_waiting_task(whole)
    flip(rows, task_id)
    with pytest.raises(CorruptionError, match=id_text(task_id)):
        TaskQueue(whole).submit_task("gc", realm=BROKEN)
    mend(whole, {})

    assert TaskQueue(whole).submit_task("gc", realm=BROKEN).created


def test_realm_set_aside_is_told_with_its_rows(whole: Store) -> None:
    key = RealmRegistry(whole).read_realm("other").key
    flip(whole.system, held_in(whole.system, REALMS, "by-id", b"other"))
    mend(whole, {})
    found = [one for one in check_store(whole) if one.code is FindingCode.ROWS_OF_NO_REALM]

    assert [one.realm for one in found] == [f"(key {key})"]


def test_turn_that_cannot_be_read_is_set_aside(whole: Store) -> None:
    with hold_scan_lock(whole, "first", FenceWatch(lambda: None, whole.clock)):
        pass
    truncate(whole.system, SCAN_LOCK_ID)
    kept: dict[str, bytes] = {}
    assert FindingCode.TURN_UNREADABLE in {one.code for one in check_store(whole)}
    mend(whole, kept)

    assert list(kept) == [f"scan-turn-{id_text(SCAN_LOCK_ID)}.json"]
    with hold_scan_lock(whole, "second", FenceWatch(lambda: None, whole.clock)):
        assert not [one for one in check_store(whole) if one.code is FindingCode.TURN_UNREADABLE]


def mend(store: Store, kept: dict[str, bytes], *, later: bool = False) -> list[RepairStep]:
    def keep(name: str, content: bytes) -> str:
        kept[name] = content
        return name

    return list(repair_realm(store, SYSTEM_REALM, plan_repairs(check_store(store), later=later), keep=keep))
