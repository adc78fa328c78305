"""Execute one task in this process: claim, heartbeats, body, end; and the table of bodies by kind.

A body finds out by itself what is done already, so that it can be run again after any interruption; calls ``claim.check`` before
each durable step; and reports progress. It knows nothing of Celery.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

import structlog
from billiard.exceptions import SoftTimeLimitExceeded

from headwater.errors import DamagedFileError, FencedError, HeadwaterError, NotFoundError, RefusedError, UnavailableError
from headwater.expiry import run_expiry
from headwater.extras import missing_extra
from headwater.fsck import run_fsck
from headwater.jobs import (
    COLLECT,
    COLLECT_FILES,
    EXPIRE_SNAPSHOTS,
    EXPORT,
    FSCK,
    IMPORT,
    LOAD,
    PURGE,
    PURGE_TABLE,
    REPORT_FILES,
    RESTORE,
    SPARK,
    run_collection,
    run_export,
    run_file_collection,
    run_file_report,
    run_import,
    run_load,
    run_purge,
    run_purge_table,
    run_restore,
)
from headwater.settings import duration_text
from headwater.store import ObjectId, Store, id_text
from headwater.tasks import LeaseEvidence, LeaseVerdict, TaskLease, TaskNotReadyError, TaskQueue, TaskStoppedError
from headwater_workers.pipeline import SparkFileEngine, SparkSurvey

log = structlog.get_logger(__name__)


class TaskBody(Protocol):
    def __call__(self, store: Store, claim: TaskLease, /) -> dict[str, Any]:
        """Do the claimed task; returns its outcome.

        raises        RefusedError and NotFoundError: it can never be done · FencedError and StoppedError, from ``claim.check`` ·
                      TaskNotReadyError: it waits, without a failure · anything else: it is retried later
        """
        ...


def import_tables_body(store: Store, claim: TaskLease) -> dict[str, Any]:
    """Survey the Iceberg tables below some locations, on Spark where that is worth it, and put them into a catalog."""
    survey = SparkSurvey(store.settings, is_spark_wanted=claim.task.arguments.get("engine") == SPARK)
    log.info("survey starts")
    outcome = run_import(store, claim, survey=survey)
    log.info("survey ended", engine=survey.name)
    return outcome


def report_files_body(store: Store, claim: TaskLease) -> dict[str, Any]:
    """Report the files of a catalog that nobody refers to, on Spark where that is worth it."""
    return run_file_report(store, claim, engine=SparkFileEngine(store.settings, progress=claim.report_progress))


TASK_BODIES: Mapping[str, TaskBody] = {
    COLLECT: run_collection,
    COLLECT_FILES: run_file_collection,
    EXPIRE_SNAPSHOTS: run_expiry,
    EXPORT: run_export,
    FSCK: run_fsck,
    IMPORT: import_tables_body,
    LOAD: run_load,
    PURGE: run_purge,
    PURGE_TABLE: run_purge_table,
    REPORT_FILES: report_files_body,
    RESTORE: run_restore,
}


PROGRESS_SECONDS = 1.0
"""Changed progress is published this often, although the lease alone would need fewer heartbeats."""
STOP_SECONDS = 0.2
"""How often a running task checks whether its worker stops."""
TAKEN_OVER = "task was taken over: nothing more is done here"


def execute_task(
    store: Store,
    task_id: ObjectId,
    evidence: LeaseEvidence,
    *,
    owner: str,
    is_stopping: Callable[[], bool],
    kinds: Mapping[str, TaskBody] = TASK_BODIES,
) -> None:
    """Do a task if it can be claimed. Its end is recorded in the task object; its failure is not raised.

    owner         the worker's name, for people
    is_stopping   whether the worker wants to end: then the task is handed back at its next check
    """
    tasks = TaskQueue(store)
    try:
        kind = tasks.read_task(task_id).value.kind
        if kind not in kinds:
            log.info("task is of a kind that this worker does not know", task=id_text(task_id), kind=kind)
            return
        claim = tasks.claim_task(task_id, owner, evidence)
    except HeadwaterError as error:
        log.warning("task could not be claimed", task=id_text(task_id), error=str(error))
        return
    if claim is None:
        return
    task = claim.task
    bound = {"task": id_text(task_id), "kind": kind, "realm": task.realm, "attempt": claim.attempt}
    if task.subject:
        bound["subject"] = task.subject
    if "catalog" in task.arguments:
        bound["catalog"] = task.arguments["catalog"]
    with structlog.contextvars.bound_contextvars(**bound), _heartbeats(store, claim, is_stopping):
        log.info("task started")
        _attempt(store, claim, kinds[kind])


def _attempt(store: Store, claim: TaskLease, body: TaskBody) -> None:
    started = store.clock.monotonic()
    try:
        outcome = body(store, claim)
    except FencedError as fenced:
        log.warning(TAKEN_OVER, reason=str(fenced))
    except TaskStoppedError:
        _end(claim.end_stopped, "task stopped", reason=claim.stop_reason)
    except TaskNotReadyError as not_yet:
        reason, seconds = str(not_yet), not_yet.seconds
        level = logging.INFO if not_yet.is_expected else logging.WARNING
        _end(lambda: claim.put_off(reason, seconds), "task put off", level=level, reason=reason)
    except SoftTimeLimitExceeded:  # there was no check for long
        error = _too_long(store)
        _end(lambda: claim.fail_task(error), "task failed", error=error)
    except (RefusedError, NotFoundError, DamagedFileError) as refused:
        error = str(refused)
        _end(lambda: claim.fail_task(error, retry=False), "task failed, and no retry can help", error=error)
    except UnavailableError as fault:
        if claim.stop_reason:  # what the work used ends with it, such as a JVM that got the same signal
            _end(claim.end_stopped, "task stopped", reason=claim.stop_reason, error=str(fault))
        else:
            error = str(fault)
            _end(lambda: claim.fail_task(error), "task failed", error=error)
    except Exception as fault:  # noqa: BLE001 - the door: whatever a body dies of is written into its task, and tried again later
        known = missing_extra(fault) if isinstance(fault, ModuleNotFoundError) else fault
        error = str(known) if isinstance(known, HeadwaterError) else f"{type(fault).__name__}: {fault}"
        _end(lambda: claim.fail_task(error), "task failed", error=error, exc_info=not isinstance(known, HeadwaterError))
    else:
        _finish(claim, outcome, seconds=round(store.clock.monotonic() - started, 1))


def _finish(claim: TaskLease, outcome: dict[str, Any], *, seconds: float) -> None:
    """Record the end of the work; an outcome that no task can carry is a failure. Where the end cannot be written, the lease expires."""
    try:
        claim.finish_task(outcome)
    except RefusedError as refused:
        error = str(refused)
        _end(lambda: claim.fail_task(error, retry=False), "task failed, and no retry can help", error=error)
    except FencedError as fenced:
        log.warning(TAKEN_OVER, reason=str(fenced))
    except HeadwaterError as fault:
        log.warning(
            "the end of the task could not be written: its lease will end", event_lost="task finished", error=str(fault)
        )
    else:
        log.info("task finished", seconds=seconds, **_numbers(outcome))


def _too_long(store: Store) -> str:
    return f"it ran longer than the time limit of {duration_text(store.settings.task_time_limit_seconds)}"


def _end(step: Callable[[], None], event: str, *, level: int = logging.WARNING, **values: Any) -> None:
    try:
        step()
    except FencedError as fenced:
        log.warning(TAKEN_OVER, reason=str(fenced))
    except HeadwaterError as error:
        log.warning("the end of the task could not be written: its lease will end", event_lost=event, error=str(error))
    else:
        log.log(level, event, **values)


def _numbers(outcome: dict[str, Any]) -> dict[str, Any]:
    return {
        name: value for name, value in outcome.items() if isinstance(value, int) and name not in ("task", "kind", "attempt")
    }


@contextmanager
def _heartbeats(store: Store, claim: TaskLease, is_stopping: Callable[[], bool]) -> Iterator[None]:
    done = threading.Event()
    thread = threading.Thread(target=_beat, args=(store, claim, is_stopping, done), name="heartbeat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _beat(store: Store, claim: TaskLease, is_stopping: Callable[[], bool], done: threading.Event) -> None:
    last, shown = store.clock.monotonic(), claim.progress
    ends = last + store.settings.task_time_limit_seconds
    while not done.wait(STOP_SECONDS):
        if is_stopping():
            claim.request_stop("its worker stops")
        if store.clock.monotonic() >= ends:
            claim.request_stop(_too_long(store), is_overdue=True)
        waited = store.clock.monotonic() - last
        news = claim.progress != shown and waited >= PROGRESS_SECONDS
        if not news and waited < store.settings.task_heartbeat_seconds:
            continue
        last, shown = store.clock.monotonic(), claim.progress
        try:
            if claim.heartbeat() is LeaseVerdict.LOST:
                return  # the work learns it by its next check
        except HeadwaterError as error:
            log.warning("no heartbeat", task=id_text(claim.id), error=str(error))
