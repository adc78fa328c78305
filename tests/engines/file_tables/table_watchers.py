"""Those who look at a file table during a storm and are never killed: readers, quick and slow, and an auditor of its references."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator

from role_processes import RolePlayer
from table_ledger import IngestLedger
from table_stage import DELAY_SECONDS, Row, schema_of

from engines.model import (
    late_reads_alone_miss_files,
    references_of_a_file_do_not_overlap,
    references_stand_for_whole_ingests,
    tables_have_whole_ingests,
    tree_numbers_go_up,
)
from headwater.errors import ExpiredError
from headwater.files import FileTable, PartitionId, PartitionTree, ReadPlan, read_data_file

__all__ = ["audit", "read", "read_slowly", "rows_of_plan"]

AUDIT_SECONDS = 0.05
PAUSES = (0.3 * DELAY_SECONDS, 0.5 * DELAY_SECONDS, 1.5 * DELAY_SECONDS, 3 * DELAY_SECONDS)
"""Between a plan and its reading: the last ones are longer than files are kept."""


def read(player: RolePlayer) -> None:
    """Read the whole table, again and again."""
    _read(player, (0.0,))


def read_slowly(player: RolePlayer) -> None:
    """Plan, wait, and read; now and then for longer than files are kept."""
    _read(player, PAUSES)


def _read(player: RolePlayer, pauses: tuple[float, ...]) -> None:
    store, table = player.open_table()
    ledger = IngestLedger(player.stage.folder)
    while player.goes_on(pause_seconds=0.15):
        ledger.read_on()
        must, begun = set(ledger.done), time.monotonic()
        with player.trying("read"):
            plan = table.plan_read()
            time.sleep(player.chance.choice(pauses))
            try:
                rows = list(rows_of_plan(table, plan))
            except ExpiredError as fault:
                seconds = time.monotonic() - begun
                player.note("late", seconds=seconds, fault=str(fault))
                player.note_faults("read", late_reads_alone_miss_files(seconds, DELAY_SECONDS, fault))
                continue
            ledger.read_on()
            player.note_faults("read", tables_have_whole_ingests(rows, player.stage.rows_of, must=must, may=ledger.begun))
            player.note("read", rows=len(rows), files=len(plan.filenames))
    store.close()


def rows_of_plan(table: FileTable, plan: ReadPlan) -> Iterator[Row]:
    """raises ExpiredError when a file is gone"""
    schema = schema_of(table)
    for leaf in plan.leaves:
        for reference in leaf.references:
            for batch in read_data_file(schema, reference.filename, leaf.keys):
                yield from zip(*(batch.column(name).to_pylist() for name in ("id", "ingest", "place")), strict=True)


def audit(player: RolePlayer) -> None:
    """Look at all references at one moment, many times a second, and count the rows that each one stands for."""
    store, table = player.open_table()
    auditor = FileAuditor(player, table)
    while player.goes_on(pause_seconds=AUDIT_SECONDS):
        with player.trying("audit"):
            auditor.look()
    store.close()


class FileAuditor:
    """Knows what is in each file, for files never change."""

    def __init__(self, player: RolePlayer, table: FileTable) -> None:
        self._player = player
        self._table = table
        self._schema = schema_of(table)
        self._ledger = IngestLedger(player.stage.folder)
        self._tree: PartitionTree = table.read_tree()
        self._files: dict[str, list[tuple[bytes, str]]] = {}
        self._counts: dict[tuple[str, PartitionId], Counter[str]] = {}
        self._tree_number = 0

    def look(self) -> None:
        self._ledger.read_on()
        must, begun = set(self._ledger.done), time.monotonic()
        snapshot = self._table.references.snapshot()
        self._player.note_faults("audit", references_of_a_file_do_not_overlap(snapshot.references))
        self._player.note_faults("audit", tree_numbers_go_up(snapshot.tree_number, self._tree_number))
        self._tree_number = snapshot.tree_number
        rows: Counter[str] = Counter()
        try:
            for reference in snapshot.references:
                rows += self._rows_of(reference.filename, reference.partition)
        except ExpiredError as fault:
            faults = late_reads_alone_miss_files(time.monotonic() - begun, DELAY_SECONDS, fault)
        else:
            self._ledger.read_on()
            sizes = {ingest: len(self._player.stage.rows_of(ingest)) for ingest in rows}
            faults = references_stand_for_whole_ingests(rows, sizes, must=must, may=self._ledger.begun)
        self._player.note_faults("audit", faults)
        self._player.note("audited", references=len(snapshot.references))

    def _rows_of(self, filename: str, partition: PartitionId) -> Counter[str]:
        if (filename, partition) not in self._counts:
            if not self._tree.has_partition(partition):
                self._tree = self._table.read_tree()
            keys = self._tree.range_of(partition)
            self._counts[filename, partition] = Counter(ingest for key, ingest in self._read(filename) if keys.has(key))
        return self._counts[filename, partition]

    def _read(self, filename: str) -> list[tuple[bytes, str]]:
        if filename not in self._files:
            encode = self._schema.key_type.encode_key
            self._files[filename] = [
                (encode(key), ingest)
                for batch in read_data_file(self._schema, filename, columns=["id", "ingest"])
                for key, ingest in zip(batch.column("id").to_pylist(), batch.column("ingest").to_pylist(), strict=True)
            ]
        return self._files[filename]
