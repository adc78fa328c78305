"""A file table in two databases, and processes that are stopped or met between any two calls to either of them.

A model knows the rows of each file, so that a read can be compared with what was ingested, row by row.
"""

from __future__ import annotations

import itertools
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from fake_clock import FakeClock
from faulty_backend import FaultyBackend
from file_tables import FIELDS
from headwater.files import (
    FileReference,
    FileReferenceStore,
    FileScope,
    FileTable,
    FileTables,
    PartitionId,
    RowKeyType,
    TrackedFile,
    open_file_references,
    open_file_table,
)
from headwater.settings import Settings
from headwater.store import RealmId, RealmKey, Store
from headwater.store.backends.memory import MemoryBackend
from lakes import copied

KEY = RealmKey(77)
encode = RowKeyType.LONG.encode_key


class KilledError(BaseException):
    """Nobody catches it: the process is gone, and does nothing more."""


@dataclass
class CallSteps:
    """Counts the calls of one process to both databases; acts before one of them, or kills the process there."""

    at: int = 0
    act: Callable[[], object] = lambda: None
    is_kill: bool = False
    count: int = 0

    def take(self) -> None:
        self.count += 1
        if self.count == self.at:
            self.act()
        if self.is_kill and self.at and self.count >= self.at:
            raise KilledError

    @property
    def was_reached(self) -> bool:
        return self.count >= self.at


class SteppedBackend(FaultyBackend):
    """Rows that outlive the processes that use them. Each call is a step."""

    def __init__(self, backend: MemoryBackend, steps: CallSteps) -> None:
        super().__init__(backend)
        self._steps = steps

    def close(self) -> None:
        """The rows stay."""

    def _call(self, name: str, *arguments: Any, **named: Any) -> Any:
        self._steps.take()
        return super()._call(name, *arguments, **named)


class SteppedReferences:
    """The references of a table, each call of which is a step."""

    def __init__(self, references: FileReferenceStore, steps: CallSteps) -> None:
        self._references = references
        self._steps = steps

    def __getattr__(self, name: str) -> Any:
        return partial(self._call, name)

    def _call(self, name: str, *arguments: Any) -> Any:
        if name != "close":
            self._steps.take()
        return getattr(self._references, name)(*arguments)


@dataclass
class TableWorld:
    """Both databases, and the rows that were ingested: the keys in each file."""

    folder: Path
    backend: MemoryBackend = field(default_factory=MemoryBackend)
    files: dict[str, list[int]] = field(default_factory=dict)
    clock: FakeClock = field(default_factory=FakeClock)

    def open_store(self, steps: CallSteps | None = None) -> Store:
        """A process of its own."""
        backend = SteppedBackend(self.backend, steps or CallSteps())
        settings = Settings(files_store=f"sqlite:///{self.folder}/files.db")
        return Store(backend, url="memory://", settings=settings, clock=self.clock)  # type: ignore[arg-type]  # faulty is any backend

    def copy(self, folder: Path) -> TableWorld:
        folder.mkdir()
        for file in self.folder.glob("files.db*"):
            shutil.copy(file, folder)
        return TableWorld(folder, copied(self.backend), dict(self.files), self.clock)

    def create(self, steps: CallSteps | None = None) -> None:
        with self.open_store(steps) as store:

            def make_scope(scope: FileScope) -> None:
                if steps is not None:
                    steps.take()
                open_file_references(store, scope, create=True)

            FileTables(store.rows(RealmId("acme"), KEY), make_scope).create_table("orders", location="s3://lake", **FIELDS)

    def use(self, work: Callable[[FileTable], Any], steps: CallSteps | None = None) -> Any:
        """Do something with the table in a process of its own."""
        with self.open_store(steps) as store:

            def open_references(scope: FileScope) -> Any:
                references = open_file_references(store, scope)
                return references if steps is None else SteppedReferences(references, steps)

            with closing(open_file_table(store.rows(RealmId("acme"), KEY), "orders", open_references)) as table:
                return work(table)

    def ingest(self, filename: str, keys: list[int], *partitions: str) -> None:
        """Track a file whose rows have these keys."""
        self.files[filename] = keys
        references = [
            FileReference(
                filename=filename, partition=PartitionId(partition), rows=len(keys), is_whole_file=len(partitions) == 1
            )
            for partition in partitions
        ]
        self.use(lambda table: table.references.add_files([TrackedFile(filename=filename, references=tuple(references))]))

    def read_rows(self, table: FileTable) -> Counter[int]:
        """The keys that a reader gets, each as often as it gets it."""
        rows = Counter[int]()
        for leaf in table.plan_read().leaves:
            for reference in leaf.references:
                rows.update(key for key in self.files[reference.filename] if leaf.keys.has(encode(key)))
        return rows

    def rows(self) -> Counter[int]:
        """What a new reader gets now."""
        return self.use(self.read_rows)

    @property
    def ingested(self) -> Counter[int]:
        return Counter(itertools.chain.from_iterable(self.files.values()))


def interruptions(world: TableWorld, work: Callable[[TableWorld, CallSteps], object]) -> Iterator[TableWorld]:
    """For each call to a database that some work makes, a world in which its process was killed just before it.

    Before the kill, another process reads, and must get all rows once.
    """
    for at in itertools.count(1):
        other = world.copy(world.folder / f"killed-{at}")
        steps = CallSteps(at, partial(check_rows, other), is_kill=True)
        try:
            work(other, steps)
        except KilledError:
            yield other
            continue
        assert at > 5, "the work made no calls"
        return


def check_rows(world: TableWorld) -> None:
    """A reader gets every row exactly once, if there is a table yet."""
    if world.files:
        assert world.rows() == world.ingested
