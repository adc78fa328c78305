"""The realm that holds realms, tasks and runs is collected by the same rules; and what ran is recorded in it."""

from __future__ import annotations

import dataclasses

import pytest

from fake_clock import FakeClock
from headwater.clock import Micros
from headwater.gc import collect_realm
from headwater.jobs.task_runs import Run, list_runs, record_run
from headwater.realms import RealmRegistry
from headwater.settings import Settings
from headwater.store import SYSTEM_REALM, NodeLease, ScanSplit, Store
from headwater.store.backends.memory import MemoryBackend
from headwater.tasks import TaskQueue
from lakes import HOUR, make_realm, open_on


def rows_by_type(store: Store) -> dict[str, int]:
    counts: dict[str, int] = {}
    for batch in store.system.scan_objects():
        for key in batch:
            counts[key.type] = counts.get(key.type, 0) + 1
    return counts


def a_run(number: int = 0, *, kind: str = "gc", realm: str = "acme") -> Run:
    return Run(kind=kind, realm=realm, started=Micros(number), finished=Micros(number + 1), counts={"number": number})


@pytest.fixture
def short_history(settings: Settings, clock: FakeClock) -> Store:
    """A store that keeps two commits of each reference and three runs."""
    lowered = dataclasses.replace(settings, reference_commits=2, runs_kept=3)
    return open_on(MemoryBackend(), lowered, clock)


def test_waiting_and_finished_tasks_stay(store: Store, clock: FakeClock) -> None:
    tasks = TaskQueue(store)
    waiting = tasks.submit_task("gc", realm="acme").id
    finished = tasks.submit_task("purge", realm="acme").id
    claim = tasks.claim_task(finished, "worker")
    assert claim is not None
    claim.finish_task({"rows": 1})
    clock.advance(HOUR)
    collect_realm(store, SYSTEM_REALM)

    assert tasks.read_task(waiting).value.kind == "gc"
    assert tasks.read_task(finished).value.outcome == {"rows": 1}


def test_forgotten_tasks_go(short_history: Store, clock: FakeClock) -> None:
    tasks = TaskQueue(short_history)
    task = tasks.submit_task("gc", realm="acme").id
    claim = tasks.claim_task(task, "worker")
    assert claim is not None
    claim.finish_task({})
    clock.advance(short_history.settings.task_history_seconds + HOUR)
    tasks.forget_finished()
    for number in range(3):
        tasks.submit_task("gc", realm=f"other-{number}")
    clock.advance(HOUR)
    collect_realm(short_history, SYSTEM_REALM)

    assert task not in [key.id for batch in short_history.system.scan_objects() for key in batch]
    assert rows_by_type(short_history)["task"] == 3


def test_definitions_of_realms_stay_and_their_history_goes(short_history: Store, clock: FakeClock) -> None:
    realm = make_realm(short_history)
    for number in range(5):
        realm = RealmRegistry(short_history).update_realm(realm, properties={"number": str(number)})
    clock.advance(HOUR)
    collect_realm(short_history, SYSTEM_REALM)
    short_history.cache.clear()

    assert RealmRegistry(short_history).read_realm("acme") == realm
    assert rows_by_type(short_history)["realm"] == 2


def test_node_leases_stay_however_old(store: Store, clock: FakeClock) -> None:
    make_realm(store)
    leases = [key.id for batch in store.system.scan_objects() for key in batch if key.type == NodeLease.type_name]
    clock.advance(1000 * HOUR)
    done = collect_realm(store, SYSTEM_REALM)

    assert done.kept["fixed"] == len(leases) == 1
    assert None not in store.system.read_many_versioned(leases, NodeLease)


def test_collecting_the_system_realm_touches_no_other(store: Store, clock: FakeClock) -> None:
    realm = make_realm(store)
    clock.advance(HOUR)
    before = [key for key in store.backend.scan_objects(ScanSplit(), None, 1000) if key.realm == realm.key]
    collect_realm(store, SYSTEM_REALM)

    assert [key for key in store.backend.scan_objects(ScanSplit(), None, 1000) if key.realm == realm.key] == before


def test_collection_of_an_empty_store_does_nothing(store: Store) -> None:
    assert collect_realm(store, SYSTEM_REALM).deleted == 0


def test_runs_are_listed_newest_first(store: Store) -> None:
    for number in (1, 3, 2):
        record_run(store, a_run(number))

    assert [run.counts["number"] for run in list_runs(store)] == [3, 2, 1]


def test_runs_are_kept_only_if_newest(short_history: Store) -> None:
    for number in range(10):
        record_run(short_history, a_run(number))

    assert [run.counts["number"] for run in list_runs(short_history)] == [9, 8, 7]


def test_rows_of_older_runs_are_collected(short_history: Store, clock: FakeClock) -> None:
    for number in range(10):
        record_run(short_history, a_run(number))
    clock.advance(HOUR)
    collect_realm(short_history, SYSTEM_REALM)

    assert rows_by_type(short_history)["run"] == 4  # three now, and one more in the commit before


def test_runs_are_found_by_kind_realm_and_number(store: Store) -> None:
    for number, (kind, realm) in enumerate([("gc", "acme"), ("purge", "acme"), ("gc", "other"), ("gc", "acme")]):
        record_run(store, a_run(number, kind=kind, realm=realm))

    assert [run.counts["number"] for run in list_runs(store, kind="gc", realm="acme")] == [3, 0]
    assert [run.counts["number"] for run in list_runs(store, limit=2)] == [3, 2]
    assert list_runs(store, kind="import") == []


def test_fresh_store_has_no_runs(store: Store) -> None:
    assert list_runs(store) == []
