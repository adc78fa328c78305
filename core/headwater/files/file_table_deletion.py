"""The deletion of a file table: nobody writes any more, then its files go, then its references, and its name last.

    state DELETING     the name is free; nobody opens the table
    scope closed       no write of references is under way, and none follows: no file gets a reference any more
    files              everything in the table's folder that is called like a data file, tracked or not
    references         and all else in the scope, in bounded batches
    state DELETED      a collection of garbage buries the tree, and releases the table's place in the list

Interrupted anywhere, the same call goes on. The files of a read-only table may belong to another store, so they stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

from headwater.errors import NotFoundError, UnavailableError
from headwater.files.data_folder import DataFolder, DeletionResult, data_file_time
from headwater.files.file_table_definition import FileTableDefinition, FileTableState
from headwater.files.file_table_registry import FileTables
from headwater.files.open_references import open_file_references
from headwater.files.reference_store import FileScope
from headwater.store import RealmStore, Store
from headwater.throttle import Fence, FenceWatch, ProgressCallback, RowRate

_FILES_AT_ONCE = 500
_ROWS_AT_ONCE = 10_000


@dataclass(slots=True)
class DeletedTable:
    """The counts of one deletion.

    deleted       files that were there and are deleted
    kept          entries of the folder that are not called like data files, or the files of a read-only table: left alone
    rows          rows of references, files and outcomes
    """

    table: str
    deleted: int = 0
    kept: int = 0
    rows: int = 0

    def as_plain(self) -> dict[str, Any]:
        return asdict(self)


def delete_file_table(
    store: Store,
    rows: RealmStore,
    definition: FileTableDefinition,
    *,
    neighbors: Iterable[str],
    fence: Fence = lambda: None,
    progress: ProgressCallback = lambda done, total, unit: None,
) -> DeletedTable:
    """Delete a file table with its files and references, or go on with its deletion.

    neighbors     locations of all other file tables: where one shares the folder, the files stay
    raises        UnavailableError when files could not be deleted: call it again
    """
    tables = FileTables(rows, lambda scope: None)
    if definition.state is FileTableState.DELETED:
        return DeletedTable(definition.name)
    if definition.state is not FileTableState.READ_ONLY:  # a read-only one must be known as such until its references are gone
        definition = tables.change_state(definition, FileTableState.DELETING, fence=fence)
    deleted = empty_file_table(
        store, FileScope(rows.key, definition.id), definition, neighbors=neighbors, fence=fence, progress=progress
    )
    tables.change_state(definition, FileTableState.DELETED, fence=fence)
    return deleted


def empty_file_table(
    store: Store,
    scope: FileScope,
    definition: FileTableDefinition,
    *,
    neighbors: Iterable[str],
    fence: Fence = lambda: None,
    progress: ProgressCallback = lambda done, total, unit: None,
) -> DeletedTable:
    """Delete the files and then the references of a file table, and close it for writers before. Nothing is left of the scope."""
    result = DeletedTable(definition.name)
    watch = FenceWatch(fence, store.clock)
    watch.check_fence()
    try:
        references = open_file_references(store, scope)
    except NotFoundError:
        references = None  # an interrupted deletion came that far; files went before
    if references is not None:
        references.close_scope()
    folder = DataFolder(definition.data_folder)
    if definition.state is FileTableState.READ_ONLY or any(folder.overlaps(neighbor) for neighbor in neighbors):
        result.kept = sum(1 for _ in folder.list_files())
    else:
        _delete_files(store, folder, watch, progress, result)
    if references is not None:
        with closing(references):
            while rows := references.delete_scope(_ROWS_AT_ONCE):
                result.rows += rows
                watch.check_fence()
                progress(result.rows, 0, "deleted rows")
    return result


def _delete_files(
    store: Store, folder: DataFolder, watch: FenceWatch, progress: ProgressCallback, result: DeletedTable
) -> None:
    rate = RowRate(store.settings.delete_files_per_second, store.clock)
    failures: list[str] = []
    files = _data_files(folder, result)
    while batch := list(islice(files, _FILES_AT_ONCE)):
        rate.wait_for(len(batch), watch)
        watch.check_fence()
        for deletion in folder.delete_files(batch, pause=store.clock.sleep):
            result.deleted += deletion.result is DeletionResult.DELETED
            if deletion.result is DeletionResult.FAILED:
                failures.append(f"{deletion.filename} ({deletion.reason})")
        progress(result.deleted, 0, "deleted files")
    if failures:
        raise UnavailableError(
            f"{len(failures)} files of file table {result.table!r} could not be deleted, such as {failures[0]}: delete it again"
        )


def _data_files(folder: DataFolder, result: DeletedTable) -> Iterator[str]:
    """The data files in a folder, all listed before the first one goes: a listing does not promise to survive deletions."""
    listed = list(folder.list_files())
    ours = [filename for filename in listed if data_file_time(filename) is not None]
    result.kept = len(listed) - len(ours)
    return iter(ours)
