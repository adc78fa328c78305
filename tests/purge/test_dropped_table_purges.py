"""A table that a client purged: its files stay while any kept commit holds it, and are all deleted then."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from msgspec.structs import replace

from fake_clock import FakeClock
from headwater import Store
from headwater.catalogs import Catalog, Catalogs, ContentKey, ImportSpec, Put
from headwater.clients.pyiceberg import HeadwaterCatalog
from headwater.clock import Micros, as_text
from headwater.commits import hold_pins, pin_commits, read_collection, read_pins, unpin_commits
from headwater.fsck import check_store
from headwater.gc import collect_realm
from headwater.jobs.task_runs import list_runs
from headwater.purge import PurgeRequest
from headwater.realms import RealmRegistry, RealmState
from headwater.store import ObjectId
from headwater.tasks import AttemptEnd, Task, TaskQueue, TaskState

Files = Callable[[], set[str]]
Work = Callable[..., Task]


def test_all_files_of_a_purged_table_are_deleted(
    shop: HeadwaterCatalog, store: Store, pass_time: Callable[[], None], work: Work, files: Files
) -> None:
    before = len(files())
    shop.purge_table("sales.orders")
    pass_time()
    task = work()

    assert task.state is TaskState.SUCCEEDED, task.error
    assert files() == set()
    assert task.outcome == {
        "table": "lake/sales.orders", "planned": before, "deleted": before, "gone": 0, "outside": 0, "others": 0, "notes": []
    }  # fmt: skip
    assert check_store(store) == []


def test_purge_keeps_a_record(shop: HeadwaterCatalog, store: Store, pass_time: Callable[[], None], work: Work) -> None:
    shop.purge_table("sales.orders")
    pass_time()
    work()

    (run,) = list_runs(store, kind="purge-table")
    assert (run.realm, run.error, run.counts["gone"]) == ("acme", "", 0)
    assert run.counts["deleted"] == run.counts["planned"] > 10


def test_files_stay_while_history_holds_the_table(shop: HeadwaterCatalog, work: Work, files: Files) -> None:
    before = files()
    shop.purge_table("sales.orders")
    task = work()

    assert (task.state, task.attempts[-1].outcome, task.failures) == (TaskState.WAITING, AttemptEnd.PUT_OFF, 0)
    assert "commits that are kept may hold content" in task.error
    assert files() == before


def test_put_off_purge_looks_again_after_an_hour(shop: HeadwaterCatalog, clock: FakeClock, work: Work) -> None:
    shop.purge_table("sales.orders")

    assert work().due - clock.now() == 3600 * 1_000_000


@pytest.mark.parametrize("kind", ["branch", "tag"])
def test_files_stay_while_another_reference_holds_the_table(
    kind: str, shop: HeadwaterCatalog, lake: Catalog, pass_time: Callable[[], None], work: Work, files: Files
) -> None:
    before = files()
    create, delete = (lake.create_branch, lake.delete_branch) if kind == "branch" else (lake.create_tag, lake.delete_tag)
    create("monday", "main")
    shop.purge_table("sales.orders")
    pass_time()
    task = work()
    assert (task.state, files()) == (TaskState.WAITING, before)
    assert f"stands on {kind} monday" in task.error

    delete("monday")
    assert work().state is TaskState.WAITING  # it could be undeleted
    pass_time()

    assert work().state is TaskState.SUCCEEDED
    assert files() == set()


def test_files_stay_while_a_task_has_pinned_a_commit(
    shop: HeadwaterCatalog, store: Store, lake: Catalog, pass_time: Callable[[], None], work: Work, files: Files
) -> None:
    rows, owner, head = RealmRegistry(store).open_realm("acme"), ObjectId(1), lake.branch("main").head
    assert head is not None
    pin_commits(rows, owner, {head: (f"cat/{lake.definition.id}/heads/main",)})
    shop.purge_table("sales.orders")
    waiting = work()

    assert "reads what commits of the past hold" in waiting.error
    unpin_commits(rows, owner)
    pass_time()
    assert work().state is TaskState.SUCCEEDED
    assert files() == set()


def test_files_stay_while_an_exported_archive_is_held(
    shop: HeadwaterCatalog,
    store: Store,
    lake: Catalog,
    clock: FakeClock,
    pass_time: Callable[[], None],
    work: Work,
    files: Files,
) -> None:
    rows, owner, head = RealmRegistry(store).open_realm("acme"), ObjectId(1), lake.branch("main").head
    assert head is not None
    until, before = Micros(clock.now() + 30 * 24 * 3_600_000_000), files()
    pin_commits(rows, owner, {head: (f"cat/{lake.definition.id}/heads/main",)})
    hold_pins(rows, owner, until)
    shop.purge_table("sales.orders")
    pass_time()
    pass_time()

    assert f"is held until {as_text(until)}" in work().error
    assert files() == before
    clock.advance(30 * 24 * 3600)
    pass_time()
    assert read_pins(rows) == []
    assert work().state is TaskState.SUCCEEDED
    assert files() == set()


def test_table_that_was_restored_keeps_its_files(
    shop: HeadwaterCatalog, lake: Catalog, clock: FakeClock, work: Work, files: Files
) -> None:
    before, head = files(), lake.branch("main").head
    shop.purge_table("sales.orders")
    assert head is not None
    lake.assign_branch("main", head)
    clock.advance(3600)
    task = work()

    assert task.state is TaskState.FAILED
    assert "is in it, as sales.orders on branch main: it was never dropped, or has come back; nothing is deleted" in task.error
    assert files() == before
    assert shop.load_table("sales.orders").scan().to_arrow().num_rows == 2


def test_table_that_is_registered_again_keeps_its_files(
    shop: HeadwaterCatalog, pass_time: Callable[[], None], work: Work, files: Files
) -> None:
    before, metadata = files(), shop.load_table("sales.orders").metadata_location
    shop.purge_table("sales.orders")
    pass_time()
    shop.register_table("sales.lines", metadata)
    task = work()

    assert task.state is TaskState.FAILED
    assert "is in it, as sales.lines on branch main" in task.error
    assert files() == before


def test_table_that_is_registered_again_at_once_keeps_its_files(
    shop: HeadwaterCatalog, pass_time: Callable[[], None], work: Work, files: Files
) -> None:
    """It gets its content id back."""
    before, metadata = files(), shop.load_table("sales.orders").metadata_location
    shop.purge_table("sales.orders")
    shop.register_table("sales.lines", metadata)
    pass_time()

    assert work().state is TaskState.FAILED
    assert files() == before


def test_branches_that_purge_the_same_table_share_a_task(
    shop: HeadwaterCatalog,
    open_shop: Callable[..., HeadwaterCatalog],
    lake: Catalog,
    rows: pa.Table,
    pass_time: Callable[[], None],
    work: Work,
    files: Files,
) -> None:
    """Each had files of its own."""
    lake.create_branch("dev", "main")
    dev = open_shop("dev")
    dev.load_table("sales.orders").append(rows)
    shop.load_table("sales.orders").append(rows)
    shop.purge_table("sales.orders")
    dev.purge_table("sales.orders")
    dev.create_namespace("later")
    pass_time()

    assert work().state is TaskState.SUCCEEDED
    assert files() == set()


def test_files_beside_the_table_are_left_and_counted(
    shop: HeadwaterCatalog, pass_time: Callable[[], None], work: Work, files: Files, place: Path
) -> None:
    (place / "data" / "stray.parquet").touch()
    shop.purge_table("sales.orders")
    pass_time()
    task = work()

    assert files() == {"data/stray.parquet"}
    assert task.outcome is not None
    assert (task.outcome["others"], task.outcome["notes"]) == (
        1,
        ["1 files in its location that its metadata does not name were left"],
    )


def test_files_that_the_table_has_elsewhere_are_left_and_counted(
    shop: HeadwaterCatalog, rows: pa.Table, pass_time: Callable[[], None], work: Work, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "warehouse" / "shared"
    table = shop.create_table("sales.lines", rows.schema, properties={"write.data.path": elsewhere.as_uri()})
    table.append(rows)
    shop.purge_table("sales.lines")
    pass_time()
    task = work()

    assert len(list(elsewhere.rglob("*.parquet"))) == 1
    assert task.outcome is not None
    assert (task.outcome["outside"], task.outcome["deleted"] == task.outcome["planned"]) == (1, True)


@pytest.fixture
def scattered(shop: HeadwaterCatalog, rows: pa.Table, tmp_path: Path) -> Path:
    """The folder of a table ``sales.lines`` whose metadata lies elsewhere in the warehouse."""
    about = (tmp_path / "warehouse" / "about").as_uri()
    table = shop.create_table("sales.lines", rows.schema, properties={"write.metadata.path": about})
    table.append(rows)
    return Path(table.location().removeprefix("file://"))


def test_purge_outlives_its_catalog(
    shop: HeadwaterCatalog, scattered: Path, store: Store, clock: FakeClock, work: Work
) -> None:
    shop.purge_table("sales.lines")
    catalogs = Catalogs(RealmRegistry(store).open_realm("acme"))
    catalogs.delete_catalog("lake")
    catalogs.purge_catalog("lake")
    for _ in range(3):
        clock.advance(3600)
        collect_realm(store, "acme")
    task = work()

    assert task.state is TaskState.SUCCEEDED, task.error
    assert [file for file in scattered.rglob("*") if file.is_file()] == []


def test_metadata_in_a_place_of_an_import_is_followed(
    shop: HeadwaterCatalog, lake: Catalog, rows: pa.Table, store: Store, tmp_path: Path
) -> None:
    catalogs, outside = Catalogs(RealmRegistry(store).open_realm("acme")), (tmp_path / "imported").as_uri()
    catalogs.update_catalog(lake.definition, imports=(ImportSpec(name="initial", locations=(outside,)),))
    client = HeadwaterCatalog.on(store, realm="acme", catalog="lake")
    properties = {"write.metadata.path": f"{outside}/about"}
    client.create_table("sales.lines", rows.schema, properties=properties).append(rows)

    client.purge_table("sales.lines")

    (task,) = TaskQueue(store).list_tasks(kind="purge-table")
    assert [drop.allowed for drop in PurgeRequest.from_task(task.value).drops] == [(outside,)]


def test_table_purged_restored_and_purged_again_is_purged_once(
    shop: HeadwaterCatalog, lake: Catalog, rows: pa.Table, pass_time: Callable[[], None], work: Work, files: Files
) -> None:
    """With what was written in between."""
    head = lake.branch("main").head
    shop.purge_table("sales.orders")
    assert head is not None
    lake.assign_branch("main", head)
    shop.load_table("sales.orders").append(rows)
    shop.purge_table("sales.orders")
    pass_time()

    assert work().state is TaskState.SUCCEEDED
    assert files() == set()


def test_purge_in_a_realm_that_sleeps_waits(
    shop: HeadwaterCatalog, store: Store, pass_time: Callable[[], None], work: Work, files: Files
) -> None:
    before = files()
    shop.purge_table("sales.orders")
    pass_time()
    RealmRegistry(store).move_realm(RealmRegistry(store).read_realm("acme"), RealmState.INACTIVE)

    assert (work().state, files()) == (TaskState.WAITING, before)


def test_files_stay_while_a_collection_sweeps(
    shop: HeadwaterCatalog, store: Store, pass_time: Callable[[], None], work: Work, files: Files
) -> None:
    """What holds the table may still be there to be copied."""
    shop.purge_table("sales.orders")
    pass_time()
    before, rows = files(), RealmRegistry(store).open_realm("acme")
    record = read_collection(rows)
    assert record is not None
    sweeping = rows.update_object(record, replace(record.value, sweeping=True))
    task = work()
    assert (files(), "a collection of realm 'acme' is sweeping" in task.error) == (before, True)

    rows.update_object(sweeping, record.value)

    assert work().state is TaskState.SUCCEEDED
    assert files() == set()


def test_files_stay_when_the_table_came_back_without_a_claim(
    shop: HeadwaterCatalog, lake: Catalog, pass_time: Callable[[], None], work: Work, files: Files
) -> None:
    """As a transplant brings it back."""
    before, key = files(), ContentKey.of("sales", "orders")
    content = lake.get_content("main", key)
    assert content is not None and content.id is not None
    shop.purge_table("sales.orders")
    pass_time()
    lake.commit("main", [Put(key, replace(content, id=None))], content_ids={key: content.id})
    task = work()

    assert (task.state, files()) == (TaskState.FAILED, before)
    assert "it was never dropped, or has come back" in task.error
