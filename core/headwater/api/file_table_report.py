"""The figures of one file table: what ``headwater file-table show`` tells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from headwater.clock import Micros
from headwater.files import FileReference, FileTable, FileTableDefinition, TrackedFile
from headwater.files.file_references import data_file_time
from headwater.jobs import COLLECT_FILES
from headwater.jobs.task_runs import list_runs
from headwater.store import Store
from headwater.tasks import TaskQueue

_EVERY = 1 << 62


@dataclass(frozen=True, slots=True)
class FileTableReport:
    """The figures of one file table, its references at one point in time.

    above         references of partitions that were split
    jobs          id, number of references, time of the first, of each job
    """

    realm: str
    definition: FileTableDefinition
    rows: int
    estimated: int
    files: int
    references: int
    leaves: int
    depth: int
    tree_number: int
    above: int
    partitions: list[dict[str, Any]]
    jobs: list[tuple[str, int, Micros | None]]
    unreferenced_files: int
    unreferenced: list[TrackedFile]
    oldest_file: Micros | None
    newest_file: Micros | None
    last_collection: Micros | None
    next_collection: Micros | None
    conflicts: Mapping[str, int]


def report_file_table(store: Store, table: FileTable, *, limit: int) -> FileTableReport:
    """Read the figures. ``limit`` is the most partitions, jobs and unreferenced files that are listed."""
    report = table.references.report(_EVERY)
    tree = table.read_tree()
    leaves = tree.leaf_ids()
    times = [time for file in report.referenced if (time := data_file_time(file.filename)) is not None]
    realm, name = table.rows.realm, table.definition.name
    runs = [run for run in list_runs(store, kind=COLLECT_FILES, realm=realm) if run.subject == name]
    waiting = [
        task.value
        for task in TaskQueue(store).list_tasks(kind=COLLECT_FILES, realm=realm)
        if task.value.subject == name and task.value.is_active
    ]
    return FileTableReport(
        realm=realm,
        definition=table.definition,
        rows=sum(reference.rows for reference in report.references),
        estimated=sum(reference.is_estimate for reference in report.references),
        files=len(report.referenced),
        references=len(report.references),
        leaves=len(leaves),
        depth=max(map(len, leaves)) - 1,
        tree_number=tree.number,
        above=sum(reference.partition in tree.splits for reference in report.references),
        partitions=_largest(report.references, limit),
        jobs=_jobs(report.references)[:limit],
        unreferenced_files=len(report.unreferenced),
        unreferenced=list(report.unreferenced[:limit]),
        oldest_file=min(times, default=None),
        newest_file=max(times, default=None),
        last_collection=max((run.finished for run in runs), default=None),
        next_collection=min((task.due for task in waiting), default=None),
        conflicts={name: count for name, count in table.references.counts().items() if name[:1].isdigit()},
    )


def _largest(references: Iterable[FileReference], limit: int) -> list[dict[str, Any]]:
    files, rows = Counter[str](), Counter[str]()
    for reference in references:
        files[reference.partition] += 1
        rows[reference.partition] += reference.rows
    largest = sorted(files, key=lambda partition: (-files[partition], partition))[:limit]
    return [{"partition": partition, "files": files[partition], "rows": rows[partition]} for partition in largest]


def _jobs(references: Iterable[FileReference]) -> list[tuple[str, int, Micros | None]]:
    """The jobs with references, the one that got its first reference the longest ago first."""
    held: dict[str, list[Micros]] = {}
    for reference in references:
        if reference.job is not None:
            held.setdefault(reference.job, []).append(reference.updated or Micros(0))
    jobs: list[tuple[str, int, Micros | None]] = [(job, len(times), min(times)) for job, times in held.items()]
    return sorted(jobs, key=lambda job: (job[2] or 0, job[0]))
