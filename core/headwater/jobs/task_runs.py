"""What the tasks of a realm do, by kind (all but imports, the purge of a table and collections of files), and the record that a run leaves.

The newest ``runs_kept`` records stay, in the system realm, and as many of collections of files: there are so many that they would push
all others out. These are in the index ``file-runs``, the others in ``runs``.

The reference of the runs also has the index ``reports``, of imports: 8 bytes id of the task, 4 bytes attempt, 4 bytes number ->
``ReportPiece``. Pieces are committed while the import runs; those of a later attempt replace earlier ones. They are deleted once the
record of their run is deleted and they are a week old.
"""

from __future__ import annotations

import socket
import zlib
from collections.abc import Callable, Container, Iterator
from contextlib import suppress
from operator import itemgetter
from pathlib import Path
from typing import Any

import msgspec
import structlog

from headwater.backup import ExportOrder, delete_load_progress, export_realm, is_sweeping, load_realm, readable_from
from headwater.catalogs import ReportRow
from headwater.clock import Micros, as_text
from headwater.commits import Transaction, commit_change, read_head, unpin_commits
from headwater.errors import CorruptionError, FencedError, HeadwaterError, NotFoundError, RefusedError, UnavailableError
from headwater.gc import Collector, abandon_sweep, collect_realms, open_scope
from headwater.gc.retention import RUNS
from headwater.index import Index, IndexValue
from headwater.purge.realm_purge import purge_realm
from headwater.realms import Realm, RealmRegistry, RealmState
from headwater.restore import RequestMoment, RestoreRequest, restore_state
from headwater.settings import check_count
from headwater.store import (
    SYSTEM_REALM,
    DoubtfulClockError,
    ObjectId,
    ReadableRows,
    RealmStore,
    Store,
    StoredObject,
    UnreadableRow,
    check_clock,
    id_text,
    id_time,
    object_type,
)
from headwater.tasks import Task, TaskLease, TaskNotReadyError, TaskStoppedError
from headwater.typed_values import msgpack_decoder

COLLECT, PURGE, IMPORT = "gc", "purge", "import"
EXPORT, LOAD, RESTORE = "export", "load", "restore"
PURGE_TABLE, COLLECT_FILES = "purge-table", "file-gc"
EXPIRE_SNAPSHOTS, REPORT_FILES = "expire-snapshots", "report-files"
"""Of a catalog: the subject of such a task is the catalog's name, its argument ``catalog_id`` the id."""
FSCK = "fsck"
TASK_KINDS = (COLLECT, COLLECT_FILES, PURGE, PURGE_TABLE, IMPORT, EXPORT, LOAD, RESTORE, EXPIRE_SNAPSHOTS, REPORT_FILES, FSCK)
_log = structlog.get_logger()
_CLOCK_LOOK_SECONDS = 3600.0
"""The longest time that a task waits for a person to confirm the clock."""
_SWEEP_LOOK_SECONDS = 10.0


def run_collection(store: Store, claim: TaskLease) -> dict[str, Any]:
    """Collect the garbage of the task's realm, or resume a sweep that an earlier attempt left.

    raises        TaskNotReadyError while this machine's clock may be ahead, see ``check_clock_of_task``
    """
    check_clock_of_task(store)
    if claim.task.realm != SYSTEM_REALM:
        open_realm(store, claim.task)
    owner = f"task {id_text(claim.id)}, attempt {claim.attempt}"
    if not store.backend.capabilities.ordered_keys:
        return run_recorded(store, claim, lambda: _in_turn(store, claim, owner))
    scope = open_scope(store, claim.task.realm)
    collecting = Collector(store, scope, fence=claim.check_stop, progress=claim.report_progress, owner=owner)
    try:
        return run_recorded(store, claim, lambda: collecting.collect().as_plain(), so_far=collecting.so_far)
    except TaskStoppedError:
        if claim.task.stop_requested:  # cancelled: nobody resumes it. Otherwise the next attempt does
            _give_up(scope.rows, owner)
        raise


