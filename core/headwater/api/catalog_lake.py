"""The tables and files of a catalog's lake: imports, expiry of snapshots, files that nobody refers to, and the stop of all that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Literal

from headwater.api.api_values import StopInfo, read_time, several
from headwater.api.catalog_imports import SurveyInProcess, import_spec, load_spark_survey, submit_import
from headwater.api.catalog_values import ImportedTableInfo, Key, UnreferencedFileInfo, content_key
from headwater.api.import_reports import check_report_file, dry_import_into, find_import_run, report_rows, write_report
from headwater.api.log_iterator import begun
from headwater.api.plain_counts import plain_counts
from headwater.api.store_session import StoreSession
from headwater.api.task_client import run_or_leave
from headwater.api.work_progress import Observe, WorkProgress
from headwater.errors import RefusedError
from headwater.expiry import dry_expiry, read_expiry_request, run_expiry, submit_expiry
from headwater.jobs import (
    EXPIRE_SNAPSHOTS,
    IMPORT,
    REPORT_FILES,
    dry_file_report,
    run_file_report,
    run_import,
    submit_catalog_task,
)
from headwater.lake_files import FileReason, choose_marks, read_last_report
from headwater.policies import find_stops_around, read_scope, resume_maintenance, stop_maintenance
from headwater.settings import check_count
from headwater.store import id_of


class CatalogLake:
    """What a catalog's object does with its lake."""

    _session: StoreSession
    realm: str
    name: str

    def import_tables(
        self,
        *locations: str,
        include: str | Sequence[str] = (),
        exclude: str | Sequence[str] = (),
        mode: Literal["once", "sync"] = "once",
        path: str | None = None,
        namespace: Key | None = None,
        inventory: str | None = None,
        verify: Literal["metadata", "manifests", "files"] = "metadata",
        tolerate: str | Sequence[str] = (),
        gone: Literal["report", "drop"] = "report",
        report: str | Path | None = None,
        dry_run: bool = False,
        on_spark: bool = False,
        detach: bool = False,
        progress: Observe | None = None,
    ) -> Mapping[str, Any]:
        """Find the Iceberg tables and views below each location, and put the sound ones on the default branch.

        locations     URLs or folders
        include, exclude  patterns of keys
        mode          ``sync`` also follows tables that were imported before
        path          how a path below a location gives a key, such as ``{namespace}.db/{table}``; None: every folder is a name
        namespace     put in front of every key
        inventory     URL or path of a list of files, which is read instead of listing the locations
        verify        how deep a table is checked
        tolerate      codes of faults with which a table is imported all the same
        gone          of ``sync``: whether tables whose metadata is gone are reported, or dropped
        report        write what became of each table to this file, as ``write_import_report`` does
        detach        leave it to a worker: the result has the task's id alone, as ``task``
        returns       counts as `headwater import -o json` prints them: surveyed, imported, quarantined and so on
        """
        if not locations:
            raise RefusedError("say where the tables lie: name one location at least")
        spec = import_spec(
            locations,
            include=several(include),
            exclude=several(exclude),
            mode=mode,
            namespace=() if namespace is None else content_key(namespace).elements,
            path=path,
            inventory=inventory,
            verify=verify,
            tolerate=several(tolerate),
            gone=gone,
        )
        file = None if report is None else Path(report)
        if file is not None:
            check_report_file(file)
        if detach and (dry_run or file is not None):
            raise RefusedError("a dry run and a report are done here: leave detach out")
        if dry_run and on_spark:
            raise RefusedError("a dry run surveys in this process: leave on_spark out")
        session, store = self._session, self._session.store
        if dry_run:
            told = self._told(progress, IMPORT)
            return dry_import_into(store, self.realm, self.name, spec, file, progress=told.callback)
        survey = load_spark_survey(store.settings) if on_spark and not detach else SurveyInProcess()
        task = submit_import(store, self.realm, self.name, spec, author=session.author, on_spark=on_spark)
        outcome = run_or_leave(session, task, partial(run_import, survey=survey), detach=detach, progress=progress)
        if file is not None:
            write_report(store, find_import_run(store, self.realm, self.name, task), file)
        return outcome

    def import_report(self, *, task: str | None = None) -> Iterator[ImportedTableInfo]:
        """What became of each table in an import.

        task          the import of this task; None: the last one
        raises        NotFoundError where there is none, or its report was deleted
        """
        run = find_import_run(self._session.store, self.realm, self.name, None if task is None else id_of(task))
        return map(ImportedTableInfo.of, begun(report_rows(self._session.store, run)))

    def write_import_report(self, file: str | Path, *, task: str | None = None) -> int:
        """Write what became of each table in an import to a file, and return how many tables it has.

        file          ends in .parquet, with a row for every table; or in .html: a page with numbers, pictures, and all tables that were
                      left out, each with the reason. A file of that name is replaced
        task          the import of this task; None: the last one
        """
        check_report_file(Path(file))
        run = find_import_run(self._session.store, self.realm, self.name, None if task is None else id_of(task))
        return write_report(self._session.store, run, Path(file))

    def expire_snapshots(
        self,
        *,
        branches: str = "*",
        tables: str | Sequence[Key] = (),
        older_than: datetime | None = None,
        retain_last: int | None = None,
        dry_run: bool = False,
        detach: bool = False,
        progress: Observe | None = None,
    ) -> Mapping[str, Any]:
        """Commit metadata without the snapshots of tables that policies let go. No file is deleted; guests are left alone.

        branches      a pattern of branch names
        tables        only these, a text being one key; none: all
        older_than, retain_last  instead of what policies and properties of tables say
        detach        leave it to a worker: the result has the task's id alone, as ``task``
        returns       counts as `headwater snapshots expire -o json` prints them
        """
        self._check_done_here(dry_run, detach)
        check_count(retain_last, "retain_last")
        store = self._session.store
        request = read_expiry_request(
            store,
            self.realm,
            self.name,
            branches=branches,
            keys=tuple(content_key(key).elements for key in ((tables,) if isinstance(tables, str) else tables)),
            older_than=None if older_than is None else read_time(older_than),
            keep=retain_last,
            author=self._session.author,
        )
        if dry_run:
            told = self._told(progress, EXPIRE_SNAPSHOTS)
            return plain_counts(dry_expiry(store, self.realm, request, progress=told.callback))
        task = submit_expiry(store, self.realm, request).id
        return run_or_leave(self._session, task, run_expiry, detach=detach, progress=progress)

    def report_files(
        self, *, dry_run: bool = False, detach: bool = False, progress: Observe | None = None
    ) -> Mapping[str, Any]:
        """Find out which files of the catalog's lake nobody refers to. No file of the lake is deleted or changed.

        detach        leave it to a worker: the result has the task's id alone, as ``task``
        returns       counts by code, as the task's outcome has them
        """
        self._check_done_here(dry_run, detach)
        store = self._session.store
        if dry_run:
            told = self._told(progress, REPORT_FILES)
            return dry_file_report(store, self.realm, self.name, progress=told.callback).task_outcome()
        task = submit_catalog_task(store, REPORT_FILES, self.realm, self.name)
        return run_or_leave(self._session, task.id, run_file_report, detach=detach, progress=progress)

    def last_file_report(self) -> Mapping[str, Any]:
        """What the last report found; raises NotFoundError where there was none yet."""
        return read_last_report(self._session.store, self.realm, self.name).task_outcome()

    def unreferenced_files(
        self, *, codes: str | Sequence[str] = (), place: str | None = None
    ) -> Iterator[UnreferencedFileInfo]:
        """The files that nobody refers to, by the last report, in the order of places and paths.

        codes         only files with one of them, see ``Connection.file_codes``; none: all
        place         only files in this place: the URL of a table's folder, or of a place of the catalog
        """
        known = [reason.value for reason in FileReason]
        wanted = several(codes)
        for code in wanted:
            if code not in known:
                raise RefusedError(f"{code!r} is no code of a file: it is one of {', '.join(known)}")
        marks = read_last_report(self._session.store, self.realm, self.name).marks()
        return map(UnreferencedFileInfo.of, choose_marks(marks, codes=wanted, place=place))

    def stop_maintenance(self, *, why: str = "") -> StopInfo:
        """Stop expiry of snapshots and reports of files in this catalog."""
        store = self._session.store
        scope = read_scope(store, self.realm, self.name)
        return StopInfo.of(stop_maintenance(store, scope, by=self._session.author, why=why))

    def resume_maintenance(self) -> bool:
        """End the stop of this catalog; whether there was one."""
        store = self._session.store
        return resume_maintenance(store, read_scope(store, self.realm, self.name)) is not None

    def maintenance_stops(self) -> list[StopInfo]:
        """The stops that hold for this catalog: its own, and those of its realm and of the store, the widest first."""
        store = self._session.store
        return list(map(StopInfo.of, find_stops_around(store, read_scope(store, self.realm, self.name))))

    def _told(self, progress: Observe | None, kind: str) -> WorkProgress:
        return WorkProgress(progress, kind=kind, realm=self.realm, subject=self.name)

    def _check_done_here(self, dry_run: bool, detach: bool) -> None:
        if dry_run and detach:
            raise RefusedError("a dry run is done here: leave detach out")
