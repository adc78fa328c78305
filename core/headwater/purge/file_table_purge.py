"""Delete file tables: one that is dropped, or all of a realm that is purged.

    1  the definition says DELETING, and the name is free
    2  the scope of the references is closed: no job can commit any more, however late
    3  the data files go: those that are tracked, and those that lie in the table's folder and nobody tracks
    4  the rows of the references go, the scope last
    5  the definition says DELETED; the collection of garbage takes the tree, then the entry

Every step may be repeated, and a purge that was interrupted goes on where it was. Files go before the rows that name them: the other way
round would leave files that nobody knows. Files of an imported table belong to another store, so they stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from headwater.errors import CorruptionError, NotFoundError, UnavailableError
from headwater.files import (
    FileReferenceStore,
    FileScope,
    FileTableDefinition,
    FileTables,
    FileTableState,
    list_file_tables,
    read_file_table,
)
from headwater.files.data_folder import DataFolder, DeletionResult
from headwater.files.file_references import data_file_time
from headwater.files.open_references import keeps_file_references, list_file_scopes, open_file_references
from headwater.store import RealmStore, Store
from headwater.throttle import Fence, FenceWatch, ProgressCallback, RowRate, no_progress

_BATCH = 500
_SHOWN = 20
_ALL = 1 << 62


@dataclass(slots=True)
class PurgedFileTables:
    """What was deleted of file tables. A plan has the same counts, of what would be.

    files         data files that were deleted; missing: that were gone already
    kept          tracked files that stay: they lie outside of the folder of their table, or belong to another store
    unknown       what else lies in a folder, under names that no writer of data files gives: it stays
    rows          rows of the references
    failures      the first files that could not be deleted, each with the reason
    """

    tables: int = 0
    files: int = 0
    missing: int = 0
    kept: int = 0
    unknown: int = 0
    rows: int = 0
    failures: list[dict[str, str]] = field(default_factory=list)

    def as_plain(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


class FileTablePurge:
    """Deletes file tables of one realm.

    rows          a handle that may write in the realm's present state
    """

    def __init__(
        self,
        store: Store,
        rows: RealmStore,
        *,
        fence: Fence = lambda: None,
        progress: ProgressCallback = no_progress,
    ) -> None:
        self._store = store
        self._rows = rows
        self._watch = FenceWatch(fence, store.clock)
        self._rate = RowRate(store.settings.delete_files_per_second, store.clock)
        self._progress = progress
        self.result = PurgedFileTables()

    def plan_table(self, name: str) -> PurgedFileTables:
        """What the deletion of a table would delete; nothing is changed. Raises NotFoundError."""
        definition = read_file_table(self._rows, name)
        self.result.tables = 1
        references = self._open(FileScope(self._rows.key, definition.id))
        if references is None:
            return self.result
        with closing(references):
            tracked = _tracked_files(references)
            files, unknown = _divide(definition, tracked)
            self.result.files, self.result.unknown = len(files), unknown
            self.result.kept = len(set(tracked) - files)
            self.result.rows = len(tracked) + len(references.references())
        return self.result

    def delete_table(self, name: str) -> PurgedFileTables:
        """Delete a table, or go on with a deletion of this name that was interrupted.

        raises        NotFoundError when there is neither · UnavailableError when files could not be deleted: their records stay, and
                      the same call goes on
        """
        listed = list_file_tables(self._rows, with_deleted=True)
        pending = [table for table in listed if table.name == name and table.state is FileTableState.DELETING]
        # What an adoption was copying goes with the table that it was to replace.
        successors = [table for table in listed if table.name == name and _is_successor(table)]
        pending += [self._tables().change_state(each, FileTableState.DELETING) for each in successors]
        try:
            definition = read_file_table(self._rows, name)
        except NotFoundError:
            if not pending:
                raise
        else:
            pending.append(self._tables().change_state(definition, FileTableState.DELETING, fence=self._watch.check_fence))
        for table in pending:
            self._finish_deletion(table)
        return self.result

    def finish_deletions(self) -> PurgedFileTables:
        """Go on with the deletion of every table that is DELETING."""
        for table in list_file_tables(self._rows, with_deleted=True):
            if table.state is FileTableState.DELETING:
                self._finish_deletion(table)
        return self.result

    def empty_realm(self) -> PurgedFileTables:
        """Delete the files and references of all file tables of a realm that is PURGING. The realm's rows must still be there: only they
        say where the files are, and whether they are of this store. Where they do not say it any more, the files stay, and are counted.

        raises        UnavailableError when files could not be deleted · RefusedError when the store does not say where the references are
        """
        try:
            definitions = {table.id: table for table in list_file_tables(self._rows, with_deleted=True)}
        except CorruptionError:
            definitions = {}  # an earlier run has deleted some of the rows, and all scopes before; or the list was lost
        for table in definitions.values():
            if table.state is not FileTableState.DELETED:
                self._empty_table(table)
        for scope in self.left_scopes():
            self._delete_scope(scope, definitions.get(scope.table))
        return self.result

    def left_scopes(self) -> list[FileScope]:
        """The scopes that there are under the realm's key."""
        return list_file_scopes(self._store, self._rows.key) if keeps_file_references(self._store) else []

    def _finish_deletion(self, definition: FileTableDefinition) -> None:
        self._empty_table(definition)
        self._tables().change_state(definition, FileTableState.DELETED, fence=self._watch.check_fence)

    def _empty_table(self, definition: FileTableDefinition) -> None:
        self.result.tables += 1
        self._delete_scope(FileScope(self._rows.key, definition.id), definition)

    def _delete_scope(self, scope: FileScope, definition: FileTableDefinition | None) -> None:
        references = self._open(scope)
        if references is None:  # an earlier run came further, or the creation was interrupted: nothing was ever tracked
            return
        with closing(references):
            self._watch.check_fence()
            references.close_scope()
            # Only now: before, a job that commits late could add a file between the listing and the end.
            tracked = _tracked_files(references)
            if definition is None or definition.is_foreign:
                self.result.kept += len(tracked)
            else:
                files, unknown = _divide(definition, tracked)
                self.result.unknown += unknown
                self.result.kept += len(set(tracked) - files)
                self._delete_files(DataFolder(definition.data_folder), sorted(files))
            while deleted := self._delete_rows(references):
                self.result.rows += deleted

    def _delete_rows(self, references: FileReferenceStore) -> int:
        self._watch.check_fence()
        return references.delete_scope(self._store.settings.delete_batch)

    def _delete_files(self, folder: DataFolder, filenames: Iterable[str]) -> None:
        failed = 0
        for batch in _batches(filenames):
            self._rate.wait_for(len(batch), self._watch)
            self._watch.check_fence()
            for filename, outcome, reason in folder.delete_files(batch, pause=self._pause):
                self.result.files += outcome is DeletionResult.DELETED
                self.result.missing += outcome is DeletionResult.MISSING
                if outcome is DeletionResult.FAILED:
                    failed += 1
                    self.result.failures += [] if failed > _SHOWN else [{"file": filename, "reason": reason}]
            self._progress(self.result.files + self.result.missing, 0, "data files deleted")
        if failed:
            first = self.result.failures[0]
            raise UnavailableError(
                f"{failed} data files in {folder.location} could not be deleted, the first: {first['file']}: {first['reason']}. Their"
                " records stay; mend the storage or its permissions, and the deletion goes on"
            )

    def _pause(self, seconds: float) -> None:
        """Wait, and ask the fence meanwhile."""
        until = self._store.clock.monotonic() + seconds
        while (left := until - self._store.clock.monotonic()) > 0:
            self._watch.check_now_and_then()
            self._store.clock.sleep(min(left, 1.0))

    def _open(self, scope: FileScope) -> FileReferenceStore | None:
        try:
            return open_file_references(self._store, scope)
        except NotFoundError:
            return None

    def _tables(self) -> FileTables:
        return FileTables(self._rows, lambda scope: None)


def _is_successor(definition: FileTableDefinition) -> bool:
    return definition.state is FileTableState.CREATING and bool(definition.source) and not definition.is_foreign


def _tracked_files(references: FileReferenceStore) -> list[str]:
    return [file.filename for file in references.report(_ALL).files]


def _divide(definition: FileTableDefinition, tracked: Iterable[str]) -> tuple[set[str], int]:
    """The data files that a deletion deletes, and how many other things lie in the folder."""
    if definition.is_foreign:
        return set(), 0
    folder = DataFolder(definition.data_folder)
    files, unknown = {filename for filename in tracked if folder.has_file(filename)}, 0
    for filename in folder.list_files():
        if filename in files or data_file_time(filename) is not None:
            files.add(filename)
        else:
            unknown += 1
    return files, unknown


def _batches(filenames: Iterable[str]) -> Iterator[list[str]]:
    rest = iter(filenames)
    while batch := list(islice(rest, _BATCH)):
        yield batch
