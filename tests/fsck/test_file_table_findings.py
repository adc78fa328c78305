"""What is wrong with file tables, in the realm's database, in that of the references, or between the two."""

from __future__ import annotations

import dataclasses
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from harm import HOUR, make_realm, rows_of

from fake_clock import FakeClock
from file_tables import make_table, make_tree, open_table, track_file
from headwater import Settings, Store
from headwater.files import (
    FILE_TABLES,
    ROOT,
    AssignJob,
    FileScope,
    FileTable,
    FileTables,
    FileTableState,
    PartitionId,
    open_file_references,
)
from headwater.fsck import FindingCode, FsckFinding, check_store
from headwater.store import RealmKey
from headwater.store.backends.memory import MemoryBackend

DAY = 24 * HOUR
LEFT = PartitionId("r0")


@pytest.fixture
def references_file(tmp_path: Path) -> Path:
    return tmp_path / "files.db"


@pytest.fixture
def store(settings: Settings, clock: FakeClock, references_file: Path) -> Iterator[Store]:
    beside = dataclasses.replace(settings, files_store=f"sqlite:///{references_file}")
    with Store(MemoryBackend(), url="memory://", settings=beside, clock=clock) as opened:
        make_realm(opened)
        yield opened


@pytest.fixture
def orders(store: Store) -> FileTable:
    """A table with two leaves and a file in both."""
    make_table(store, rows_of(store), splits={ROOT: b"m"})
    table = open_table(store, rows_of(store))
    track_file(table, "r0", "r1")
    return table


@pytest.fixture
def meddle(references_file: Path) -> Callable[[str], None]:
    """Change the references behind the back of the library."""

    def run(statement: str) -> None:
        with closing(sqlite3.connect(references_file)) as connection, connection:
            connection.execute(statement)

    return run


def findings(store: Store) -> list[FsckFinding]:
    return [finding for finding in check_store(store, realm="acme") if finding.code.startswith(("FILE", "TREE"))]


def codes(store: Store) -> list[FindingCode]:
    return [finding.code for finding in findings(store)]


def test_sound_table_has_no_findings(store: Store, orders: FileTable) -> None:
    assert check_store(store, realm="acme") == []


def test_realm_without_file_tables_makes_no_tables_of_references(store: Store, references_file: Path) -> None:
    check_store(store, realm="acme")

    assert not references_file.exists()


def test_older_tree_is_told(store: Store, orders: FileTable) -> None:
    before = rows_of(store).read_reference(orders.definition.tree_reference, fresh=True)
    orders.split_leaves({LEFT: b"f"})
    newest = rows_of(store).read_reference(before.name, fresh=True)
    assert before.pointer is not None
    rows_of(store).move_reference(newest, before.pointer)

    [finding] = findings(store)
    assert finding.code is FindingCode.TREE_BEHIND
    assert "restore both databases as of one time" in finding.repair


def test_lost_tree_is_told(store: Store, orders: FileTable) -> None:
    rows = rows_of(store)
    rows.remove_tombstone(rows.delete_reference(rows.read_reference(orders.definition.tree_reference, fresh=True)))

    assert codes(store) == [FindingCode.TREE_UNREADABLE]


def test_table_without_references_is_told(store: Store, clock: FakeClock) -> None:
    make_tree(rows_of(store))

    assert codes(store) == [FindingCode.FILE_SCOPE_MISSING]


def test_store_that_names_no_references_is_told(store: Store, orders: FileTable, settings: Settings, clock: FakeClock) -> None:
    blind = Store(store.backend, url="memory://", settings=dataclasses.replace(settings, files_store=""), clock=clock)

    [finding] = findings(blind)
    assert finding.code is FindingCode.FILE_SCOPE_MISSING and "HEADWATER_FILES_STORE" in finding.repair


def test_scope_without_a_table_is_told(store: Store, orders: FileTable) -> None:
    open_file_references(store, FileScope(orders.rows.key, "0123456789abcdef"), create=True)
    open_file_references(store, FileScope(RealmKey(5), "0123456789abcdef"), create=True)

    [finding] = findings(store)
    assert (finding.code, finding.subject) == (FindingCode.FILE_SCOPE_WITHOUT_TABLE, "0123456789abcdef")


def test_rows_that_come_twice_are_told(store: Store, orders: FileTable) -> None:
    track_file(orders, "r", "r1")

    [finding] = findings(store)
    assert finding.code is FindingCode.FILE_ROWS_TWICE and "(r, r1)" in finding.keys[0]


def test_file_that_is_not_tracked_is_told(store: Store, orders: FileTable, meddle: Callable[[str], None]) -> None:
    meddle("DELETE FROM tracked_files")

    assert codes(store) == [FindingCode.FILE_UNTRACKED]


def test_mark_of_a_referenced_file_is_told(store: Store, orders: FileTable, meddle: Callable[[str], None]) -> None:
    meddle("UPDATE tracked_files SET marked = 1")

    assert codes(store) == [FindingCode.FILE_MARKED]


def test_job_without_an_outcome_is_told_after_a_day(store: Store, orders: FileTable, clock: FakeClock) -> None:
    [filename] = orders.plan_read().filenames
    orders.references.assign_jobs([AssignJob(job="j", partition=LEFT, filenames=(filename,))])
    assert codes(store) == []

    clock.advance(DAY + 1)

    [finding] = findings(store)
    assert (finding.code, finding.keys) == (FindingCode.FILE_JOB_STALE, ("j",))


@pytest.mark.parametrize("state", [FileTableState.CREATING, FileTableState.DELETING])
def test_interrupted_work_on_a_table_is_told(store: Store, orders: FileTable, clock: FakeClock, state: FileTableState) -> None:
    FileTables(rows_of(store), lambda scope: None).change_state(orders.definition, state)
    assert codes(store) == []

    clock.advance(DAY)

    assert codes(store) == [FindingCode.FILE_TABLE_UNFINISHED]


def test_list_of_file_tables_may_be_missing(store: Store) -> None:
    assert rows_of(store).find_row(FILE_TABLES) is None
    assert check_store(store, realm="acme") == []
