"""The job of the kind `file-gc`: the collection of one file table's files, or the rest of its deletion, and its schedule.

A file table always has one such task waiting. Most of the time there is nothing to collect; then the task is put off and stays the same,
instead of leaving an entry in the history for every quarter of an hour.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import structlog

from headwater.clock import Micros
from headwater.errors import HeadwaterError, NotFoundError
from headwater.files import (
    FileScope,
    FileTable,
    FileTableClosedError,
    FileTableDefinition,
    FileTableState,
    find_file_table,
    list_file_tables,
)
from headwater.files.data_folder import DataFolder
from headwater.files.file_collection import CollectedFiles, FileCollector
from headwater.files.open_references import open_file_references
from headwater.jobs.task_runs import COLLECT_FILES, open_active_realm, run_recorded
from headwater.purge import FileTablePurge
from headwater.realms import Realm, RealmRegistry, RealmState
from headwater.store import DoubtfulClockError, Store
from headwater.tasks import SubmittedTask, TaskLease, TaskNotReadyError, TaskQueue
from headwater.throttle import ProgressCallback, no_progress

_log = structlog.get_logger()
_CLOCK_LOOK_SECONDS = 3600.0
_WITH_FILES = (RealmState.LOADING, RealmState.ACTIVE, RealmState.INACTIVE)


def run_file_collection(store: Store, claim: TaskLease, *, is_idle_recorded: bool = False) -> dict[str, Any]:
    """Collect the files of the file table that the task's subject names.

    is_idle_recorded  whether to end the task, and to record a run, even if nothing was done
    raises        TaskNotReadyError while the clock is doubtful or the realm INACTIVE, and until the next time if nothing was done
    """
    rows = open_active_realm(store, claim.task)
    definition = find_file_table(rows, name=claim.task.subject) or find_file_table(rows, table_id=claim.task.subject)
    if definition is not None and definition.state is FileTableState.DELETING:
        purge = FileTablePurge(store, rows, fence=claim.check_stop, progress=claim.report_progress)
        return run_recorded(store, claim, lambda: purge.finish_deletions().as_plain(), so_far=purge.result.as_plain)
    if definition is None or definition.state is not FileTableState.ACTIVE:
        return _left_alone(claim.task.subject, definition)
    scope = FileScope(rows.key, definition.id)
    with closing(open_file_references(store, scope)) as references:
        collector = FileCollector(
            store,
            references,
            DataFolder(definition.data_folder),
            neighbors=list(neighbors_of(store, scope)),
            fence=claim.check_stop,
            progress=claim.report_progress,
        )

        def work() -> dict[str, Any]:
            try:
                collected = collector.collect()
            except DoubtfulClockError as doubt:
                left = (doubt.until - store.clock.now()) / 1_000_000
                raise TaskNotReadyError(str(doubt), seconds=min(max(left, 1.0), _CLOCK_LOOK_SECONDS)) from doubt
            except (FileTableClosedError, NotFoundError):
                current = find_file_table(rows, table_id=definition.id)
                if current is not None and current.state is FileTableState.ACTIVE:
                    raise
                return _left_alone(definition.name, current)  # it was deleted meanwhile
            if collected.is_idle and not is_idle_recorded:
                reason = "; ".join(["there was nothing to collect", *collected.notes])
                seconds = store.settings.files_collect_seconds
                raise TaskNotReadyError(reason, seconds=seconds, is_expected=not collected.notes)
            return collected.as_plain()

        return run_recorded(store, claim, work, so_far=collector.result.as_plain)


def plan_file_collection(store: Store, table: FileTable, *, progress: ProgressCallback = no_progress) -> CollectedFiles:
    """What a collection would do now; nothing is changed."""
    folder, neighbors = DataFolder(table.definition.data_folder), list(neighbors_of(store, table.scope))
    return FileCollector(store, table.references, folder, neighbors=neighbors, progress=progress).plan()


def _left_alone(name: str, definition: FileTableDefinition | None) -> dict[str, Any]:
    why = "there is no such file table any more" if definition is None else f"the file table is {definition.state}"
    return CollectedFiles(notes=[f"{name}: {why}: nothing was collected"]).as_plain()


def neighbors_of(store: Store, scope: FileScope) -> Iterator[str]:
    """The locations of all other file tables of the store, in whatever realm and state: a realm that was loaded from an archive has
    tables of the same ids, at the locations of another one.

    raises        CorruptionError when a realm or a table cannot be read: it may share a folder
    """
    for realm in RealmRegistry(store).list_realms().complete():
        if realm.state in _WITH_FILES:
            for other in list_file_tables(store.rows(realm.id, realm.key), with_deleted=True).complete():
                if FileScope(realm.key, other.id) != scope:
                    yield other.location


def submit_file_collection(store: Store, realm: Realm, table: str, *, due: Micros | None = None) -> SubmittedTask:
    """Ask for a collection of a table's files, unless one is asked for already."""
    return TaskQueue(store).submit_task(COLLECT_FILES, realm=realm.id, realm_key=realm.key, subject=table, due=due)


def schedule_file_collections(store: Store) -> int:
    """Keep one collection waiting for every file table that may be written to, or is being deleted. Returns how many there are.

    A realm whose maintenance is suspended gets no new ones, and one that cannot be read keeps no other from its own.
    """
    tables = 0
    for realm in RealmRegistry(store).list_realms():
        if realm.state is RealmState.ACTIVE and not realm.maintenance.suspend:
            try:
                tables += _schedule_realm(store, realm)
            except HeadwaterError as fault:
                _log.warning("collections of files could not be scheduled", realm=realm.id, fault=str(fault))
    return tables


def _schedule_realm(store: Store, realm: Realm) -> int:
    tables = 0
    due = Micros(store.clock.now() + round(store.settings.files_collect_seconds * 1_000_000))
    for definition in list_file_tables(store.rows(realm.id, realm.key), with_deleted=True):
        if definition.state in (FileTableState.ACTIVE, FileTableState.DELETING):
            is_named = definition.state is FileTableState.ACTIVE  # another table may have the name of a deleted one
            submit_file_collection(store, realm, definition.name if is_named else definition.id, due=due)
            tables += 1
    return tables
