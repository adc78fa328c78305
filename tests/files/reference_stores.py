"""Every store of file references, in one list for the contract: a database for all tests of a process, and a new file table for each.

To add an implementation, add how its database is opened to ``REFERENCE_DATABASES``.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from typing import Protocol

import pytest
from contender_database import CONTENDERS, ContenderDatabase

from backend_fixtures import STORES
from fake_clock import FakeClock
from headwater import Settings, open_store
from headwater.files import (
    AssignJob,
    CommitJob,
    FileReference,
    FileReferenceStore,
    FileScope,
    PartitionId,
    TrackedFile,
    open_file_references,
)
from headwater.store import RealmKey, Store

_numbers = itertools.count(1)


class ReferenceDatabase(Protocol):
    """A database that keeps the references of any number of file tables, under a clock that stands still."""

    clock: FakeClock

    def make_table(self) -> FileReferenceStore:
        """The references of a new file table, without any file."""

    def close(self) -> None: ...


class StoreDatabase:
    """The library's own: option 3 in the database of a store."""

    def __init__(self, url: str) -> None:
        self.clock = FakeClock()
        self.store: Store = open_store(url, settings=Settings(), clock=self.clock)

    def make_table(self) -> FileReferenceStore:
        return open_file_references(self.store, fresh_scope(), create=True)

    def close(self) -> None:
        self.store.close()


def fresh_scope() -> FileScope:
    """A file table that no other test has."""
    return FileScope(RealmKey(7), f"{next(_numbers):016x}")


REFERENCE_DATABASES: dict[str, Callable[[pytest.FixtureRequest], ReferenceDatabase]] = {
    "sqlite": lambda request: StoreDatabase(
        f"sqlite:///{request.getfixturevalue('tmp_path_factory').mktemp('references')}/store.db"
    ),
    "postgresql": lambda request: StoreDatabase(STORES["postgresql"](request)),
    **{name: partial(ContenderDatabase, option) for name, option in CONTENDERS.items()},
}


def make_file(filename: str, *partitions: str) -> TrackedFile:
    """A file with a reference of each of these partitions, ten rows each."""
    is_whole = len(partitions) == 1
    return TrackedFile(
        filename=filename,
        references=tuple(
            FileReference(filename=filename, partition=PartitionId(each), rows=10, is_whole_file=is_whole)
            for each in partitions
        ),
    )


def place_of(filename: str, partition: str, rows: int = 10) -> FileReference:
    """The reference of a partition to a file, as a request names it."""
    return FileReference(filename=filename, partition=PartitionId(partition), rows=rows)


def assignment(job: str, partition: str, *filenames: str, request: str = "") -> AssignJob:
    return AssignJob(job=job, partition=PartitionId(partition), filenames=filenames, request=request)


def commit_of(job: str, partition: str, *inputs: str, output: str = "") -> CommitJob:
    """The commit of a job whose output is named after it."""
    return CommitJob(job=job, inputs=inputs, output=place_of(output or f"out-{job}", partition, 10 * len(inputs)))


def places(references: FileReferenceStore) -> list[tuple[str, str, str | None]]:
    """What is stored, in short: filename, partition and job of each reference."""
    return [(each.filename, each.partition, each.job) for each in references.references()]
