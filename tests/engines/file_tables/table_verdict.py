"""What must be true of a file table after a storm, when only the committers still run."""

from __future__ import annotations

import dataclasses
import random
import time
from collections.abc import Iterator
from contextlib import closing

from role_processes import notes_in
from table_roles import RULES
from table_stage import DELAY_SECONDS, GRACE_SECONDS, ShiftedClock, TableStage, open_orders, use_crowded_storage
from table_watchers import rows_of_plan

from engines.model import (
    Fault,
    collected_folders_have_no_other_files,
    ended_jobs_hold_no_references,
    late_reads_alone_miss_files,
    queues_run_empty,
    references_of_a_file_do_not_overlap,
    tables_are_not_damaged,
    tables_have_whole_ingests,
)
from headwater.errors import CorruptionError, ExpiredError
from headwater.files import FileTable, RequestState, compact_table
from headwater.files.data_folder import DataFolder
from headwater.files.file_collection import FileCollector
from headwater.store import open_store
from headwater_workers.file_queue import open_request_queue

__all__ = ["faults_afterwards"]

DRAIN_SECONDS = 90.0
SHORT, PATIENT = 0.001, 600.0


def faults_afterwards(stage: TableStage) -> list[Fault]:
    """Let the queue run empty, end what was begun, collect twice, and compare everything. Hardly with delays and graces."""
    use_crowded_storage(random.Random(), share=0.0)
    faults = _drain(stage)
    settings = dataclasses.replace(stage.settings, files_writer_grace_seconds=PATIENT)
    with open_store(stage.url, settings=settings, clock=ShiftedClock(0.0)) as store, closing(open_orders(store)) as table:
        try:
            for find in _judge(stage, table):
                faults += find
        except CorruptionError as fault:
            faults += tables_are_not_damaged(fault)
        except ExpiredError as fault:
            faults += late_reads_alone_miss_files(0.0, DELAY_SECONDS, fault)
    return faults


def _judge(stage: TableStage, table: FileTable) -> Iterator[list[Fault]]:
    yield _faults_in_rows(stage, table, "after the storm")
    yield _faults_in_jobs(table)
    _end_jobs(table)
    yield _faults_in_rows(stage, table, "after the last compaction")
    time.sleep(GRACE_SECONDS)  # for files of the process whose clock is ahead
    for _ in range(2):
        _collect(stage)
    yield _faults_in_files(table)
    yield _faults_in_rows(stage, table, "after two collections")


def _drain(stage: TableStage) -> list[Fault]:
    queue = open_request_queue(stage.broker)
    until = time.monotonic() + DRAIN_SECONDS
    while queue.has_requests() and time.monotonic() < until:
        time.sleep(0.1)
    faults = queues_run_empty(queue.figures() if queue.has_requests() else "", queue.list_set_aside())
    queue.close()
    return faults


def _faults_in_rows(stage: TableStage, table: FileTable, when: str) -> list[Fault]:
    begun = sorted({note["ingest"] for note in notes_in(stage.folder) if note["what"] == "begun"})
    outcomes = table.references.find_outcomes(begun)
    applied = {ingest for ingest, outcome in outcomes.items() if outcome.state is RequestState.APPLIED}
    rows = rows_of_plan(table, table.plan_read())
    faults = tables_have_whole_ingests(rows, stage.rows_of, must=applied, may=applied)
    return [Fault.of(fault.promise, f"{when}: {fault}") for fault in faults]


def _faults_in_jobs(table: FileTable) -> list[Fault]:
    references = table.references.references()
    jobs = sorted({reference.job for reference in references if reference.job is not None})
    outcomes = {job: outcome.state for job, outcome in table.references.find_outcomes(jobs).items()}
    return ended_jobs_hold_no_references(references, outcomes)


def _end_jobs(table: FileTable) -> None:
    """Execute all jobs whose executors were killed, until none is left."""
    for _ in range(20):
        compact_table(table, RULES, lease_seconds=0.0)
        if all(reference.job is None for reference in table.references.references()):
            return


def _collect(stage: TableStage) -> None:
    """A store of its own: with so short a grace no compaction could be committed."""
    settings = dataclasses.replace(stage.settings, files_delete_delay_seconds=SHORT, files_writer_grace_seconds=SHORT)
    with open_store(stage.url, settings=settings, clock=ShiftedClock(0.0)) as store, closing(open_orders(store)) as table:
        FileCollector(store, table.references, DataFolder(table.definition.data_folder)).collect()


def _faults_in_files(table: FileTable) -> list[Fault]:
    references = table.references.references()
    stored = list(DataFolder(table.definition.data_folder).list_files())
    tracked = [file.filename for file in table.references.report(1_000_000).files]
    faults = collected_folders_have_no_other_files(stored, tracked, [each.filename for each in references])
    return faults + references_of_a_file_do_not_overlap(references)
