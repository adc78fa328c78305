"""A deleted file table leaves neither files nor references, wherever its deletion is interrupted."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from collected_tables import CollectedTable, reference_to
from file_tables_of_realms import claim_collection

from fake_clock import FakeClock
from headwater import Store
from headwater.errors import FencedError, NotFoundError, UnavailableError
from headwater.files import (
    FileScope,
    FileTableClosedError,
    FileTableDefinition,
    FileTables,
    FileTableState,
    TrackedFile,
    find_file_table,
)
from headwater.files.file_table_deletion import delete_file_table
from headwater.files.open_references import list_file_scopes, open_file_references
from headwater.gc import collect_realm
from headwater.jobs import run_file_collection
from headwater.store import RealmStore

MakeTable = Callable[[str], tuple[FileTableDefinition, CollectedTable]]


@pytest.fixture
def filled(table: CollectedTable) -> CollectedTable:
    """A table with a referenced file, an unreferenced one, and one that nobody tracks."""
    table.make_unreferenced()
    table.write_file()
    return table


def files_of(table: CollectedTable) -> list[str]:
    return sorted(path.name for path in table.path.iterdir())


def test_deletion_leaves_nothing(
    store: Store, rows: RealmStore, definition: FileTableDefinition, filled: CollectedTable
) -> None:
    deleted = delete_file_table(store, rows, definition, neighbors=[])

    assert (deleted.deleted, files_of(filled)) == (3, [])
    assert list_file_scopes(store, rows.key) == []
    assert find_file_table(rows, name="orders") is None


def test_foreign_file_survives_the_deletion(
    store: Store, rows: RealmStore, definition: FileTableDefinition, filled: CollectedTable
) -> None:
    filled.write_file(name="notes.txt")

    assert delete_file_table(store, rows, definition, neighbors=[]).kept == 1
    assert files_of(filled) == ["notes.txt"]


def test_files_of_a_read_only_table_stay(
    store: Store, rows: RealmStore, tables: FileTables, definition: FileTableDefinition, filled: CollectedTable
) -> None:
    imported = tables.change_state(definition, FileTableState.READ_ONLY)
    deleted = delete_file_table(store, rows, imported, neighbors=[])

    assert (deleted.deleted, deleted.kept, len(files_of(filled))) == (0, 3, 3)
    assert list_file_scopes(store, rows.key) == []


def test_files_in_a_shared_folder_stay(
    store: Store, rows: RealmStore, definition: FileTableDefinition, filled: CollectedTable
) -> None:
    delete_file_table(store, rows, definition, neighbors=[definition.location])

    assert len(files_of(filled)) == 3


def test_deletion_that_is_interrupted_anywhere_goes_on(store: Store, rows: RealmStore, make_table: MakeTable) -> None:
    for call in range(1, 20):
        definition, table = make_table(f"t{call}")
        table.make_unreferenced()
        calls = 0

        def fence(call: int = call) -> None:
            nonlocal calls
            calls += 1
            if calls == call:
                raise FencedError("the process died")

        try:
            delete_file_table(store, rows, definition, neighbors=[], fence=fence)
        except FencedError:
            found = find_file_table(rows, table_id=definition.id)
            assert found is not None
            delete_file_table(store, rows, found, neighbors=[])
        assert (files_of(table), list_file_scopes(store, rows.key)) == ([], [])
        if calls < call:
            break
    assert call > 4


def test_late_writer_of_a_deleted_table_is_refused(
    store: Store, rows: RealmStore, definition: FileTableDefinition, filled: CollectedTable
) -> None:
    delete_file_table(store, rows, definition, neighbors=[])
    late = filled.write_file()

    with pytest.raises((FileTableClosedError, NotFoundError)):
        filled.references.add_files([TrackedFile(filename=late, references=(reference_to(late),))])


def test_worker_ends_a_deletion_that_was_interrupted(
    store: Store,
    rows: RealmStore,
    tables: FileTables,
    definition: FileTableDefinition,
    filled: CollectedTable,
    clock: FakeClock,
) -> None:
    tables.change_state(definition, FileTableState.DELETING)
    outcome = run_file_collection(store, claim_collection(store, clock))

    assert (outcome["deleted"], files_of(filled)) == (3, [])
    assert list_file_scopes(store, rows.key) == []


def test_garbage_collection_releases_a_deleted_table(
    store: Store, rows: RealmStore, definition: FileTableDefinition, filled: CollectedTable, clock: FakeClock
) -> None:
    delete_file_table(store, rows, definition, neighbors=[])
    for _ in range(3):
        clock.advance(10 * 3600)
        collect_realm(store, "acme")

    assert find_file_table(rows, table_id=definition.id) is None
    assert rows.find_row(definition.tree_reference) is None


def test_file_that_stays_keeps_the_table_in_deletion(
    store: Store, rows: RealmStore, definition: FileTableDefinition, filled: CollectedTable
) -> None:
    (name, *_) = files_of(filled)
    (filled.path / name).unlink()
    (filled.path / name).mkdir()  # a folder in its place cannot be deleted as a file

    with pytest.raises(UnavailableError, match="1 files of file table 'orders' could not be deleted"):
        delete_file_table(store, rows, definition, neighbors=[])
    left = find_file_table(rows, table_id=definition.id)
    assert left is not None and left.state is FileTableState.DELETING
    assert list_file_scopes(store, rows.key) == [FileScope(rows.key, definition.id)]
    (filled.path / name).rmdir()
    delete_file_table(store, rows, left, neighbors=[])
    with pytest.raises(NotFoundError):
        open_file_references(store, FileScope(rows.key, definition.id))
