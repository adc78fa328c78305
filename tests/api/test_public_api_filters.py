"""What the public API finds and lists by conditions, and how it tells of long work."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from msgspec.structs import replace

import headwater
from headwater.api.task_client import run_here
from headwater.api.task_work import TASK_WORK
from headwater.api.work_progress import WorkProgress
from headwater.jobs import TASK_KINDS, list_runs
from headwater.jobs.task_runs import record_run
from headwater.store import id_of
from headwater.tasks import TaskLease

COLUMNS = pa.schema([("id", pa.int64())])
KEYS = ("sales.a", "sales.b", "sales.c")


@pytest.fixture
def lake(realm: headwater.RealmClient, tmp_path: Path) -> headwater.CatalogClient:
    """A catalog with three tables on its default branch."""
    made = realm.create_catalog("lake", base_location=(tmp_path / "lake").as_uri())
    catalog = made.branch().pyiceberg()
    catalog.create_namespace("sales")
    for key in KEYS:
        catalog.create_table(key, COLUMNS)
    return made


def keys_of(entries: Iterator[headwater.EntryInfo]) -> list[str]:
    return [entry.key for entry in entries]


def test_listings_have_ranges_and_directions(lake: headwater.CatalogClient) -> None:
    main = lake.branch()

    assert keys_of(main.entries(start="sales.b")) == ["sales.b", "sales.c"]
    assert keys_of(main.entries(end="sales.b")) == ["sales", "sales.a"]
    assert keys_of(main.entries(under="sales", reverse=True)) == ["sales.c", "sales.b", "sales.a"]


def test_references_are_chosen_by_a_condition(lake: headwater.CatalogClient) -> None:
    lake.create_branch("etl/one")
    lake.create_tag("v1")

    assert [each.name for each in lake.branches(where="ref.name.startsWith('etl/')")] == ["etl/one"]
    assert lake.tags(where="ref.name == 'v2'") == []
    lake.branch("etl/one").delete()
    [gone] = lake.deleted_branches()
    assert gone.deleted is not None and gone.held_until is not None and gone.held_until > gone.deleted


def test_differences_are_chosen_and_explained(lake: headwater.CatalogClient) -> None:
    dev = lake.create_branch("dev")
    dev.pyiceberg().load_table("sales.b").append(pa.table({"id": [1, 2]}, schema=COLUMNS))
    dev.pyiceberg().drop_table("sales.c")

    assert [each.key for each in lake.branch().diff("dev", start="sales.c")] == ["sales.c"]
    [changed] = lake.branch().diff("dev", where="key.name == 'b'", with_sides=True)
    assert changed.sides is not None
    assert [snapshot.added_rows for snapshot in changed.sides.source.snapshots] == [2]
    assert (changed.sides.into.commit_count, changed.sides.source.commit_count) == (0, 1)


def test_log_says_why_it_ends(lake: headwater.CatalogClient) -> None:
    main = lake.branch()
    whole, few = main.log(), main.log(within=2)

    assert len(list(whole)) == 4 and whole.end == "beginning"
    assert [commit.operations[0].key for commit in few] == ["sales.c", "sales.b"]
    assert few.end == "bound" and few.last is not None
    assert [each.operations[0].key for each in main.log(content_type="NAMESPACE")] == ["sales"]
    with pytest.raises(headwater.RefusedError, match="it is one of ICEBERG_TABLE"):
        main.log(content_type="TABLE")
    history = main.history("sales.a", within=1)
    assert (list(history), history.end) == ([], "bound")


def test_tables_at_home_are_listed_with_guests(lake: headwater.CatalogClient) -> None:
    assert lake.branch().guests() == []
    assert [(each.key, each.is_home) for each in lake.branch().guests(with_homes=True)] == [(key, True) for key in KEYS]


def test_commit_says_who_and_why(lake: headwater.CatalogClient) -> None:
    dev = lake.create_branch("dev")
    dev.pyiceberg().drop_table("sales.a")
    main, commit = lake.branch(), dev.hash()
    assert commit is not None

    main.transplant("dev", [commit], message="away with it", author=("eve", "bob"), properties={"ticket": ("7", "8")})
    newest = next(main.log())
    assert (newest.message, newest.authors, newest.properties) == ("away with it", ("eve", "bob"), {"ticket": ("7", "8")})


def test_runs_and_tasks_are_chosen(store: headwater.Connection, realm: headwater.RealmClient) -> None:
    realm.collect()
    [task] = store.tasks(kind="gc", subject="", since=datetime.now(UTC) - timedelta(hours=1), limit=1)

    assert store.runs(failed=True) == [] == store.runs(since=datetime.now(UTC) + timedelta(hours=1))
    assert list(store.tasks(older_than=timedelta(hours=1))) == []
    assert [run.attempt for run in store.task(task.id).runs()] == [1]
    assert [(each.kind, each.waiting) for each in store.task_figures()] == [("gc", 0)]
    hour_ago, [done] = datetime.now(UTC) - timedelta(hours=1), list_runs(store._session.store)
    record_run(store._session.store, replace(done, error="no room"))
    assert [run.error for run in store.runs(failed=True, since=hour_ago)] == ["no room"]
    assert [run.error for run in store.runs(since=hour_ago, limit=2)] in (["no room", ""], ["", "no room"])
    assert [task.id for task in store.tasks(older_than=timedelta(0))] == [task.id]
    with pytest.raises(headwater.RefusedError, match="no purge of a table"):
        store.task(task.id).retry(reachable_only=True)


def test_stops_hold_from_the_store_down(store: headwater.Connection, lake: headwater.CatalogClient) -> None:
    store.stop_maintenance(why="all of it")
    lake.stop_maintenance(why="this one")

    assert [each.why for each in lake.maintenance_stops()] == ["all of it", "this one"]
    assert [each.why for each in store.realm("acme").maintenance_stops()] == ["all of it"]
    assert store.resume_maintenance() and not store.resume_maintenance()


def test_long_work_is_told_by_its_phases(realm: headwater.RealmClient, lake: headwater.CatalogClient) -> None:
    seen: list[headwater.TaskProgressInfo] = []
    realm.collect(progress=seen.append)

    assert {(each.kind, each.realm, each.unit) for each in seen} >= {("gc", "acme", "rows scanned")}
    assert seen[-1].done == seen[-1].total
    assert len(seen) == len(set(seen)), "nothing is told twice"


def test_phases_are_told_when_they_begin_and_when_they_are_complete() -> None:
    seen: list[headwater.TaskProgressInfo] = []
    told = WorkProgress(seen.append, kind="gc", realm="acme")
    for done in range(1001):
        told.callback(done, 1000, "rows scanned")
    for done in range(1001):
        told.callback(done, 0, "rows deleted")

    units = [each.unit for each in seen]
    assert (seen[0].done, units[0]) == (0, "rows scanned")
    complete = next(each for each in seen if each.done == each.total)
    assert seen.index(complete) + 1 == units.index("rows deleted")
    assert (seen[-1].total, len(seen) < 100) == (None, True)


def test_work_that_needs_no_task_is_told_too(store: headwater.Connection, lake: headwater.CatalogClient) -> None:
    seen: list[headwater.TaskProgressInfo] = []

    assert store.check("acme", progress=seen.append) == []
    assert seen[0].kind == "fsck" and "acme" in seen[0].unit
    seen.clear()
    store.realm("acme").collect(dry_run=True, progress=seen.append)
    assert {each.kind for each in seen} == {"gc"}


@pytest.mark.filterwarnings("ignore:task .* waits")
def test_error_of_an_observer_hands_the_task_back(store: headwater.Connection, realm: headwater.RealmClient) -> None:
    calls = []

    def refuse(progress: headwater.TaskProgressInfo) -> None:
        calls.append(progress)
        raise LookupError(progress.unit)

    with pytest.raises(LookupError):
        realm.collect(progress=refuse)
    [task] = store.tasks()
    assert (task.state, task.failures, len(calls)) == ("WAITING", 0, 1)
    assert task.attempts[0].outcome == "HANDED_BACK" and "raised LookupError" in task.attempts[0].error
    assert store.task(task.id).run().state == "SUCCEEDED"


def test_work_that_is_done_is_not_lost_to_its_observer(store: headwater.Connection, lake: headwater.CatalogClient) -> None:
    def refuse_the_end(progress: headwater.TaskProgressInfo) -> None:
        if progress.done == progress.total:
            raise LookupError(progress.unit)

    session = lake._session
    task = store.task(lake.report_files(detach=True)["task"])

    def body(opened: headwater.Store, claim: TaskLease) -> dict[str, Any]:
        claim.report_progress(1, 2, "steps")
        return {"steps": 2}

    with pytest.warns(UserWarning, match="raised LookupError: steps; the work was done by then"):
        assert run_here(session, id_of(task.id), body, progress=refuse_the_end) == {"steps": 2}
    other = store.task(lake.report_files(detach=True)["task"])

    def late(opened: headwater.Store, claim: TaskLease) -> dict[str, Any]:
        claim.report_progress(2, 2, "steps")
        return {"steps": 2}

    with pytest.warns(UserWarning, match="raised LookupError: steps; the work was done by then"):
        assert run_here(session, id_of(other.id), late, progress=refuse_the_end) == {"steps": 2}
    assert {task.info().state, other.info().state} == {"SUCCEEDED"}


def test_phases_of_a_check_are_completed(store: headwater.Connection, lake: headwater.CatalogClient) -> None:
    seen: list[headwater.TaskProgressInfo] = []
    store.check(progress=seen.append)
    last = {each.unit: each for each in seen}

    assert last.keys() >= {"realms checked", "references of realm 'acme' checked", "references of realm '::system::' checked"}
    assert all(each.done == each.total for unit, each in last.items() if unit.endswith("checked"))


def test_every_kind_of_task_is_run_here(store: headwater.Connection, lake: headwater.CatalogClient) -> None:
    started = [
        lake.report_files(detach=True),
        lake.expire_snapshots(detach=True),
        store.realm("acme").collect(detach=True),
    ]
    assert {task.state for task in store.tasks()} == {"WAITING"}
    assert TASK_WORK.keys() == set(TASK_KINDS)

    for each in started:
        assert store.task(each["task"]).run().state == "SUCCEEDED"
    with pytest.raises(headwater.RefusedError, match="leave detach"):
        lake.report_files(dry_run=True, detach=True)
