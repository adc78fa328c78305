"""File tables in archives: what comes back is read-only until its files were copied."""

from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path

import pytest
from archived import REALM, exported, open_on

from fake_clock import FakeClock
from faulty_backend import FaultyBackend
from file_tables import make_table, open_table, track_file
from headwater import Settings, Store
from headwater.backup import check_archive, load_realm
from headwater.backup.archived_tables import read_table_records
from headwater.errors import CorruptionError, ExpiredError, RefusedError
from headwater.files import (
    ROOT,
    AssignJob,
    FileTable,
    FileTableClosedError,
    FileTableState,
    PartitionId,
    find_file_table,
    list_file_scopes,
    list_file_tables,
)
from headwater.files.file_adoption import adopt_table
from headwater.fsck import check_store
from headwater.purge import FileTablePurge
from headwater.realms import RealmRegistry, RealmState
from headwater.store import RealmStore
from headwater.store.backends.memory import MemoryBackend
from tiers import Sample

SPLITS = {ROOT: b"m", PartitionId("r0"): b"f"}


@pytest.fixture
def settings(settings: Settings, tmp_path: Path) -> Settings:
    return dataclasses.replace(settings, files_store=f"sqlite:///{tmp_path}/files.db")


@pytest.fixture
def orders(store: Store, tmp_path: Path) -> FileTable:
    """A table with three files, one of which a job works on and one of which nobody needs any more."""
    rows = RealmRegistry(store).open_realm(REALM)
    make_table(store, rows, location=str(tmp_path / "tables"), splits=SPLITS)
    table = open_table(store, rows)
    track_file(table, "r00", "r1", content=b"first")
    second = track_file(table, "r01", content=b"second")
    table.references.assign_jobs([AssignJob(job="j", partition=PartitionId("r01"), filenames=(second,))])
    track_file(table)
    return table


@pytest.fixture
def archive(store: Store, orders: FileTable, tmp_path: Path) -> Path:
    return exported(store, tmp_path / "acme.realm").file


def rows_of_copy(store: Store) -> RealmStore:
    return RealmRegistry(store).open_realm("copy")


def copied_table(store: Store) -> FileTable:
    return open_table(store, rows_of_copy(store))


def claims(table: FileTable) -> list[tuple[str, str, int]]:
    return [(each.filename, each.partition, each.rows) for each in table.references.references()]


def contents(table: FileTable) -> list[bytes]:
    return sorted(Path(filename).read_bytes() for filename in table.plan_read().filenames)


def test_archive_tells_what_it_has_of_file_tables(archive: Path) -> None:
    end = check_archive(archive).end

    assert (end.file_tables, end.file_references) == (1, 3)


def test_archive_with_file_tables_has_a_format_of_its_own(archive: Path) -> None:
    assert archive.read_bytes()[:8] == b"HWREALM\x02"


def test_archive_without_file_tables_is_of_the_first_format(store: Store, tmp_path: Path) -> None:
    assert exported(store, tmp_path / "plain.realm").file.read_bytes()[:8] == b"HWREALM\x01"


def test_imported_table_has_the_tree_and_the_references(target: Store, orders: FileTable, archive: Path) -> None:
    load_realm(target, "copy", archive)

    table = copied_table(target)
    assert table.read_tree().splits == SPLITS
    assert claims(table) == claims(orders)
    assert {reference.job for reference in table.references.references()} == {None}
    assert check_store(target, realm="copy") == []


def test_imported_table_takes_nothing(target: Store, archive: Path) -> None:
    load_realm(target, "copy", archive)

    table = copied_table(target)
    assert table.definition.state is FileTableState.READ_ONLY
    with pytest.raises(FileTableClosedError, match="headwater file-table adopt"):
        table.split_leaves({PartitionId("r1"): b"t"})
    with pytest.raises(FileTableClosedError):
        track_file(table, "r1")


def test_import_into_the_same_store_leaves_the_first_table_alone(store: Store, orders: FileTable, archive: Path) -> None:
    load_realm(store, "copy", archive)

    assert copied_table(store).definition.id != orders.definition.id
    orders.split_leaves({PartitionId("r1"): b"t"})
    assert copied_table(store).read_tree().splits == SPLITS


