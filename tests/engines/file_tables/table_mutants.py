"""Parts of file tables that do one thing wrong, which a storm must find out. ``infect`` puts the part into this process."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from typing import Protocol

from headwater.clock import Micros
from headwater.files import (
    AddFiles,
    FileSnapshot,
    FileTable,
    PartitionId,
    PartitionTree,
    SplitReference,
    TrackedFile,
    delete_data_file,
    reference_rules,
)
from headwater.files.collection_clock import CollectionTime
from headwater.files.file_collection import FileCollector
from headwater.files.reference_rules import ReferenceChanges
from headwater.files.sql_references import SqlReferenceStore
from headwater.files.stored_tree import read_tree

__all__ = ["STORMY", "InfectiousPart", "ReadsTheTreeFirst"]

WINDOW_SECONDS = 0.1
"""Between two steps in the wrong order, so that a short storm meets it."""


class InfectiousPart(Protocol):
    """One of ``STORMY``."""

    @staticmethod
    def infect() -> None: ...


class ReadsTheTreeFirst:
    """Reads the partition tree before the references, and trusts it."""

    @staticmethod
    def infect() -> None:
        def read_both(table: FileTable) -> tuple[FileSnapshot, PartitionTree]:
            tree = read_tree(table.rows, table.definition)
            time.sleep(5 * WINDOW_SECONDS)
            return table.references.snapshot(), tree

        FileTable.read_both = read_both  # type: ignore[method-assign]


class MovesBeforeItSplits:
    """Moves references to partitions before the tree has them."""

    @staticmethod
    def infect() -> None:
        right = FileTable.split_leaves
        read_both = FileTable.read_both

        def split_leaves(table: FileTable, points: dict[PartitionId, bytes], **options: object) -> PartitionTree:
            snapshot, tree = read_both(table)
            table.read_both = lambda: (snapshot, tree.split_leaves(points))  # type: ignore[method-assign]
            table.push_down_references()
            del table.read_both
            time.sleep(10 * WINDOW_SECONDS)
            return right(table, points)

        FileTable.split_leaves = split_leaves  # type: ignore[method-assign, assignment]


class KeepsSplitReferences:
    """Leaves the reference of a partition there that was split among others."""

    @staticmethod
    def infect() -> None:
        right = reference_rules._APPLY[SplitReference]

        def apply(request: SplitReference, ledger: reference_rules._Ledger) -> None:
            ledger.drop_reference = lambda place: None  # type: ignore[method-assign]
            right(request, ledger)
            del ledger.drop_reference

        reference_rules._APPLY[SplitReference] = apply


class WritesNoOutcomes:
    """Applies requests without the rows that tell so."""

    @staticmethod
    def infect() -> None:
        right = reference_rules._Ledger.changes

        def changes(ledger: reference_rules._Ledger) -> ReferenceChanges:
            return dataclasses.replace(right(ledger), outcomes=[])

        reference_rules._Ledger.changes = changes  # type: ignore[method-assign]


class TracksFileByFile:
    """Tracks the files of an ingest one after the other."""

    @staticmethod
    def infect() -> None:
        right = SqlReferenceStore.add_files

        def add_files(store: SqlReferenceStore, files: Sequence[TrackedFile] | AddFiles) -> None:
            if isinstance(files, AddFiles):
                for file in files.files[:-1]:
                    right(store, [file])
                    time.sleep(WINDOW_SECONDS)
                right(store, AddFiles(files=files.files[-1:], request=files.request))
            else:
                right(store, files)

        SqlReferenceStore.add_files = add_files  # type: ignore[method-assign]


class DeletesAtOnce:
    """Deletes marked files without their delay."""

    @staticmethod
    def infect() -> None:
        def latest_mark(collection: CollectionTime, delay_seconds: float) -> Micros:
            return Micros(collection.now + 1)

        CollectionTime.latest_mark = latest_mark  # type: ignore[method-assign]


class DeletesStrays:
    """Deletes files that nobody tracks without tracking them first, so that a late writer does not learn of it."""

    @staticmethod
    def infect() -> None:
        def track_strays(collector: FileCollector, filenames: Sequence[str]) -> int:
            for filename in filenames:
                delete_data_file(filename)
            return 0

        FileCollector._track_strays = track_strays  # type: ignore[method-assign]


STORMY: tuple[type[InfectiousPart], ...] = (
    ReadsTheTreeFirst,
    MovesBeforeItSplits,
    KeepsSplitReferences,
    WritesNoOutcomes,
    TracksFileByFile,
    DeletesAtOnce,
    DeletesStrays,
)