def check_clock_of_task(store: Store) -> None:
    """Postpone the task where the clock may be ahead, and show that in the task: a person may correct the clock, another machine may take
    the task, or time shows that the clock is right.
    """
    try:
        check_clock(store, is_noted=True)
    except DoubtfulClockError as doubt:
        left = (doubt.until - store.clock.now()) / 1_000_000
        raise TaskNotReadyError(str(doubt), seconds=min(max(left, 1.0), _CLOCK_LOOK_SECONDS)) from doubt


def _in_turn(store: Store, claim: TaskLease, owner: str) -> dict[str, Any]:
    """Run the collection; where a scan reads the whole store, only while nobody else scans it."""
    fate = collect_realms(store, [claim.task.realm], fence=claim.check_stop, owner=owner)[claim.task.realm]
    if isinstance(fate, HeadwaterError):
        raise fate
    return fate.as_plain()


def _give_up(rows: RealmStore, owner: str) -> None:
    try:
        abandon_sweep(rows, owner)
    except HeadwaterError as fault:
        _log.warning("the flag of a cancelled sweep stays on until the next run", realm=rows.realm, fault=str(fault))


def run_purge(store: Store, claim: TaskLease) -> dict[str, Any]:
    """Purge the task's realm."""
    task = claim.task
    key = task.realm_key or None
    return run_recorded(
        store,
        claim,
        lambda: purge_realm(store, task.realm, key=key, fence=claim.check_stop, progress=claim.report_progress).as_plain(),
    )


def run_restore(store: Store, claim: TaskLease) -> dict[str, Any]:
    """Restore what the task's arguments name (see ``RestoreRequest.arguments``). Idempotent."""
    rows = _open_to_restore(store, claim.task)

    def work() -> dict[str, Any]:
        request = RestoreRequest.from_arguments(claim.task.arguments)
        try:
            return restore_state(
                rows,
                claim.id,
                request,
                asked=RequestMoment(claim.task.created, is_resumed=claim.attempt > 1),
                fence=claim.check_stop,
                progress=claim.report_progress,
            ).as_plain()
        except (RefusedError, NotFoundError, CorruptionError):
            with suppress(HeadwaterError):  # the next collection gives up the pins of tasks that ended
                unpin_commits(rows, claim.id, fence=claim.check_stop)
            raise

    return run_recorded(store, claim, work)


def _open_to_restore(store: Store, task: Task) -> RealmStore:
    """Open the task's realm whether ACTIVE or INACTIVE: a restoration is often requested while nobody works with the realm."""
    realms = RealmRegistry(store)
    realm = realms.read_realm(task.realm)
    if task.realm_key not in (0, realm.key):
        raise RefusedError(f"realm {realm.id!r} was created anew since this task was asked for: ask again")
    if realm.state not in (RealmState.ACTIVE, RealmState.INACTIVE):
        raise RefusedError(f"realm {realm.id!r} is {realm.state}: only ACTIVE and INACTIVE realms are restored")
    return realms.open_realm_for(realm.id, realm.state)


def run_export(store: Store, claim: TaskLease) -> dict[str, Any]:
    """Export the task's realm.

    arguments     `file` and `host`: where to (see ``task_file``); `asOf`: microseconds since 1970, absent for the newest moment that
                  can be read when the attempt begins; `holdSeconds`: how long what it names is
                  held from the request on, absent where it is not
    raises        TaskNotReadyError while a collection sweeps, as long as the moment can still be told after that
    """
    task = claim.task
    as_of = task.arguments.get("asOf")
    order = ExportOrder(
        realm=task.realm,
        realm_key=task.realm_key,
        file=task_file(task),
        time=None if as_of is None else Micros(as_of),
        task=claim.id,
        attempt=claim.attempt,
        held_until=_hold_end(task),
    )
    _check_over(store, order)
    _check_unswept(store, order)
    return run_recorded(
        store, claim, lambda: export_realm(store, order, fence=claim.check_stop, progress=claim.report_progress).as_plain()
    )


def _hold_end(task: Task) -> Micros | None:
    seconds = task.arguments.get("holdSeconds")
    return None if seconds is None else Micros(task.created + round(seconds * 1_000_000))