def test_interrupted_import_is_completed(
    archive: Path, settings: Settings, clock: FakeClock, sample: Sample, tmp_path: Path
) -> None:
    for call in sample.one_in(20, itertools.count(1)):
        backend = MemoryBackend()
        faulty = FaultyBackend(backend)
        faulty.fail("*", at=call, times=1_000_000)
        references = dataclasses.replace(settings, files_store=f"sqlite:///{tmp_path}/files-{call}.db")
        try:
            load_realm(open_on(faulty, references, clock), "copy", archive)
        except Exception as fault:  # noqa: BLE001 - whatever the caller is told
            print(call, fault)  # noqa: T201 - shown with a failure
        else:
            assert call > 50
            return
        again = open_on(backend, references, clock)
        load_realm(again, "copy", archive)

        assert claims(copied_table(again)) and len(list_file_tables(rows_of_copy(again), with_deleted=True)) == 1
        assert len(list_file_scopes(again)) == 1
        with pytest.raises(FileTableClosedError):
            track_file(copied_table(again), "r1")


def test_store_without_file_references_refuses_the_archive(archive: Path, settings: Settings, clock: FakeClock) -> None:
    with pytest.raises(RefusedError, match="HEADWATER_FILES_STORE"):
        load_realm(open_on(MemoryBackend(), dataclasses.replace(settings, files_store=""), clock), "copy", archive)


def test_adopted_table_has_files_of_its_own(target: Store, orders: FileTable, archive: Path, tmp_path: Path) -> None:
    load_realm(target, "copy", archive)
    before = contents(copied_table(target))

    adopted = adopt_table(target, rows_of_copy(target), "orders", location=str(tmp_path / "ours"))

    table = copied_table(target)
    assert (adopted.files, adopted.copied, adopted.size_bytes) == (2, 2, 11)
    assert contents(table) == before
    assert all(table.definition.data_folder in filename for filename in table.plan_read().filenames)
    track_file(table, "r1")
    table.split_leaves({PartitionId("r1"): b"t"})
    assert contents(orders) == before


def test_adoption_leaves_one_scope_and_no_old_table(target: Store, archive: Path, tmp_path: Path) -> None:
    load_realm(target, "copy", archive)
    imported = copied_table(target).definition
    adopt_table(target, rows_of_copy(target), "orders", location=str(tmp_path / "ours"))

    left = find_file_table(rows_of_copy(target), table_id=imported.id)
    assert left is not None and left.state is FileTableState.DELETED
    assert [scope.table for scope in list_file_scopes(target)] == [copied_table(target).definition.id]


def test_adoption_twice_changes_nothing(target: Store, archive: Path, tmp_path: Path) -> None:
    load_realm(target, "copy", archive)
    first = adopt_table(target, rows_of_copy(target), "orders", location=str(tmp_path / "ours"))

    again = adopt_table(target, rows_of_copy(target), "orders", location=str(tmp_path / "elsewhere"))

    assert (again.table, again.copied) == (first.table, 0)


def test_table_that_is_no_import_is_not_adopted(store: Store, orders: FileTable) -> None:
    with pytest.raises(RefusedError, match="only a read-only one is adopted"):
        adopt_table(store, orders.rows, "orders", location="/elsewhere")


def test_interrupted_adoption_goes_on(target: Store, archive: Path, tmp_path: Path) -> None:
    load_realm(target, "copy", archive)
    lost = copied_table(target).plan_read().filenames[0]
    content = Path(lost).read_bytes()
    Path(lost).unlink()
    with pytest.raises(ExpiredError, match="is gone"):
        adopt_table(target, rows_of_copy(target), "orders", location=str(tmp_path / "ours"))
    assert copied_table(target).definition.state is FileTableState.READ_ONLY

    Path(lost).write_bytes(content)
    adopted = adopt_table(target, rows_of_copy(target), "orders", location=str(tmp_path / "elsewhere"))

    assert adopted.table.location.startswith(str(tmp_path / "ours"))
    assert contents(copied_table(target)) == [b"first", b"second"]


def test_deleted_import_takes_what_was_copied_of_it(target: Store, archive: Path, tmp_path: Path) -> None:
    load_realm(target, "copy", archive)
    rows = rows_of_copy(target)
    originals = copied_table(target).plan_read().filenames
    Path(originals[0]).unlink()
    with pytest.raises(ExpiredError):
        adopt_table(target, rows, "orders", location=str(tmp_path / "ours"))

    FileTablePurge(target, rows).delete_table("orders")

    assert list_file_scopes(target) == []
    assert Path(originals[1]).exists() and not list((tmp_path / "ours").rglob("*.parquet"))


def test_damaged_record_is_told(archive: Path) -> None:
    with pytest.raises(CorruptionError, match="behind its block"):
        list(read_table_records(b"\0\0\0\xff" + b"x"))


def test_imported_realm_is_active_again(target: Store, archive: Path) -> None:
    assert load_realm(target, "copy", archive).realm.state is RealmState.ACTIVE
    assert load_realm(target, "copy", archive).checked.end.file_tables == 1
