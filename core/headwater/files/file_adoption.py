"""Adoption: a table that was imported gets files of its own, and becomes writable.

The files of an imported table belong to the store that it came from. So they are copied to a folder of this store's own, into a new table,
which takes the old one's name in one commit::

    successor listed -> its scope -> its tree -> files copied and tracked, batch by batch -> the name changes hands -> old scope deleted

Until the name changes hands, readers read the old files. An adoption that was interrupted goes on: what the successor tracks is copied.
Each copy has a name of its own, so that two adoptions at once do not write to one file: whose copy is tracked first is told by the outcome
of its request, and the other copy is deleted.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any

import msgspec

from headwater.errors import HeadwaterError, NotFoundError, RefusedError
from headwater.files.data_files import data_file_name
from headwater.files.data_storage import delete_data_file, new_data_file, open_data_file
from headwater.files.file_references import AddFiles, FileReference, RequestState, TrackedFile, group_references
from headwater.files.file_table import FileTable
from headwater.files.file_table_definition import FileTableDefinition, FileTableState
from headwater.files.file_table_registry import FileTables, checked_base, find_file_table, read_file_table
from headwater.files.open_references import open_file_references
from headwater.files.reference_store import FileReferenceStore, FileScope
from headwater.files.stored_tree import initialize_tree
from headwater.store import RealmStore, Store, id_text
from headwater.throttle import Fence, ProgressCallback, no_progress

_BATCH = 64
_COPIED_AT_ONCE = 8
_COPY_BYTES = 4 << 20


@dataclass(slots=True)
class AdoptedTable:
    """What an adoption did. ``copied``: files that this call copied; ``files``: all that the table has."""

    table: FileTableDefinition
    files: int = 0
    copied: int = 0
    size_bytes: int = 0

    def as_plain(self) -> dict[str, Any]:
        return {
            "table": self.table.name,
            "id": self.table.id,
            "location": self.table.location,
            "files": self.files,
            "copied": self.copied,
            "bytes": self.size_bytes,
        }


def adopt_table(
    store: Store,
    rows: RealmStore,
    name: str,
    *,
    location: str,
    fence: Fence = lambda: None,
    progress: ProgressCallback = no_progress,
) -> AdoptedTable:
    """Copy the files of a read-only table into a folder at ``location``, and make the table writable. A repeated call goes on, or changes
    nothing.

    location      a folder; the table gets one of its own in there. A call that goes on keeps to the first one
    raises        NotFoundError; RefusedError for a table that is neither read-only nor adopted · ExpiredError when the other store has
                  deleted a file · UnavailableError when a storage does not answer
    """
    return _Adoption(store, rows, fence, progress).adopt(read_file_table(rows, name), location)


@dataclass(slots=True)
class _Adoption:
    store: Store
    rows: RealmStore
    fence: Fence
    progress: ProgressCallback

    def adopt(self, imported: FileTableDefinition, location: str) -> AdoptedTable:
        if imported.state is FileTableState.ACTIVE and imported.source:
            self._finish(imported)  # an earlier call came this far
            return AdoptedTable(imported)
        if imported.state is not FileTableState.READ_ONLY:
            raise RefusedError(
                f"file table {imported.name!r} of realm {self.rows.realm!r} is {imported.state}: only a read-only one is adopted"
            )
        successor = self._list_successor(imported, location)
        scope = FileScope(self.rows.key, successor.id)
        with (
            closing(open_file_references(self.store, FileScope(self.rows.key, imported.id))) as old,
            closing(open_file_references(self.store, scope, create=True)) as new,
        ):
            snapshot, tree = FileTable(self.rows, imported, old).read_both()
            self.fence()
            initialize_tree(self.rows, successor, tree.splits, fence=self.fence)
            result = self._copy_files(group_references(snapshot.references), successor, new)
        result.table = FileTables(self.rows, lambda scope: None).replace_table(imported, successor, fence=self.fence)
        self._finish(result.table)
        return result

    def _list_successor(self, imported: FileTableDefinition, location: str) -> FileTableDefinition:
        table_id = id_text(self.rows.new_id())
        wanted = msgspec.structs.replace(
            imported,
            id=table_id,
            state=FileTableState.CREATING,
            location=f"{checked_base(location)}/{table_id}",
            source=imported.id,
            is_foreign=False,
        )
        return FileTables(self.rows, lambda scope: None).add_table(wanted, fence=self.fence)

    def _copy_files(
        self, files: Sequence[TrackedFile], successor: FileTableDefinition, new: FileReferenceStore
    ) -> AdoptedTable:
        result = AdoptedTable(successor, files=len(files))
        numbered = [(f"adopt-{number}", file) for number, file in enumerate(files)]  # the old scope is closed, so numbers stay
        done = 0
        for batch in _batches(numbered):
            self.fence()
            outcomes = new.find_outcomes([request for request, _ in batch])
            waiting = [(request, file) for request, file in batch if request not in outcomes]
            with ThreadPoolExecutor(_COPIED_AT_ONCE, thread_name_prefix="adopt") as pool:
                copies = list(pool.map(lambda item: self._copy_file(item[1].filename, successor), waiting))
            self.fence()
            self._track_copies(waiting, [filename for filename, _ in copies], new)
            done += len(batch)
            result.copied += len(copies)
            result.size_bytes += sum(size for _, size in copies)
            self.progress(done, len(files), "files copied")
        return result

    def _copy_file(self, filename: str, successor: FileTableDefinition) -> tuple[str, int]:
        """Copy a file. Returns the name of the copy, and its size."""
        copy = data_file_name(successor.location, self.rows.new_id(), "0")
        with open_data_file(filename) as source, new_data_file(copy) as path, open(path, "wb") as target:  # noqa: PTH123  # what is yielded
            if isinstance(source, str):
                with open(source, "rb") as file:  # noqa: PTH123
                    shutil.copyfileobj(file, target, _COPY_BYTES)
            else:
                shutil.copyfileobj(source, target, _COPY_BYTES)
            return copy, target.tell()

    def _track_copies(self, waiting: Sequence[tuple[str, TrackedFile]], copies: Sequence[str], new: FileReferenceStore) -> None:
        requests = [
            AddFiles(files=(_renamed(file, copy),), request=request)
            for (request, file), copy in zip(waiting, copies, strict=True)
        ]
        for outcome, copy in zip(new.apply_requests(requests), copies, strict=True):
            if outcome.state is not RequestState.APPLIED:  # another adoption was first
                with suppress(HeadwaterError):
                    delete_data_file(copy)

    def _finish(self, adopted: FileTableDefinition) -> None:
        """Delete the scope of the table that was imported. Its files are not ours, and stay."""
        imported = find_file_table(self.rows, table_id=adopted.source)
        if imported is None or imported.state is not FileTableState.DELETING:
            return
        try:
            references = open_file_references(self.store, FileScope(self.rows.key, imported.id))
        except NotFoundError:
            references = None
        if references is not None:
            with closing(references):
                references.close_scope()
                while references.delete_scope(self.store.settings.delete_batch):
                    self.fence()
        FileTables(self.rows, lambda scope: None).change_state(imported, FileTableState.DELETED, fence=self.fence)


def _renamed(file: TrackedFile, copy: str) -> TrackedFile:
    references = (
        FileReference(
            filename=copy,
            partition=each.partition,
            rows=each.rows,
            is_estimate=each.is_estimate,
            is_whole_file=each.is_whole_file,
        )
        for each in file.references
    )
    return TrackedFile(filename=copy, references=tuple(references))


def _batches(items: Sequence[tuple[str, TrackedFile]]) -> Iterator[list[tuple[str, TrackedFile]]]:
    rest = iter(items)
    while batch := list(islice(rest, _BATCH)):
        yield batch
