"""A table of sorted Parquet files that the store keeps track of: rows go in and come out, and files that nobody refers to go."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from headwater.api.api_values import several, told_time
from headwater.api.file_table_export import export_file_table
from headwater.api.file_table_report import FileTableReport, report_file_table
from headwater.api.file_table_rows import load_file_work, read_parquet_rows
from headwater.api.locations import folder_location
from headwater.api.plain_counts import plain_counts
from headwater.api.spark_access import FILE_TABLE, load_spark
from headwater.api.store_session import StoreSession
from headwater.api.task_client import run_or_leave
from headwater.api.work_progress import Observe, WorkProgress
from headwater.clock import as_datetime
from headwater.errors import RefusedError
from headwater.files import FileTable, RowKeyRange, open_file_table
from headwater.files.compaction import CompactionRules, CompactionStrategy, compact_table
from headwater.files.data_folder import DataFolder
from headwater.files.file_adoption import adopt_table
from headwater.files.file_collection import explain_file
from headwater.files.ingestion import ingest_rows
from headwater.files.leaf_splits import plan_splits, split_large_leaves
from headwater.files.open_references import open_file_references
from headwater.files.row_query import query_rows
from headwater.jobs import COLLECT_FILES, plan_file_collection, run_file_collection, submit_file_collection
from headwater.purge.file_table_purge import FileTablePurge
from headwater.settings import check_count
from headwater.tasks import TaskQueue

if TYPE_CHECKING:
    import pyarrow as pa

_ALL = 1 << 31


@dataclass(frozen=True, slots=True, kw_only=True)
class FileTableInfo:
    """A file table as it was when it was read.

    state         CREATING, ACTIVE, READ_ONLY or DELETING
    columns       names with types by Spark's names
    rows          by its references; an estimate while leaves that were split wait for a compaction
    files         with references; ``references`` are those of partitions to files, of which ``estimated`` have rows that are estimates, and
                  ``above`` belong to partitions that were split: several leaves read their files
    leaves        partitions that take new rows; ``depth`` is the number of splits between the root and the deepest one,
                  ``tree_number`` that of the newest change of the tree
    oldest_file, newest_file  when those of its files with references were written, by their names
    partitions    files of each partition, by the partition's path from the root ``r``
    jobs          ids of compaction jobs that files are assigned to
    unreferenced_files  files that a collection deletes in time; ``unreferenced`` names them
    """

    realm: str
    name: str
    id: str
    state: str
    created: datetime
    location: str
    columns: Mapping[str, str]
    key: str
    sort: tuple[str, ...]
    rows: int
    files: int
    references: int
    estimated: int
    above: int
    leaves: int
    depth: int
    tree_number: int
    oldest_file: datetime | None
    newest_file: datetime | None
    partitions: Mapping[str, int]
    jobs: tuple[str, ...]
    unreferenced_files: int
    unreferenced: tuple[str, ...]
    last_collection: datetime | None
    next_collection: datetime | None

    @classmethod
    def of(cls, report: FileTableReport) -> FileTableInfo:
        """The values of a report."""
        definition = report.definition
        return cls(
            realm=report.realm,
            name=definition.name,
            id=definition.id,
            state=definition.state.value,
            created=as_datetime(definition.created),
            location=definition.location,
            columns={column.name: column.type for column in definition.columns},
            key=definition.key_column,
            sort=definition.sort_columns,
            rows=report.rows,
            files=report.files,
            references=report.references,
            estimated=report.estimated,
            above=report.above,
            leaves=report.leaves,
            depth=report.depth,
            tree_number=report.tree_number,
            oldest_file=told_time(report.oldest_file),
            newest_file=told_time(report.newest_file),
            partitions={each["partition"]: each["files"] for each in report.partitions},
            jobs=tuple(job for job, _, _ in report.jobs),
            unreferenced_files=report.unreferenced_files,
            unreferenced=tuple(file.filename for file in report.unreferenced),
            last_collection=told_time(report.last_collection),
            next_collection=told_time(report.next_collection),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFileInfo:
    """Why a file of a file table is there, and when it may go.

    state         referenced, unreferenced, marked, stray, young, unknown name, or missing
    goes          the first time at which a collection may delete it; None: not known
    """

    file: str
    state: str
    why: str
    partitions: tuple[str, ...]
    since: datetime | None
    goes: datetime | None


class FileTableClient:
    """A file table of a realm. Nothing is read before a method is called. Rows need ``pip install 'headwater[lake]'``."""

    def __init__(self, session: StoreSession, realm: str, name: str) -> None:
        self._session = session
        self.realm = realm
        self.name = name

    def ingest(self, rows: Iterable[pa.Table | pa.RecordBatch], *, request: str = "") -> int:
        """Add rows in any order, all or none; returns how many files were written.

        rows          with the columns of the table by name; a missing one is null
        request       a name for this ingest: the same one, asked for again, does nothing
        raises        RefusedError for a row without a key, or that does not fit
        """
        with self._opened() as table:
            return len(ingest_rows(table, rows, request=request))

    def query(self, *, key: Any = None, low: Any = None, high: Any = None, columns: str | Iterable[str] = ()) -> pa.Table:
        """The rows of a key, or from a key on and below another, sorted, as of one moment; without them, all.

        columns       only these; none: all
        """
        if key is not None and (low is not None or high is not None):
            raise RefusedError("key names one key: leave low and high out")
        with self._opened() as table:
            encode = table.definition.key_type.encode_key
            if key is not None:
                chosen = RowKeyRange(encode(key), encode(key) + b"\0")
            else:
                chosen = RowKeyRange(None if low is None else encode(low), None if high is None else encode(high))
            return query_rows(table, chosen, columns=several(columns))

    def info(self) -> FileTableInfo:
        """Read everything about it, as of one moment; raises NotFoundError."""
        with self._opened() as table:
            return FileTableInfo.of(report_file_table(self._session.store, table, limit=_ALL))

    def ingest_files(self, *files: str, request: str = "", on_spark: bool = False) -> None:
        """Add the rows of Parquet files, all or none.

        files         URLs or paths
        request       a name for this ingest: the same one, asked for again, does nothing
        on_spark      with the master of the settings; needs ``pip install 'headwater[spark]'``
        """
        locations = [folder_location(file) for file in files]
        if on_spark:
            work = load_file_work(self._session.store.settings)
            work.ingest_files(self.realm, self.name, locations, request=request)
            return
        with self._opened() as table:
            ingest_rows(table, read_parquet_rows(locations), request=request)

    def split(self, *, leaf_rows: int | None = None, dry_run: bool = False) -> Mapping[str, int]:
        """Split leaves with more rows than this at keys that divide them evenly; no file is rewritten.

        leaf_rows     None: as the settings say
        returns       by the path of each large leaf from the root ``r``: its rows, about
        """
        rows = self._session.store.settings.files_leaf_rows if leaf_rows is None else leaf_rows
        if rows < 1:
            raise RefusedError(f"leaf_rows={rows}: a leaf has one row at least")
        with self._opened() as table:
            plan = plan_splits(table, leaf_rows=rows) if dry_run else split_large_leaves(table, leaf_rows=rows)[0]
            return {str(leaf): count for leaf, count in plan.rows.items()}

    def compact(
        self,
        *,
        strategy: Literal["size-ratio", "batch", "all"] = "size-ratio",
        batch: int | None = None,
        on_spark: bool = False,
        progress: Observe | None = None,
    ) -> Mapping[str, int]:
        """Merge files of each leaf into one. Files that were merged are deleted by a later collection.

        strategy      which files of a leaf: those of similar size, the smallest in full batches, or all
        batch         files of one job, at most, and two at least; None: as the settings say
        on_spark      with the master of the settings; needs ``pip install 'headwater[spark]'``
        returns       how many jobs were applied, refused and failed, and how many rows they wrote
        """
        settings = self._session.store.settings
        if strategy not in list(CompactionStrategy):
            raise RefusedError(f"{strategy!r} is no strategy of compaction: it is one of {', '.join(CompactionStrategy)}")
        check_count(batch, "batch", least=2)
        rules = CompactionRules(
            strategy=CompactionStrategy(strategy), batch=settings.files_compaction_batch if batch is None else batch
        )
        told = self._told(progress, "compact-files")
        with self._opened() as table:
            table.check_writable()
            if not on_spark:
                seconds = settings.files_compaction_lease_seconds
                observe = partial(_tell_jobs, told)
                report = compact_table(table, rules, lease_seconds=seconds, observe=observe)
        if on_spark:
            report = load_file_work(settings).compact_table(self.realm, self.name, rules)
        counts = {"applied": len(report.applied), "refused": len(report.refused), "failed": len(report.failed)}
        return {**counts, "rows": report.rows}

    def explain(self, file: str) -> TableFileInfo:
        """Who refers to a file, or since when nobody does, and when it may go; raises NotFoundError.

        file          its location, or its name alone
        """
        with self._opened() as table:
            told = explain_file(self._session.store, table.references, DataFolder(table.definition.data_folder), file)
        return TableFileInfo(
            file=told.filename,
            state=told.state,
            why=told.sentence,
            partitions=tuple(reference.partition for reference in told.references),
            since=told_time(told.since),
            goes=told_time(told.goes),
        )

    def export(self, file: str | Path) -> int:
        """Write all references of one moment, and the partition tree, to a file, and return how many references it has.

        file          ends in .jsonl or .parquet; a file of that name is replaced. The rows of the table are not exported
        """
        target = Path(file)
        if target.suffix not in (".jsonl", ".parquet"):
            raise RefusedError(f"{str(file)[:200]!r} ends neither in .jsonl nor in .parquet")
        with self._opened() as table:
            return export_file_table(table, target)

    def on_spark(self, spark: Any) -> Any:
        """The table for a Spark session: ``ingest(rows, request=...)``, ``select_rows(first=..., below=...)``, ``compact()``.

        spark         a SparkSession; needs ``pip install 'headwater[spark]'``, also in the executors' Python
        """
        return load_spark(FILE_TABLE)(spark, realm=self.realm, name=self.name, url=self._session.url)

    def collect(self, *, dry_run: bool = False, detach: bool = False, progress: Observe | None = None) -> Mapping[str, Any]:
        """Mark files that nobody refers to, and delete those that were marked longer ago than the delay.

        detach        leave it to a worker: the result has the task's id alone, as ``task``
        returns       counts as `headwater file-table collect -o json` prints them
        """
        session = self._session
        if dry_run and detach:
            raise RefusedError("a dry run is done here: leave detach out")
        with self._opened() as table:
            if dry_run:
                told = self._told(progress, COLLECT_FILES)
                return plain_counts(plan_file_collection(session.store, table, progress=told.callback))
            table.check_writable()
            submitted = submit_file_collection(session.store, session.realms.read_realm(self.realm), self.name)
            if detach:
                TaskQueue(session.store).run_now(submitted.id)
            body = partial(run_file_collection, is_idle_recorded=True)
            return run_or_leave(session, submitted.id, body, detach=detach, progress=progress)

    def adopt(self, location: str, *, progress: Observe | None = None) -> Mapping[str, Any]:
        """Copy the files of an imported, read-only table into a folder of its own below a location, and make it writable.

        After an interruption, the same call goes on.
        """
        rows, told = self._session.open_rows(self.realm), self._told(progress, "adopt-files")
        store, place = self._session.store, folder_location(location)
        return plain_counts(adopt_table(store, rows, self.name, location=place, progress=told.callback))

    def delete(self, *, confirm: str, progress: Observe | None = None) -> Mapping[str, Any]:
        """Delete the table with all its files. There is no way back.

        confirm       REALM/TABLE, repeated; raises RefusedError for anything else
        """
        wanted = f"{self.realm}/{self.name}"
        if confirm != wanted:
            raise RefusedError(f"nothing was deleted: confirm={confirm[:200]!r} does not repeat {wanted!r}")
        told = self._told(progress, "delete-files")
        purge = FileTablePurge(self._session.store, self._session.open_rows(self.realm), progress=told.callback)
        return plain_counts(purge.delete_table(self.name))

    def _told(self, progress: Observe | None, kind: str) -> WorkProgress:
        return WorkProgress(progress, kind=kind, realm=self.realm, subject=self.name)

    @contextmanager
    def _opened(self) -> Iterator[FileTable]:
        rows = self._session.open_rows(self.realm)
        with open_file_table(rows, self.name, partial(open_file_references, self._session.store)) as table:
            yield table

    def __repr__(self) -> str:
        return f"FileTableClient({self.realm}/{self.name})"


def _tell_jobs(told: WorkProgress, done: int, total: int) -> None:
    told.callback(done, total, "jobs")
