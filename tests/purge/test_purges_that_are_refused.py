"""Purges that delete nothing: not all files can be told, or they are somebody's."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from fake_clock import FakeClock
from headwater import Store
from headwater.catalogs import PURGING, Catalog, ContentKey, TableClaim, TableClaims
from headwater.clients.pyiceberg import HeadwaterCatalog
from headwater.clock import Micros
from headwater.fsck import check_store
from headwater.jobs import PURGE_TABLE, request_table_purge, retry_reachable_only
from headwater.jobs.task_runs import list_runs
from headwater.purge import DroppedTable, PurgeRequest
from headwater.realms import REALM_REFERENCES, RealmRegistry, RealmState
from headwater.tasks import Task, TaskQueue, TaskState

Files = Callable[[], set[str]]
Work = Callable[..., Task]


@pytest.fixture
def purged(shop: HeadwaterCatalog, place: Path, pass_time: Callable[[], None]) -> Path:
    """The folder of a table whose files may go."""
    shop.purge_table("sales.orders")
    pass_time()
    return place


@pytest.fixture
def change_metadata(purged: Path) -> Callable[..., None]:
    """Of the table's metadata file: ``change_metadata(**{"format-version": 4})``."""

    def act(**changes: Any) -> None:
        newest = max((purged / "metadata").glob("*.json"))
        newest.write_text(json.dumps(json.loads(newest.read_text()) | changes))

    return act


@pytest.mark.parametrize("pattern", ["snap-*.avro", "*-m0.avro"])
def test_missing_manifest_or_list_leaves_all_files(pattern: str, purged: Path, work: Work, files: Files) -> None:
    missing = next((purged / "metadata").glob(pattern))
    missing.unlink()
    before = files()
    task = work()

    assert task.state is TaskState.FAILED
    assert f"1 manifests or lists of {max((purged / 'metadata').glob('*.json')).as_uri()} cannot be read" in task.error
    assert f"{missing.as_uri()} is not there" in task.error
    assert files() == before


def test_broken_manifest_leaves_all_files_until_it_is_restored(purged: Path, store: Store, work: Work, files: Files) -> None:
    manifest = next((purged / "metadata").glob("*-m0.avro"))
    data = manifest.read_bytes()
    manifest.write_bytes(data[:100])
    before = files()
    task = work()
    assert f"{manifest.as_uri()} is not an Avro manifest or manifest list" in task.error
    assert files() == before

    manifest.write_bytes(data)
    TaskQueue(store).retry_task(TaskQueue(store).list_tasks(kind=PURGE_TABLE)[0].id)

    assert work().state is TaskState.SUCCEEDED
    assert files() == set()


def test_missing_metadata_file_leaves_all_files(purged: Path, store: Store, work: Work, files: Files) -> None:
    max((purged / "metadata").glob("*.json")).unlink()
    before = files()

    assert "nothing is deleted, for it alone says which files are the table's" in work().error
    assert files() == before
    assert list_runs(store, kind=PURGE_TABLE)[0].counts["deleted"] == 0


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"format-version": 4}, "is a draft"),
        ({"encryption-keys": [{"key-id": "a"}]}, "it is encrypted"),
        ({"properties": {"gc.enabled": "FALSE"}}, "gc.enabled=false"),
        ({"table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1"}, "is of the table 9c12d441"),
        ({"location": "file:///elsewhere"}, "has its table at file:///elsewhere by now"),
        ({"schemas": []}, "its metadata is not sound"),
    ],
)
def test_metadata_that_does_not_tell_all_files_leaves_them(
    changes: dict[str, Any], said: str, change_metadata: Callable[..., None], work: Work, files: Files
) -> None:
    change_metadata(**changes)
    before = files()
    task = work()

    assert (task.state, said in task.error) == (TaskState.FAILED, True), task.error
    assert files() == before


def test_metadata_that_leads_outside_is_not_followed(
    purged: Path, change_metadata: Callable[..., None], work: Work, files: Files, tmp_path: Path
) -> None:
    outside = tmp_path / "secrets.avro"
    outside.write_text("hunter2")
    found = json.loads(max((purged / "metadata").glob("*.json")).read_text())
    change_metadata(snapshots=[one | {"manifest-list": outside.as_uri()} for one in found["snapshots"]])
    before = files()
    task = work()

    assert f"{outside.as_uri()} lies outside of what the catalog allows" in task.error
    assert "hunter2" not in task.error
    assert (files(), outside.exists()) == (before, True)


def test_files_behind_a_link_are_left_with_all_others(purged: Path, work: Work, tmp_path: Path) -> None:
    shutil.move(purged / "data", tmp_path / "elsewhere")
    (purged / "data").symlink_to(tmp_path / "elsewhere")
    task = work()

    assert "it leads elsewhere by a link, or is spelled as no listing tells; nothing is deleted" in task.error
    assert list((tmp_path / "elsewhere").glob("*.parquet"))


