"""What all processes of one storm on a file table share: the store, the broker, the storage, the rows of each ingest, and the delays."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
from fsspec.implementations.local import LocalFileSystem
from table_mutants import InfectiousPart

from headwater.clock import Micros, SystemClock
from headwater.files import (
    FileTable,
    FileTableColumn,
    FileTableFields,
    FileTables,
    RowKeyType,
    RowSchema,
    open_file_references,
    open_file_table,
)
from headwater.settings import Settings
from headwater.store import RealmId, RealmKey, RealmStore, Store
from headwater_workers.celery_app import Broker, broker_of

__all__ = [
    "DELAY_SECONDS",
    "GRACE_SECONDS",
    "Row",
    "ShiftedClock",
    "TableStage",
    "make_orders",
    "open_orders",
    "settings_of",
    "use_crowded_storage",
]

DELAY_SECONDS = 2.0
"""How long a file stays after its mark."""
GRACE_SECONDS = 4.0
"""How long a file may be untracked."""
NAME = "orders"
FIELDS = FileTableFields(
    key_column="id",
    key_type=RowKeyType.LONG,
    sort_columns=("place",),
    columns=(
        FileTableColumn(name="id", type="long", nullable=False),
        FileTableColumn(name="ingest", type="string"),
        FileTableColumn(name="place", type="long"),
    ),
)
KEYS = 100_000
CROWDED = "crowded"
REFUSED_SHARE = 0.04
"""How many of its requests a crowded storage refuses."""

Row = tuple[int, str, int]
"""A key, the ingest that the row is of, and its place in there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableStage:
    """One storm's ground.

    folder        journals and logs
    location      of the file table
    shifts        seconds that the clocks of processes are ahead, by the name of their role
    short_shifts  the same, only for the first lives
    mutant        a wrong part that all processes have
    """

    url: str
    folder: Path
    location: str
    seed: int
    settings: Settings
    broker_folder: Path | None
    shifts: Mapping[str, float]
    short_shifts: Mapping[str, float]
    mutant: type[InfectiousPart] | None = None

    @property
    def broker(self) -> Broker:
        return broker_of(self.settings, self.broker_folder)

    def shift_of(self, name: str, life: int) -> float:
        return self.shifts.get(name, self.short_shifts.get(name, 0.0) if life <= 2 else 0.0)

    def rows_of(self, ingest: str) -> list[Row]:
        """What an ingest of this name brings: always the same."""
        chance = random.Random(f"{self.seed} {ingest}")
        return [(chance.randrange(KEYS), ingest, place) for place in range(chance.randrange(40, 200))]

    def tables_of(self, ingest: str) -> list[pa.Table]:
        """The same rows in a few pieces, each of which becomes a file."""
        rows = self.rows_of(ingest)
        pieces = [rows[at::3] for at in range(3)]
        return [
            pa.Table.from_pylist([dict(zip(("id", "ingest", "place"), row, strict=True)) for row in piece]) for piece in pieces
        ]


def settings_of(url: str, broker: str, **others: Any) -> Settings:
    return Settings(
        **{
            "store": url,
            "broker": broker,
            "unsafe_short_graces": True,
            "files_delete_delay_seconds": DELAY_SECONDS,
            "files_writer_grace_seconds": GRACE_SECONDS,
            "files_committers": 2,
            **others,
        }
    )


class ShiftedClock(SystemClock):
    """A machine's clock that somebody set wrong."""

    def __init__(self, shift_seconds: float) -> None:
        super().__init__()
        self._shift = round(shift_seconds * 1_000_000)

    def now(self) -> Micros:
        return Micros(super().now() + self._shift)

    def wall(self) -> Micros:
        return Micros(super().wall() + self._shift)


def rows_in(store: Store) -> RealmStore:
    return store.rows(RealmId("acme"), RealmKey(4711))


def make_orders(store: Store, location: str) -> None:
    tables = FileTables(rows_in(store), lambda scope: open_file_references(store, scope, create=True))
    tables.create_table(NAME, location=location, **FIELDS)


def open_orders(store: Store) -> FileTable:
    return open_file_table(rows_in(store), NAME, lambda scope: open_file_references(store, scope))


def schema_of(table: FileTable) -> RowSchema:
    return RowSchema.of(table.definition)


class CrowdedFileSystem(LocalFileSystem):
    """Local files behind a front that asks to slow down once in a while."""

    protocol = CROWDED
    chance = random.Random()
    share = 0.0

    def __init__(self, **options: Any) -> None:
        super().__init__(**{**options, "auto_mkdir": True})

    def _answer(self) -> None:
        if self.chance.random() < self.share:
            raise OSError("Please reduce your request rate (SlowDown)")

    def cat_file(self, *arguments: Any, **options: Any) -> Any:
        self._answer()
        return super().cat_file(*arguments, **options)

    def put_file(self, *arguments: Any, **options: Any) -> Any:
        self._answer()
        return super().put_file(*arguments, **options)

    def rm_file(self, path: str) -> None:
        self._answer()
        super().rm_file(path)

    def ls(self, *arguments: Any, **options: Any) -> Any:
        self._answer()
        return super().ls(*arguments, **options)


def use_crowded_storage(chance: random.Random, *, share: float = REFUSED_SHARE) -> None:
    """In this process, locations that begin with ``crowded://`` are local files behind that front, which refuses some of the requests."""
    CrowdedFileSystem.chance, CrowdedFileSystem.share = chance, share
    fsspec.register_implementation(CROWDED, CrowdedFileSystem, clobber=True)
