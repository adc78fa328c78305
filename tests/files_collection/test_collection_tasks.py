"""Every file table always has one collection waiting, which leaves no trace while there is nothing to collect."""

from __future__ import annotations

import pytest
from collected_tables import HOUR, CollectedTable
from file_tables_of_realms import claim_collection
from msgspec.structs import replace

from fake_clock import FakeClock
from headwater import Store
from headwater.commits import commit_change
from headwater.files import FILE_TABLES, AssignJob, FileTableDefinition, FileTables, FileTableState, PartitionId
from headwater.files.file_table_registry import store_table
from headwater.files.open_references import list_file_scopes
from headwater.jobs import COLLECT_FILES, Run, list_runs, record_run, run_file_collection, schedule_file_collections
from headwater.realms import MaintenanceSchedule, Realm, RealmRegistry, RealmState
from headwater.store import RealmStore
from headwater.tasks import Task, TaskNotReadyError, TaskQueue, TaskState


def waiting(store: Store) -> list[Task]:
    return [task.value for task in TaskQueue(store).list_tasks(kind=COLLECT_FILES) if task.value.state is TaskState.WAITING]


def collect(store: Store, clock: FakeClock) -> dict[str, object]:
    """The outcome of the next collection."""
    claimed = claim_collection(store, clock)
    outcome = run_file_collection(store, claimed)
    claimed.finish_task(outcome)
    return outcome


def test_table_gets_one_collection_every_quarter_of_an_hour(store: Store, table: CollectedTable, clock: FakeClock) -> None:
    assert [schedule_file_collections(store) for _ in range(2)] == [1, 1]

    (task,) = waiting(store)
    assert (task.realm, task.subject, task.due) == ("acme", "orders", clock.now() + 900_000_000)


def test_realm_that_is_not_active_gets_none(store: Store, realm: Realm, table: CollectedTable) -> None:
    RealmRegistry(store).move_realm(realm, RealmState.INACTIVE)

    assert schedule_file_collections(store) == 0


def test_suspended_maintenance_gets_none(store: Store, realm: Realm, table: CollectedTable) -> None:
    RealmRegistry(store).update_realm(realm, maintenance=MaintenanceSchedule(suspend=True))

    assert schedule_file_collections(store) == 0


def test_read_only_table_gets_none(store: Store, tables: FileTables, definition: FileTableDefinition) -> None:
    tables.change_state(definition, FileTableState.READ_ONLY)

    assert schedule_file_collections(store) == 0


def test_collection_of_a_read_only_table_leaves_it_alone(
    store: Store, tables: FileTables, table: CollectedTable, definition: FileTableDefinition, clock: FakeClock
) -> None:
    table.make_unreferenced()
    claimed = claim_collection(store, clock)
    tables.change_state(definition, FileTableState.READ_ONLY)
    outcome = run_file_collection(store, claimed)

    assert outcome["marked"] == 0
    assert "the file table is READ_ONLY" in outcome["notes"][0]


def test_collection_leaves_a_run_with_its_counts(store: Store, table: CollectedTable, clock: FakeClock) -> None:
    table.make_unreferenced(2)
    collect(store, clock)
    (run,) = list_runs(store, kind=COLLECT_FILES)

    assert (run.realm, run.subject, run.counts["marked"]) == ("acme", "orders", 2)


def test_idle_collection_waits_for_its_next_time(store: Store, table: CollectedTable, clock: FakeClock) -> None:
    with pytest.raises(TaskNotReadyError, match="nothing to collect") as put_off:
        run_file_collection(store, claim_collection(store, clock))

    assert put_off.value.seconds == 900
    assert list(list_runs(store)) == []


def test_waiting_task_tells_what_stands_in_its_way(store: Store, table: CollectedTable, clock: FakeClock) -> None:
    filename = table.add_file()
    table.references.assign_jobs([AssignJob(job="lost", partition=PartitionId("r"), filenames=(filename,))])
    clock.advance(25 * HOUR)

    with pytest.raises(TaskNotReadyError, match="job lost had references assigned for longer than 1d"):
        run_file_collection(store, claim_collection(store, clock))


def test_table_deleted_during_its_collection_is_no_failure(
    store: Store, tables: FileTables, table: CollectedTable, definition: FileTableDefinition, clock: FakeClock
) -> None:
    table.make_unreferenced()
    claimed = claim_collection(store, clock)
    check = claimed.check_stop

    def delete_meanwhile() -> None:
        check()
        table.references.close_scope()
        tables.change_state(definition, FileTableState.DELETING)

    claimed.check_stop = delete_meanwhile  # type: ignore[method-assign]  # the moment before the marks
    outcome = run_file_collection(store, claimed)

    assert (outcome["marked"], "the file table is DELETING" in outcome["notes"][0]) == (0, True)


def test_collection_of_an_inactive_realm_waits(store: Store, realm: Realm, table: CollectedTable, clock: FakeClock) -> None:
    claimed = claim_collection(store, clock)
    RealmRegistry(store).move_realm(realm, RealmState.INACTIVE)

    with pytest.raises(TaskNotReadyError, match="INACTIVE"):
        run_file_collection(store, claimed)


def test_copy_of_the_table_in_another_realm_stops_deletions(
    store: Store, table: CollectedTable, definition: FileTableDefinition, clock: FakeClock
) -> None:
    (filename,) = table.make_unreferenced()
    collect(store, clock)
    clock.advance(4 * HOUR)
    other = RealmRegistry(store).open_realm(make_realm_beside(store).id)
    other.ensure_reference(FILE_TABLES)
    copy = replace(definition, state=FileTableState.READ_ONLY)  # as an archive brings it
    commit_change(other, FILE_TABLES, lambda tx: store_table(tx, copy), message="load")

    with pytest.raises(TaskNotReadyError, match="another file table lies at"):
        run_file_collection(store, claim_collection(store, clock))
    assert table.is_stored(filename)


def make_realm_beside(store: Store) -> Realm:
    realms = RealmRegistry(store)
    realm = realms.move_realm(realms.create_realm("beside"), RealmState.INITIALIZING)
    return realms.move_realm(realm, RealmState.ACTIVE)


def test_collections_push_no_other_runs_out(store: Store, table: CollectedTable, clock: FakeClock) -> None:
    record_run(store, Run(kind="gc", realm="acme", started=clock.now(), finished=clock.now()))
    for _ in range(store.settings.runs_kept + 5):
        clock.advance(1)
        record_run(store, Run(kind=COLLECT_FILES, realm="acme", subject="orders", started=clock.now(), finished=clock.now()))

    assert len(list_runs(store, kind="gc")) == 1
    assert len(list_runs(store, kind=COLLECT_FILES)) == store.settings.runs_kept
    assert list_runs(store)[0].kind == COLLECT_FILES


def test_worker_ends_a_deletion_that_was_interrupted(
    store: Store, rows: RealmStore, tables: FileTables, definition: FileTableDefinition, table: CollectedTable, clock: FakeClock
) -> None:
    table.make_unreferenced()
    tables.change_state(definition, FileTableState.DELETING)
    outcome = run_file_collection(store, claim_collection(store, clock))

    assert (outcome["files"], list(table.path.iterdir())) == (2, [])
    assert list_file_scopes(store, rows.key) == []