def test_files_that_another_realm_has_claimed_are_left(purged: Path, store: Store, work: Work, files: Files) -> None:
    """As one does that was loaded from an archive of this one."""
    realms = RealmRegistry(store)
    realms.move_realm(realms.create_realm("copy"), RealmState.INITIALIZING)
    realms.open_realm_for("copy", RealmState.INITIALIZING).ensure_references(REALM_REFERENCES)
    realms.move_realm(realms.read_realm("copy"), RealmState.ACTIVE)
    TableClaims(realms.open_realm("copy")).take_claims([TableClaim("00000000000000ab", uuid4(), purged.as_uri())])
    before = files()

    assert work().error.endswith(f"nothing is deleted: another realm of this store has claimed location {purged.as_uri()}")
    assert files() == before


def test_files_being_purged_are_registered_by_nobody(shop: HeadwaterCatalog, purged: Path, store: Store, lake: Catalog) -> None:
    TableClaims(RealmRegistry(store).open_realm("acme")).take_claims([TableClaim(PURGING, uuid4(), purged.as_uri())])

    with pytest.raises(ValueError, match="being purged"):
        shop.register_table("sales.lines", max((purged / "metadata").glob("*.json")).as_uri())
    assert check_store(store) == []


def test_purge_that_is_over_lets_go_of_the_place(shop: HeadwaterCatalog, purged: Path, work: Work, store: Store) -> None:
    work()

    assert TableClaims(RealmRegistry(store).open_realm("acme")).find_location(purged.as_uri()) is None


def test_purge_whose_table_was_never_dropped_is_given_up(
    shop: HeadwaterCatalog, lake: Catalog, store: Store, clock: FakeClock, work: Work, files: Files
) -> None:
    """Its client died in between; until its claim would be too old, it may only be slow."""
    table, before = shop.load_table("sales.orders"), files()
    content = lake.get_content("main", ContentKey.of("sales", "orders"))
    assert content is not None and content.id is not None
    wish = PurgeRequest(
        catalog="lake",
        catalog_id=lake.definition.id,
        content_id=content.id,
        table_uuid=table.metadata.table_uuid,
        drops=(
            DroppedTable(
                branch="main",
                key="sales.orders",
                metadata=table.metadata_location,
                location=table.location(),
                asked=Micros(clock.now()),
            ),
        ),
    )
    request_table_purge(store, wish, realm="acme", realm_key=RealmRegistry(store).read_realm("acme").key)
    clock.advance(59)

    first = work()
    assert (first.state, "stands on branch main" in first.error) == (TaskState.WAITING, True)
    assert work().state is TaskState.FAILED
    assert files() == before


@pytest.mark.parametrize("pattern", ["snap-*.avro", "*-m0.avro"])
def test_table_whose_files_cannot_all_be_told_is_not_dropped(pattern: str, shop: HeadwaterCatalog, place: Path) -> None:
    next((place / "metadata").glob(pattern)).unlink()

    with pytest.raises(ValueError, match="was not dropped: 1 manifests or lists"):
        shop.purge_table("sales.orders")
    assert shop.table_exists("sales.orders")


def test_files_that_can_be_reached_are_purged_on_request(
    shop: HeadwaterCatalog, place: Path, pass_time: Callable[[], None], work: Work, files: Files
) -> None:
    next((place / "metadata").glob("*-m0.avro")).unlink()
    shop.purge_table("sales.orders", reachable_only=True)
    pass_time()

    task = work()

    assert task.state is TaskState.SUCCEEDED
    assert {name for name in files() if name.startswith("metadata/")} == set()
    (note, *_) = (task.outcome or {})["notes"]
    assert "files that only they name were not deleted and will not be" in note


def test_table_given_up_by_one_branch_is_missed_for_another(
    shop: HeadwaterCatalog,
    open_shop: Callable[..., HeadwaterCatalog],
    lake: Catalog,
    place: Path,
    pass_time: Callable[[], None],
    work: Work,
    files: Files,
) -> None:
    lake.create_branch("dev", "main")
    dev = open_shop("dev")
    shop.purge_table("sales.orders")
    dev.purge_table("sales.orders", reachable_only=True)
    dev.create_namespace("later")
    pass_time()
    next((place / "metadata").glob("snap-*.avro")).unlink()
    before = files()

    assert (work().state, files()) == (TaskState.FAILED, before)


def test_failed_purge_is_retried_for_what_can_be_reached(purged: Path, store: Store, work: Work, files: Files) -> None:
    next((purged / "metadata").glob("snap-*.avro")).unlink()
    assert work().state is TaskState.FAILED

    retry_reachable_only(TaskQueue(store), TaskQueue(store).list_tasks(kind=PURGE_TABLE)[0].id)

    assert work().state is TaskState.SUCCEEDED
    assert {name for name in files() if name.startswith("metadata/")} == {
        name for name in files() if name.endswith("-m0.avro") or name.endswith("-m1.avro")
    }
