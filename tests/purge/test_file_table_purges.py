"""Dropped file tables, and file tables of realms that are purged: files, references, rows, and nothing of anybody else."""

from __future__ import annotations

import itertools
from pathlib import Path

import msgspec
import pytest

from fake_clock import FakeClock
from file_tables import make_table, open_table, track_file
from headwater import Store
from headwater.catalogs import Catalog
from headwater.commits import commit_change
from headwater.errors import NotFoundError, UnavailableError
from headwater.files import (
    FileScope,
    FileTable,
    FileTableClosedError,
    FileTableState,
    find_file_table,
    list_file_scopes,
    open_file_references,
)
from headwater.files.file_table_registry import FILE_TABLES, store_table
from headwater.gc import collect_realm
from headwater.purge import FileTablePurge, purge_realm
from headwater.realms import RealmRegistry, RealmState
from headwater.store import SYSTEM_REALM, RealmStore

DAY = 86_400.0


@pytest.fixture
def rows(store: Store, lake: Catalog) -> RealmStore:
    return RealmRegistry(store).open_realm("acme")


@pytest.fixture
def orders(store: Store, rows: RealmStore, tmp_path: Path) -> FileTable:
    """A table with two files, one of which nobody refers to, a stray, and a file of somebody else in its folder."""
    make_table(store, rows, location=str(tmp_path / "tables"))
    table = open_table(store, rows)
    stray = Path(track_file(table, "r"))
    stray.with_name(f"{table.definition.id}-9.parquet").write_bytes(b"stray")
    stray.with_name("notes.txt").write_bytes(b"notes")
    track_file(table)
    return table


def files_of(table: FileTable) -> list[str]:
    return sorted(path.name for path in Path(table.definition.data_folder).glob("*"))


def begin_purge(store: Store, clock: FakeClock) -> None:
    realms = RealmRegistry(store)
    realms.move_realm(realms.read_realm("acme"), RealmState.INACTIVE)
    clock.advance(2 * DAY)
    realms.move_realm(realms.read_realm("acme"), RealmState.PURGING)


def make_foreign(table: FileTable) -> None:
    foreign = msgspec.structs.replace(table.definition, is_foreign=True)
    commit_change(table.rows, FILE_TABLES, lambda tx: store_table(tx, foreign))


def test_deleted_table_leaves_neither_files_nor_references(store: Store, rows: RealmStore, orders: FileTable) -> None:
    done = FileTablePurge(store, rows).delete_table("orders")

    assert (done.tables, done.files, done.unknown) == (1, 3, 1)
    assert files_of(orders) == ["notes.txt"]
    assert list_file_scopes(store) == []


def test_plan_tells_what_a_deletion_deletes(store: Store, rows: RealmStore, orders: FileTable) -> None:
    plan = FileTablePurge(store, rows).plan_table("orders")

    assert (plan.files, plan.unknown, plan.kept, plan.rows) == (3, 1, 0, 3)
    assert len(files_of(orders)) == 4


def test_deleted_table_is_gone_after_collections(store: Store, rows: RealmStore, orders: FileTable, clock: FakeClock) -> None:
    FileTablePurge(store, rows).delete_table("orders")
    for _ in range(3):
        clock.advance(DAY)
        collect_realm(store, "acme")

    assert find_file_table(rows, table_id=orders.definition.id) is None
    assert rows.find_row(orders.definition.tree_reference) is None


def test_late_committer_of_a_deleted_table_is_refused(store: Store, rows: RealmStore, orders: FileTable) -> None:
    FileTablePurge(store, rows).delete_table("orders")

    with pytest.raises(FileTableClosedError):
        track_file(orders, "r")


def test_table_that_is_not_there_is_not_deleted(store: Store, rows: RealmStore) -> None:
    with pytest.raises(NotFoundError):
        FileTablePurge(store, rows).delete_table("orders")


def test_file_that_cannot_be_deleted_keeps_the_records(store: Store, rows: RealmStore, orders: FileTable) -> None:
    obstacle = Path(orders.plan_read().filenames[0])
    obstacle.unlink()
    obstacle.mkdir()
    with pytest.raises(UnavailableError, match="could not be deleted"):
        FileTablePurge(store, rows).delete_table("orders")
    assert len(orders.references.references()) == 1

    obstacle.rmdir()
    FileTablePurge(store, rows).delete_table("orders")

    assert list_file_scopes(store) == []