def _check_over(store: Store, order: ExportOrder) -> None:
    """Check that the moment is over by this machine's clock, which may be behind that of the machine that accepted the request."""
    if order.time is not None and store.clock.now() < readable_from(order.time, store.settings):
        raise UnavailableError(
            f"realm {order.realm!r} as of {as_text(order.time)} cannot be read yet: the export goes on by itself"
        )


def _check_unswept(store: Store, order: ExportOrder) -> None:
    """Refuse while a collection sweeps: this worker may be the one that has to finish an interrupted sweep."""
    realm = RealmRegistry(store).find_realm(order.realm)
    if realm is None or not is_sweeping(store.rows(realm.id, realm.key)):
        return
    grace = store.settings.reader_grace_seconds - _SWEEP_LOOK_SECONDS
    if order.time is None or store.clock.now() < order.time + round(grace * 1_000_000):
        raise TaskNotReadyError(
            f"a collection of realm {order.realm!r} is sweeping, and nothing can be pinned: the export goes on after it",
            seconds=_SWEEP_LOOK_SECONDS,
        )


def run_load(store: Store, claim: TaskLease) -> dict[str, Any]:
    """Load an archive into the task's realm, which the load creates.

    arguments     `file` and `host`: where it is (see ``task_file``); `inactive`: whether the realm is INACTIVE once it is loaded

    The progress leaves the realm only when the run was recorded: whichever attempt ends the task finds one of the two.
    """
    task = claim.task
    outcome = _recorded_before(store, claim)
    if outcome is None:
        file, is_active = task_file(task), not task.arguments.get("inactive", False)

        def work() -> dict[str, Any]:
            return load_realm(
                store, task.realm, file, is_active=is_active, fence=claim.check_stop, progress=claim.report_progress
            ).as_plain()

        outcome = run_recorded(store, claim, work)
    claim.check_stop()
    delete_load_progress(store, task.realm)
    return outcome


def _recorded_before(store: Store, claim: TaskLease) -> dict[str, Any] | None:
    """The result of an earlier attempt that did everything but record it."""
    if claim.attempt == 1:
        return None
    runs = list_runs(store, kind=LOAD, realm=claim.task.realm)
    return next((dict(run.counts) for run in runs if run.task == claim.id and not run.error), None)


def file_arguments(file: Path, *, is_here: bool) -> dict[str, Any]:
    """The arguments that name a file on this machine, or on the machine of the worker that will do the task."""
    return {"file": str(file.absolute())} | ({"host": socket.gethostname()} if is_here else {})


def task_file(task: Task) -> Path:
    """The file that a task's arguments name. A path means a file on one machine, but a task can be claimed on any.

    raises        UnavailableError where it is one of another machine, whose command line does the task itself
    """
    host = task.arguments.get("host", "")
    if host not in ("", socket.gethostname()):
        raise UnavailableError(
            f"{task.arguments['file']!r} is meant on {host!r}, where {task} was asked for, and this is {socket.gethostname()!r}:"
            " give the same command there again, or with --detach for a file of a worker"
        )
    return Path(str(task.arguments["file"]))


_GOING = (RealmState.PURGING, RealmState.PURGED)


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


_RUN_INDEX, _FILE_RUN_INDEX = "runs", "file-runs"


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
    store.system.ensure_reference(RUNS)

    def change(tx: Transaction) -> None:
        index = tx.index(_FILE_RUN_INDEX if run.kind == COLLECT_FILES else _RUN_INDEX)
        run_id = tx.add_object(run)
        index.put(run.started.to_bytes(8, "big") + run_id.to_bytes(8, "big"), IndexValue(run_id))
        for key, _ in list(index.range(limit=max(len(index) - store.settings.runs_kept, 0))):
            index.remove(key)
        remove_old_reports(tx, lambda: {(run.task, run.attempt), *_with_tasks(store, tx.index(_RUN_INDEX))})

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
        head = read_head(store.system, RUNS, fresh=True)
    except NotFoundError:
        return ReadableRows()
    indexes = () if head is None else (head.index(_RUN_INDEX), head.index(_FILE_RUN_INDEX))
    entries = sorted((entry for index in indexes for entry in index.range()), key=itemgetter(0), reverse=True)
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

_ROWS = msgpack_decoder(list[ReportRow])


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
        self._store.system.ensure_reference(RUNS)
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
