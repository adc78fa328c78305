"""Load the file tables of an archive. They are read-only in the new realm until their files were copied.

An archive has references to files, and not the files: these still belong to the store that wrote it. Two stores must never collect one set
of files, so the scope of an imported table is closed once its references are in it, and its files are never deleted from here.

    listed -> scope -> tree -> references, each batch under an id of its own -> READ_ONLY -> scope closed

Every step may be repeated: a load that was interrupted goes through all of them again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from headwater.backup.archive_format import BlockKind, open_archive, read_blocks
from headwater.backup.archived_tables import (
    ArchivedReferences,
    ArchivedSplits,
    ArchivedTable,
    TableRecord,
    read_table_records,
)
from headwater.errors import CorruptionError, RefusedError
from headwater.files import AddFiles, FileScope, FileTables, FileTableState, PartitionId, RequestState, initialize_tree
from headwater.files.open_references import keeps_file_references, open_file_references
from headwater.settings import variable_of
from headwater.store import RealmStore, Store, id_text
from headwater.throttle import Fence


def check_room(store: Store, name: str) -> None:
    """Pass if a store can have the file tables of an archive; raises RefusedError."""
    if not keeps_file_references(store):
        raise RefusedError(
            f"archive {name!r} has file tables, and this store keeps no file references: set {variable_of('files_store')} to the URL of a"
            " PostgreSQL or SQLite database beside it, such as sqlite:////folder/files.db"
        )


def load_file_tables(store: Store, rows: RealmStore, file: Path, *, fence: Fence) -> None:
    """Make the file tables of an archive, or go on with that."""
    for parts in _tables(file):
        _TableLoad(store, rows, parts, fence).load()


@dataclass(slots=True)
class _TableParts:
    table: ArchivedTable
    splits: dict[PartitionId, bytes]
    references: list[ArchivedReferences]


def _tables(file: Path) -> Iterator[_TableParts]:
    parts: _TableParts | None = None
    for record in _records(file):
        if isinstance(record, ArchivedTable):
            if parts is not None:
                yield parts
            parts = _TableParts(record, {}, [])
        elif parts is None:
            raise CorruptionError(f"archive {str(file)!r} has references of no file table")
        elif isinstance(record, ArchivedSplits):
            parts.splits |= {PartitionId(partition): point for partition, point in record.splits}
        else:
            parts.references.append(record)
    if parts is not None:
        yield parts


def _records(file: Path) -> Iterator[TableRecord]:
    with open_archive(file) as opened:
        for block in read_blocks(opened, str(file)):
            if block.kind is BlockKind.FILE_TABLES:
                yield from read_table_records(block.body)


@dataclass(slots=True)
class _TableLoad:
    store: Store
    rows: RealmStore
    parts: _TableParts
    fence: Fence

    def load(self) -> None:
        tables = FileTables(self.rows, lambda scope: None)
        wanted = self.parts.table.as_definition(id_text(self.rows.new_id()))
        definition = tables.add_table(wanted, fence=self.fence)
        scope = FileScope(self.rows.key, definition.id)
        is_begun = definition.state is FileTableState.CREATING
        self.fence()
        with closing(open_file_references(self.store, scope, create=is_begun, takes_old_files=True)) as references:
            if is_begun:
                initialize_tree(self.rows, definition, self.parts.splits, fence=self.fence)
                for number, record in enumerate(self.parts.references):
                    self.fence()
                    request = AddFiles(files=tuple(record.as_files()), request=f"load-{number}")
                    [outcome] = references.apply_requests([request])
                    if outcome.state is not RequestState.APPLIED:
                        raise CorruptionError(
                            f"file table {definition.name!r} of realm {self.rows.realm!r} cannot be loaded: {outcome.reason}"
                        )
                tables.change_state(definition, FileTableState.READ_ONLY, fence=self.fence)
            # Last: a closed scope takes nothing more, and a load that is interrupted before goes on with an open one.
            references.close_scope()
