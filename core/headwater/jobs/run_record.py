"""The record of every run of a task, and the report of every import, in the system realm.

The newest ``runs_kept`` records stay. The reference of the runs has the index ``reports``: 8 bytes id of the task, 4 bytes attempt,
4 bytes number -> ``ReportPiece``. Pieces are committed while the import runs; those of a later attempt replace earlier ones. They are
deleted once the record of their run is deleted and they are a week old.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Container, Iterator
from typing import Any

import msgspec
import structlog

from headwater.catalogs import ReportRow
from headwater.clock import Micros, as_text
from headwater.commits import Transaction, commit_change, ensure_reference, read_head
from headwater.errors import CorruptionError, FencedError, HeadwaterError, NotFoundError, RefusedError, UnavailableError
from headwater.gc.retention import RUNS
from headwater.index import Index, IndexValue
from headwater.realms import Realm, RealmRegistry, RealmState
from headwater.settings import check_count
from headwater.store import (
    SYSTEM_REALM,
    ObjectId,
    ReadableRows,
    RealmStore,
    Store,
    StoredObject,
    UnreadableRow,
    id_text,
    id_time,
    object_type,
)
from headwater.tasks import Task, TaskLease, TaskNotReadyError, TaskStoppedError

_RUN_INDEX = "runs"


@object_type("run")
class Run(StoredObject, frozen=True, kw_only=True):
    """One execution of a collection, a purge or an import: its counts, and how it ended.

    counts        plain numbers by name; their meaning is documented where they are counted
    error         empty when it succeeded
    """

    kind: str
    realm: str
    started: Micros
    finished: Micros
    subject: str = ""
    task: ObjectId | None = None
    attempt: int = 0
    counts: dict[str, Any] = {}
    notes: tuple[str, ...] = ()
    error: str = ""


def record_run(store: Store, run: Run, *, fence: Callable[[], None] | None = None) -> None:
    """Store a record; the oldest ones beyond ``runs_kept`` are deleted.

    raises        what the fence raises
    """
    ensure_reference(store.system, RUNS)

    def change(tx: Transaction) -> None:
        index = tx.index(_RUN_INDEX)
        run_id = tx.add_object(run)
        index.put(run.started.to_bytes(8, "big") + run_id.to_bytes(8, "big"), IndexValue(run_id))
        for key, _ in list(index.range(limit=max(len(index) - store.settings.runs_kept, 0))):
            index.remove(key)
        remove_old_reports(tx, lambda: {(run.task, run.attempt), *_with_tasks(store, index)})

    commit_change(store.system, RUNS, change, message=f"record a {run.kind} of {run.realm}", fence=fence)


def _with_tasks(store: Store, index: Index) -> Iterator[tuple[ObjectId | None, int]]:
    """Task and attempt of each recorded run that can be read. The reports of unreadable ones stay for another week anyway."""
    ids = [value.object_id for _, value in index.range() if value.object_id is not None]
    yield from ((run.task, run.attempt) for run in store.system.read_each(ids, Run) if isinstance(run, Run))


def list_runs(
    store: Store, *, kind: str | None = None, realm: str | None = None, limit: int | None = None
) -> ReadableRows[Run]:
    """The records, newest first."""
    check_count(limit, "runs of a list")
    try:
        found = read_head(store.system, RUNS, fresh=True)
    except NotFoundError:
        return ReadableRows()
    entries = [] if found is None else list(found.index(_RUN_INDEX).range(reverse=True))
    started = {value.object_id: _start_of(key) for key, value in entries if value.object_id is not None}
    runs = dict(zip(started, store.system.read_each(list(started), Run), strict=True))
    chosen = [run for run in runs.values() if isinstance(run, Run) and kind in (None, run.kind) and realm in (None, run.realm)]
    broken = {run_id: fault for run_id, fault in runs.items() if isinstance(fault, CorruptionError)}
    return ReadableRows(
        chosen[:limit],
        (
            UnreadableRow(what="run", id=run_id, name=f"of {as_text(started[run_id])}", realm="", fault=str(fault))
            for run_id, fault in broken.items()
        ),
    )


def _start_of(key: bytes) -> Micros:
    return Micros(int.from_bytes(key[:8], "big"))


_REPORT_INDEX = "reports"
_PIECE_BYTES = 1024 * 1024
"""The size of unpacked rows in a piece, well below the limit of a database row."""
_ABANDONED = 7 * 24 * 3600 * 1_000_000
"""Pieces of no recorded run belong to a running import or, when they are older than this, to an abandoned one."""

_ROWS = msgspec.msgpack.Decoder(list[ReportRow])


@object_type("report-piece")
class ReportPiece(StoredObject, frozen=True, kw_only=True):
    """Rows of a report, in order, as MessagePack compressed by zlib."""

    rows: bytes


class ReportWriter:
    """Stores the rows of one attempt of a task, a piece at a time. Call ``finish_report`` at the end."""

    def __init__(self, store: Store, task: ObjectId, attempt: int, *, fence: Callable[[], None] | None = None) -> None:
        self._store = store
        self._task = task
        self._attempt = attempt
        self._fence = fence
        self._pieces = 0
        self._rows: list[bytes] = []
        self._bytes = 0

    def add_row(self, row: ReportRow) -> None:
        """Add a row, and store a piece when it is full.

        raises        what the fence and ``commit_change`` raise
        """
        encoded = msgspec.msgpack.encode(row)
        self._rows.append(encoded)
        self._bytes += len(encoded)
        if self._bytes >= _PIECE_BYTES:
            self._flush()

    def finish_report(self) -> None:
        """Store the rest, even when it is empty: then the report exists without rows."""
        if self._rows or not self._pieces:
            self._flush()

    def _flush(self) -> None:
        piece = ReportPiece(rows=zlib.compress(msgspec.msgpack.encode([msgspec.Raw(row) for row in self._rows])))
        key = _prefix(self._task, self._attempt) + self._pieces.to_bytes(4, "big")

        def change(tx: Transaction) -> None:
            index = tx.index(_REPORT_INDEX)
            if not self._pieces:
                for old, _ in list(index.prefix(_prefix(self._task))):
                    index.remove(old)
            index.put(key, IndexValue(tx.add_object(piece)))

        if self._fence is not None:
            self._fence()
        ensure_reference(self._store.system, RUNS)
        commit_change(self._store.system, RUNS, change, message="keep rows of a report", fence=self._fence)
        self._pieces += 1
        self._rows, self._bytes = [], 0


def read_report(store: Store, task: ObjectId, attempt: int) -> Iterator[ReportRow]:
    """Read the rows of a run's report, in order.

    raises        NotFoundError when there is none, or it was deleted; CorruptionError
    """
    try:
        runs = read_head(store.system, RUNS, fresh=True)
    except NotFoundError:
        runs = None
    pieces = [] if runs is None else [value for _, value in runs.index(_REPORT_INDEX).prefix(_prefix(task, attempt))]
    if not pieces:
        raise NotFoundError("the run has no report: it was of another kind or release, or did not come far enough")
    for value in pieces:
        if value.object_id is None:
            raise CorruptionError("the report has an entry without a piece")
        packed = store.system.read_object(value.object_id, ReportPiece).rows
        try:
            yield from _ROWS.decode(zlib.decompress(packed))
        except (zlib.error, msgspec.MsgspecError) as fault:
            raise CorruptionError(f"piece {value.object_id} of the report is damaged: {fault}") from fault


def remove_old_reports(tx: Transaction, kept: Callable[[], Container[tuple[ObjectId | None, int]]]) -> None:
    """Drop pieces whose run is no longer recorded, within the transaction that records a run.

    kept          (task, attempt) of the runs that stay; asked only if there is a piece
    """
    index = tx.index(_REPORT_INDEX)
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


COLLECT, PURGE, IMPORT = "gc", "purge", "import"
EXPORT, LOAD, RESTORE = "export", "load", "restore"
PURGE_TABLE = "purge-table"


_GOING = (RealmState.PURGING, RealmState.PURGED)
_log = structlog.get_logger()


def run_recorded(
    store: Store, claim: TaskLease, work: Callable[[], dict[str, Any]], *, so_far: Callable[[], dict[str, Any]] = dict
) -> dict[str, Any]:
    """Do the work and store a record of it; its notes are under ``notes`` of the returned outcome.

    so_far        the counts so far, for work that fails

    An attempt that was taken over, handed back or put off leaves no record: the one that ends the work does.
    """
    started = store.clock.now()

    def record(outcome: dict[str, Any], error: str = "") -> None:
        claim.check_stop()  # the failure may come from a take-over
        run = Run(
            kind=claim.task.kind,
            realm=claim.task.realm,
            subject=claim.task.subject,
            started=started,
            finished=store.clock.now(),
            task=claim.id,
            attempt=claim.attempt,
            counts={name: value for name, value in outcome.items() if name != "notes"},
            notes=tuple(outcome.get("notes", ())),
            error=error,
        )
        try:
            record_run(store, run, fence=claim.check_stop)
        except (FencedError, TaskStoppedError):
            raise
        except HeadwaterError as fault:  # the work itself is done, and its task records how it ended
            _log.warning("the run was not recorded", task=id_text(claim.id), fault=str(fault))

    before = _realm(store, claim.task)
    try:
        outcome = work()
    except (FencedError, TaskNotReadyError, TaskStoppedError):
        raise
    except RefusedError as refused:
        record(so_far(), str(refused))
        if {_state(before), _state(_realm(store, claim.task))} == {RealmState.ACTIVE, RealmState.INACTIVE}:
            raise UnavailableError(f"the realm was switched meanwhile, try again: {refused}") from refused
        raise
    except CorruptionError as damage:
        record(so_far(), str(damage))
        if _is_going(before, _realm(store, claim.task)):
            raise RefusedError(f"realm {claim.task.realm!r} was purged meanwhile: {damage}") from damage
        raise
    except HeadwaterError as error:
        record(so_far(), str(error))
        raise
    record(outcome)
    return outcome


def open_realm(store: Store, task: Task) -> RealmStore:
    """Open the task's realm for users: the one that had this id when the task was requested, and no later one."""
    rows = RealmRegistry(store).open_realm(task.realm)
    if task.realm_key not in (0, rows.key):
        raise RefusedError(f"realm {task.realm!r} was created anew since this task was asked for: ask again")
    return rows


def open_active_realm(store: Store, task: Task) -> RealmStore:
    """Open the task's realm like ``open_realm``, for work that a user could do by hand: while the realm is INACTIVE it waits,
    without a failure.

    raises        TaskNotReadyError while the realm is INACTIVE; RefusedError in any other state but ACTIVE, or when it was created anew;
                  NotFoundError
    """
    rows = open_realm(store, task)
    realm = RealmRegistry(store).read_realm(task.realm)
    if realm.state is RealmState.INACTIVE and realm.key == rows.key:
        raise TaskNotReadyError(f"realm {task.realm!r} is INACTIVE: this goes on once it is activated")
    rows.check_write()
    return rows


def _realm(store: Store, task: Task) -> Realm | None:
    return None if task.realm == SYSTEM_REALM else RealmRegistry(store).find_realm(task.realm)


def _state(realm: Realm | None) -> RealmState | None:
    return None if realm is None else realm.state


def _is_going(before: Realm | None, now: Realm | None) -> bool:
    """Whether a realm that existed when the work began is being deleted now: then missing objects are no damage."""
    if before is None or before.state in _GOING:
        return False
    return now is None or now.key != before.key or now.state in _GOING
