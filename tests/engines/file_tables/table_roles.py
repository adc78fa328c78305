"""What the processes of a storm do to their table: ingest, compact, split, collect, and commit what was queued."""

from __future__ import annotations

import os
from collections.abc import Iterable

import pyarrow as pa
from role_processes import RolePlayer
from table_ledger import IngestLedger
from table_stage import schema_of

from engines.model import queues_run_empty
from headwater.files import (
    AddFiles,
    CompactionRules,
    CompactionStrategy,
    FileRequest,
    FileTable,
    LeafFileWriter,
    LeafLimits,
    OutputNames,
    RequestState,
    compact_table,
    delete_data_file,
    execute_job,
    ingest_rows,
    open_file_references,
    prepare_jobs,
    split_large_leaves,
    wait_for_outcomes,
)
from headwater.files.data_folder import DataFolder
from headwater.files.file_collection import FileCollector
from headwater_workers.file_queue import QueuedRequestSender, open_request_queue, serve_committers

__all__ = ["LEASE_SECONDS", "collect", "commit", "compact", "ingest", "split"]

LEASE_SECONDS = 1.5
"""After so long, a compaction is executed by somebody else."""
LEAF_ROWS = 250
MOST_LEAVES = 48
RULES = CompactionRules(strategy=CompactionStrategy.ALL, batch=5)
OUTCOME_SECONDS = 5.0


def ingest(player: RolePlayer) -> None:
    """Ingest after ingest, each under a name that is written down before; those whose end is not known are done again."""
    store, table = player.open_table()
    sender = QueuedRequestSender(open_request_queue(player.stage.broker))
    own = IngestLedger(player.stage.folder)
    own.read_on()
    unclear = sorted(name for name in own.begun - own.done if name.startswith(f"{player.name}."))
    number = 0
    while player.goes_on(pause_seconds=0.3):
        number += 1
        name = unclear.pop() if unclear and player.chance.random() < 0.5 else f"{player.name}.{player.life}.{number}"
        player.note("begun", ingest=name)
        with player.trying("ingest"):
            if player.chance.random() < 0.7:
                ingest_rows(table, player.stage.tables_of(name), request=name, run_bytes=1)
                player.note("done", ingest=name)
            elif _ingest_later(player, table, sender, name):
                player.note("done", ingest=name)
    store.close()


def _ingest_later(player: RolePlayer, table: FileTable, sender: QueuedRequestSender, name: str) -> bool:
    """Write files, and let the queue track them, perhaps told twice. Returns whether it is known to have done so."""
    schema = schema_of(table)
    names = OutputNames(table.definition.location, table.rows.new_id(), "q")
    with LeafFileWriter(schema, LeafLimits.of(table.read_tree()), names) as writer:
        writer.write_rows(schema.sort_rows(schema.conform(pa.concat_tables(player.stage.tables_of(name)))))
        files = writer.finish()
    request = AddFiles(files=tuple(files), request=name)
    return RequestState.APPLIED in _send(player, table, sender, [request]).values()


def _send(
    player: RolePlayer, table: FileTable, sender: QueuedRequestSender, requests: Iterable[FileRequest]
) -> dict[str, RequestState]:
    requests = list(requests)
    for _ in range(1 + (player.chance.random() < 0.3)):
        sender.send_requests(table.scope, requests)
    waited = wait_for_outcomes(table.references, table.scope, requests, sender=sender, timeout_seconds=OUTCOME_SECONDS)
    player.note_faults("queue", queues_run_empty("", waited.set_aside.items()))
    return {request: outcome.state for request, outcome in waited.outcomes.items()}


def compact(player: RolePlayer) -> None:
    """Compact whatever there is; commit at once, or let the queue do it."""
    store, table = player.open_table()
    sender = QueuedRequestSender(open_request_queue(player.stage.broker))
    while player.goes_on(pause_seconds=0.4):
        with player.trying("compact"):
            if player.chance.random() < 0.5:
                report = compact_table(table, RULES, lease_seconds=LEASE_SECONDS, limit=10)
                player.note("compacted", applied=len(report.applied), refused=report.refused, failed=report.failed)
            else:
                _compact_later(player, table, sender)
    store.close()


def _compact_later(player: RolePlayer, table: FileTable, sender: QueuedRequestSender) -> None:
    schema, commits = schema_of(table), []
    for job in prepare_jobs(table, RULES, lease_seconds=LEASE_SECONDS, limit=10):
        with player.trying("execute a job"):
            commits.append(execute_job(schema, job, location=table.definition.location, file_id=table.rows.new_id()))
    states = _send(player, table, sender, commits)
    for each in commits:
        if states.get(each.job) is RequestState.REFUSED:
            delete_data_file(each.output.filename)
    applied = sum(state is RequestState.APPLIED for state in states.values())
    player.note("compacted", applied=applied, refused=len(states) - applied, failed=0)


def split(player: RolePlayer) -> None:
    """Split what is large, and move references down."""
    store, table = player.open_table()
    while player.goes_on(pause_seconds=0.5):
        with player.trying("split"):
            leaves = len(table.read_tree().leaf_ids())
            if leaves < MOST_LEAVES:
                plan, _ = split_large_leaves(table, leaf_rows=LEAF_ROWS)
                player.note("split", points=len(plan.points))
            else:
                player.note("moved", references=table.push_down_references())
    store.close()


def collect(player: RolePlayer) -> None:
    """Collect, again and again, beside another one that does the same."""
    store, table = player.open_table()
    while player.goes_on(pause_seconds=0.4):
        with player.trying("collect"):
            folder = DataFolder(table.definition.data_folder)
            collected = FileCollector(store, table.references, folder).collect()
            player.note("collected", deleted=collected.deleted, marked=collected.marked, strays=collected.strays)
    store.close()


def commit(player: RolePlayer) -> None:
    """The committers of the queue."""
    stage = player.stage
    store, _ = player.open_table()  # waits for a database that is away
    store.close()
    code = serve_committers(stage.settings, stage.broker, open_file_references, parent=os.getppid(), lease_seconds=1.0)
    player.note("committer ended", code=code)
