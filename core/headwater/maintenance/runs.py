"""The record of every execution, in the system realm, newest kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from headwater.clock import Micros, as_text
from headwater.commits import Transaction, commit_change, ensure_reference, read_head
from headwater.errors import MissingError, UnreadableError
from headwater.index import Index, Value
from headwater.maintenance.garbage.listing import RUNS
from headwater.maintenance.reports import forget_reports
from headwater.quantities import check_count
from headwater.store import ObjectId, ReadableRows, Store, StoredObject, UnreadableRow, object_type

__all__ = ["Run", "list_runs", "record_run"]

_INDEX = "runs"


@object_type("run")
class Run(StoredObject, frozen=True, kw_only=True):
    """One execution of a collection, a purge or an import: what it counted, and how it ended.

    counts        plain numbers by name; what they mean stands where they are made
    error         empty when it did what it was for
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
    """Keep a record; the oldest ones beyond ``runs_kept`` leave.

    raises        what the fence raises
    """
    ensure_reference(store.system, RUNS)

    def change(tx: Transaction) -> None:
        index = tx.index(_INDEX)
        run_id = tx.add_object(run)
        index.put(run.started.to_bytes(8, "big") + run_id.to_bytes(8, "big"), Value(run_id))
        for key, _ in list(index.range(limit=max(len(index) - store.settings.runs_kept, 0))):
            index.remove(key)
        forget_reports(tx, lambda: {(run.task, run.attempt), *_with_tasks(store, index)})

    commit_change(store.system, RUNS, change, message=f"record a {run.kind} of {run.realm}", fence=fence)


def _with_tasks(store: Store, index: Index) -> Iterator[tuple[ObjectId | None, int]]:
    """Task and attempt of the runs that were recorded before, as far as they can be read: reports stay for another week anyway."""
    ids = [value.object_id for _, value in index.range() if value.object_id is not None]
    yield from ((run.task, run.attempt) for run in store.system.read_each(ids, Run) if isinstance(run, Run))


def list_runs(
    store: Store, *, kind: str | None = None, realm: str | None = None, limit: int | None = None
) -> ReadableRows[Run]:
    """The records, newest first."""
    check_count(limit, "runs of a list")
    try:
        found = read_head(store.system, RUNS, fresh=True)
    except MissingError:
        return ReadableRows()
    entries = [] if found is None else list(found.index(_INDEX).range(reverse=True))
    started = {value.object_id: _start_of(key) for key, value in entries if value.object_id is not None}
    runs = dict(zip(started, store.system.read_each(list(started), Run), strict=True))
    chosen = [run for run in runs.values() if isinstance(run, Run) and kind in (None, run.kind) and realm in (None, run.realm)]
    broken = {run_id: fault for run_id, fault in runs.items() if isinstance(fault, UnreadableError)}
    return ReadableRows(
        chosen[:limit],
        (
            UnreadableRow(what="run", id=run_id, name=f"of {as_text(started[run_id])}", realm="", fault=str(fault))
            for run_id, fault in broken.items()
        ),
    )


def _start_of(key: bytes) -> Micros:
    return Micros(int.from_bytes(key[:8], "big"))