def test_files_of_an_imported_table_stay(store: Store, rows: RealmStore, orders: FileTable) -> None:
    make_foreign(orders)

    done = FileTablePurge(store, rows).delete_table("orders")

    assert (done.files, done.kept) == (0, 2)
    assert len(files_of(orders)) == 4
    assert list_file_scopes(store) == []


def test_purged_realm_leaves_nothing_in_either_database(
    store: Store, rows: RealmStore, orders: FileTable, clock: FakeClock
) -> None:
    begin_purge(store, clock)

    done = purge_realm(store, "acme")

    assert RealmRegistry(store).read_realm("acme").state is RealmState.PURGED
    assert files_of(orders) == ["notes.txt"]
    assert list_file_scopes(store) == [] and rows.is_empty()
    assert done.as_plain()["fileTables"]["files"] == 3


def test_late_committer_of_a_purged_realm_is_refused(store: Store, orders: FileTable, clock: FakeClock) -> None:
    begin_purge(store, clock)
    purge_realm(store, "acme")

    with pytest.raises(FileTableClosedError):
        track_file(orders, "r")


def test_late_scope_of_a_purged_realm_is_collected(store: Store, orders: FileTable, clock: FakeClock) -> None:
    """A creator of a file table hung until the realm was empty."""
    begin_purge(store, clock)
    purge_realm(store, "acme")
    key = RealmRegistry(store).read_realm("acme").key
    open_file_references(store, FileScope(key, "late"), create=True).close()
    collect_realm(store, SYSTEM_REALM)

    assert list_file_scopes(store) == []


def test_purge_of_a_realm_keeps_files_of_another_store(store: Store, orders: FileTable, clock: FakeClock) -> None:
    make_foreign(orders)
    begin_purge(store, clock)
    purge_realm(store, "acme")

    assert len(files_of(orders)) == 4
    assert list_file_scopes(store) == []


def test_realm_is_not_purged_while_a_file_stays(store: Store, orders: FileTable, clock: FakeClock) -> None:
    obstacle = Path(orders.plan_read().filenames[0])
    obstacle.unlink()
    obstacle.mkdir()
    begin_purge(store, clock)

    with pytest.raises(UnavailableError, match="could not be deleted"):
        purge_realm(store, "acme")
    assert RealmRegistry(store).read_realm("acme").state is RealmState.PURGING
    assert find_file_table(orders.rows, name="orders") is not None


def test_interrupted_purge_goes_on(store: Store, orders: FileTable, clock: FakeClock) -> None:
    """The fence is asked before every durable step: a purge stops there."""
    begin_purge(store, clock)

    for stop in itertools.count(1):
        calls = itertools.count(1)

        def fence(calls: itertools.count[int] = calls, stop: int = stop) -> None:
            if next(calls) >= stop:
                raise KeyboardInterrupt

        try:
            purge_realm(store, "acme", fence=fence)
        except KeyboardInterrupt:
            continue
        break

    assert stop > 5
    assert files_of(orders) == ["notes.txt"]
    assert list_file_scopes(store) == []


def test_scope_of_a_lost_table_goes_with_its_realm(store: Store, orders: FileTable, clock: FakeClock) -> None:
    """Nobody knows whether its files are of this store: they stay."""
    lost = FileScope(orders.rows.key, "0123456789abcdef")
    open_file_references(store, lost, create=True)
    begin_purge(store, clock)
    purge_realm(store, "acme")

    assert list_file_scopes(store) == []


def test_deletion_that_was_interrupted_goes_on_under_its_name(store: Store, rows: RealmStore, orders: FileTable) -> None:
    def stop_at_files() -> None:
        if find_file_table(rows, name="orders") is None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        FileTablePurge(store, rows, fence=stop_at_files).delete_table("orders")
    again = make_table(store, rows, location=orders.definition.location.rpartition("/")[0])

    FileTablePurge(store, rows).finish_deletions()

    assert list_file_scopes(store) == [FileScope(rows.key, again.id)]
    left = find_file_table(rows, table_id=orders.definition.id)
    assert left is not None and left.state is FileTableState.DELETED
