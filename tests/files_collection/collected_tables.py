"""A file table's references and folder for tests of its collection, without rows in the files."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headwater.clock import Micros
from headwater.files import AssignJob, CommitJob, FileReference, FileReferenceStore, FileScope, PartitionId, TrackedFile
from headwater.files.data_folder import DataFolder
from headwater.files.file_collection import CollectedFiles, FileCollector
from headwater.files.open_references import open_file_references
from headwater.store import RealmKey, Store, id_text
from headwater.store.ids import EPOCH_MILLIS, compose_id

__all__ = ["HOUR", "CollectedTable", "Fence", "make_collected_table"]

HOUR = 3600.0
LEAF = PartitionId("r")
Fence = Callable[[], None]
_numbers = itertools.count(1)


@dataclass(frozen=True)
class CollectedTable:
    """A file table in a folder of this machine."""

    store: Store
    references: FileReferenceStore
    folder: DataFolder
    path: Path

    def write_file(self, *, hours_ago: float = 0.0, name: str = "") -> str:
        """Store a data file that nobody tracks, with the name that it would have had then. Returns its name."""
        millis = self.store.clock.now() // 1000 - round(hours_ago * 3_600_000) - EPOCH_MILLIS
        name = name or f"{id_text(compose_id(millis, 1, next(_numbers) % 4096))}-0.parquet"
        self.path.mkdir(parents=True, exist_ok=True)
        (self.path / name).write_bytes(b"rows")
        return f"{self.folder.location}/{name}"

    def add_file(self) -> str:
        """Store and track a file with one reference."""
        filename = self.write_file()
        self.references.add_files([TrackedFile(filename=filename, references=(reference_to(filename),))])
        return filename

    def drop_references(self, *filenames: str) -> str:
        """Replace the references to files by one to a new file, whose name is returned."""
        job, output = f"job-{next(_numbers)}", self.write_file()
        self.references.assign_jobs([AssignJob(job=job, partition=LEAF, filenames=filenames)])
        self.references.commit_jobs([CommitJob(job=job, inputs=filenames, output=reference_to(output))])
        return output

    def make_unreferenced(self, count: int = 1) -> list[str]:
        """Files that had a reference once."""
        filenames = [self.add_file() for _ in range(count)]
        self.drop_references(*filenames)
        return filenames

    def collector(self, **options: Any) -> FileCollector:
        return FileCollector(self.store, self.references, self.folder, **options)

    def collect(self, **options: Any) -> CollectedFiles:
        return self.collector(**options).collect()

    def is_stored(self, filename: str) -> bool:
        return (self.path / filename.rpartition("/")[2]).exists()

    def is_tracked(self, filename: str) -> bool:
        return filename in self.references.find_files([filename])

    def marked_at(self, filename: str) -> Micros | None:
        return self.references.find_files([filename])[filename].updated


def reference_to(filename: str) -> FileReference:
    return FileReference(filename=filename, partition=LEAF, rows=10)


def make_collected_table(store: Store, path: Path, *, location: str = "") -> CollectedTable:
    """A new file table whose files lie in a folder."""
    scope = FileScope(RealmKey(store.new_id()), id_text(store.new_id()))
    references = open_file_references(store, scope, create=True)
    return CollectedTable(store, references, DataFolder(location or path.as_uri()), path)
