"""What became of each table of an import: rows in the system realm, beside the record of the run.

The reference of the runs has the index ``reports``: 8 bytes id of the task, 4 bytes attempt, 4 bytes number -> ``ReportPiece``. Pieces
are committed while the import goes on, and a later attempt's take the place of earlier ones. They leave when the record of their run
has left and they are a week old.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Container, Iterator

import msgspec

from headwater.catalogs import ReportRow
from headwater.clock import Micros
from headwater.commits import Transaction, commit_change, ensure_reference, read_head
from headwater.errors import MissingError, UnreadableError
from headwater.index import Value
from headwater.maintenance.garbage.listing import RUNS
from headwater.store import ObjectId, Store, StoredObject, id_time, object_type

__all__ = ["ReportPiece", "ReportWriter", "forget_reports", "read_report"]

_INDEX = "reports"
_PIECE_BYTES = 1024 * 1024
"""Of rows before they are packed: then a piece is well below what one row of the database holds."""
_ABANDONED = 7 * 24 * 3600 * 1_000_000
"""Pieces that no kept run points to belong to an import that goes on, or, when they are older than this, to one that was given up."""

_ROWS = msgspec.msgpack.Decoder(list[ReportRow])


@object_type("report-piece")
class ReportPiece(StoredObject, frozen=True, kw_only=True):
    """Rows of a report, in order: MessagePack, packed by zlib."""

    rows: bytes


class ReportWriter:
    """Keeps the rows of one attempt of a task, a piece at a time. Call ``close`` at the end."""

    def __init__(self, store: Store, task: ObjectId, attempt: int, *, fence: Callable[[], None] | None = None) -> None:
        self._store = store
        self._task = task
        self._attempt = attempt
        self._fence = fence
        self._pieces = 0
        self._rows: list[bytes] = []
        self._bytes = 0

    def add(self, row: ReportRow) -> None:
        """raises        what the fence and ``commit_change`` raise"""
        encoded = msgspec.msgpack.encode(row)
        self._rows.append(encoded)
        self._bytes += len(encoded)
        if self._bytes >= _PIECE_BYTES:
            self._flush()

    def close(self) -> None:
        """Keep what is left, also when that is nothing: then the report has no rows, but is there."""
        if self._rows or not self._pieces:
            self._flush()

    def _flush(self) -> None:
        piece = ReportPiece(rows=zlib.compress(msgspec.msgpack.encode([msgspec.Raw(row) for row in self._rows])))
        key = _prefix(self._task, self._attempt) + self._pieces.to_bytes(4, "big")

        def change(tx: Transaction) -> None:
            index = tx.index(_INDEX)
            if not self._pieces:
                for old, _ in list(index.prefix(_prefix(self._task))):
                    index.remove(old)
            index.put(key, Value(tx.add_object(piece)))

        if self._fence is not None:
            self._fence()
        ensure_reference(self._store.system, RUNS)
        commit_change(self._store.system, RUNS, change, message="keep rows of a report", fence=self._fence)
        self._pieces += 1
        self._rows, self._bytes = [], 0


def read_report(store: Store, task: ObjectId, attempt: int) -> Iterator[ReportRow]:
    """The rows of a run's report, in order.

    raises        MissingError when there is none, or no more; UnreadableError
    """
    try:
        runs = read_head(store.system, RUNS, fresh=True)
    except MissingError:
        runs = None
    pieces = [] if runs is None else [value for _, value in runs.index(_INDEX).prefix(_prefix(task, attempt))]
    if not pieces:
        raise MissingError("the run has no report: it was of another kind or release, or did not come far enough")
    for value in pieces:
        if value.object_id is None:
            raise UnreadableError("the report has an entry without a piece")
        packed = store.system.read(value.object_id, ReportPiece).rows
        try:
            yield from _ROWS.decode(zlib.decompress(packed))
        except (zlib.error, msgspec.MsgspecError) as fault:
            raise UnreadableError(f"piece {value.object_id} of the report is damaged: {fault}") from fault


def forget_reports(tx: Transaction, kept: Callable[[], Container[tuple[ObjectId | None, int]]]) -> None:
    """Within the recording of a run: drop pieces whose run is recorded no more.

    kept          (task, attempt) of the runs that stay; asked only if there is a piece
    """
    index = tx.index(_INDEX)
    entries = list(index.range())
    if not entries:
        return
    staying = kept()
    for key, value in entries:
        owner = (ObjectId(int.from_bytes(key[:8], "big")), int.from_bytes(key[8:12], "big"))
        if owner not in staying and value.object_id is not None and _is_old(value.object_id, tx.time):
            index.remove(key)


def _is_old(piece: ObjectId, now: Micros) -> bool:
    return id_time(piece) < now - _ABANDONED


def _prefix(task: ObjectId, attempt: int | None = None) -> bytes:
    return task.to_bytes(8, "big") + (b"" if attempt is None else attempt.to_bytes(4, "big"))
