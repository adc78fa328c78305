"""A table of sorted Parquet files that the store keeps track of: rows go in and come out, and files that nobody refers to go."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from headwater.api.locations import folder_location
from headwater.api.plain_counts import plain_counts
from headwater.api.store_session import StoreSession
from headwater.api.task_client import Observe, run_here
from headwater.errors import RefusedError
from headwater.files import FileTable, RowKeyRange, open_file_table
from headwater.files.compaction import CompactionRules, CompactionStrategy, compact_table
from headwater.files.file_adoption import adopt_table
from headwater.files.ingestion import ingest_rows
from headwater.files.open_references import open_file_references
from headwater.files.row_query import query_rows
from headwater.jobs import plan_file_collection, run_file_collection, submit_file_collection
from headwater.purge.file_table_purge import FileTablePurge

if TYPE_CHECKING:
    import pyarrow as pa


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

    def query(self, *, key: Any = None, low: Any = None, high: Any = None, columns: Iterable[str] = ()) -> pa.Table:
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
            return query_rows(table, chosen, columns=tuple(columns))

    def compact(self, *, strategy: str = CompactionStrategy.SIZE_RATIO.value) -> Mapping[str, int]:
        """Merge files of each leaf into one; returns how many jobs were applied, refused and failed."""
        settings = self._session.store.settings
        rules = CompactionRules(strategy=CompactionStrategy(strategy), batch=settings.files_compaction_batch)
        with self._opened() as table:
            table.check_writable()
            report = compact_table(table, rules, lease_seconds=settings.files_compaction_lease_seconds)
        return {"applied": len(report.applied), "refused": len(report.refused), "failed": len(report.failed)}

    def collect(self, *, dry_run: bool = False, progress: Observe | None = None) -> Mapping[str, Any]:
        """Mark files that nobody refers to, and delete those that were marked longer ago than the delay.

        returns       counts as `headwater file-table collect -o json` prints them
        """
        session = self._session
        with self._opened() as table:
            if dry_run:
                return plain_counts(plan_file_collection(session.store, table))
            table.check_writable()
            submitted = submit_file_collection(session.store, session.realms.read_realm(self.realm), self.name)
            return run_here(session, submitted.id, partial(run_file_collection, is_idle_recorded=True), progress=progress)

    def adopt(self, location: str) -> Mapping[str, Any]:
        """Copy the files of an imported, read-only table into a folder of its own below a location, and make it writable."""
        rows = self._session.open_rows(self.realm)
        return plain_counts(adopt_table(self._session.store, rows, self.name, location=folder_location(location)))

    def delete(self, *, confirm: str) -> Mapping[str, Any]:
        """Delete the table with all its files. There is no way back.

        confirm       REALM/TABLE, repeated; raises RefusedError for anything else
        """
        wanted = f"{self.realm}/{self.name}"
        if confirm != wanted:
            raise RefusedError(f"nothing was deleted: confirm={confirm[:200]!r} does not repeat {wanted!r}")
        return plain_counts(FileTablePurge(self._session.store, self._session.open_rows(self.realm)).delete_table(self.name))

    @contextmanager
    def _opened(self) -> Iterator[FileTable]:
        rows = self._session.open_rows(self.realm)
        with open_file_table(rows, self.name, partial(open_file_references, self._session.store)) as table:
            yield table

    def __repr__(self) -> str:
        return f"FileTableClient({self.realm}/{self.name})"
