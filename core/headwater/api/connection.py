"""The connection to a store, from which everything else is reached."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Any

from headwater.access import Privilege
from headwater.api.access_client import PrivilegeInfo
from headwater.api.api_values import FindingInfo, RealmInfo, RunInfo, StopInfo, TaskInfo, read_time, told_time
from headwater.api.engine_infos import EngineInfo, list_engines
from headwater.api.locations import folder_location
from headwater.api.manifest_work import (
    ManifestDifferenceInfo,
    ManifestInfo,
    apply_manifests,
    compare_manifests,
    delete_described,
    read_manifests,
)
from headwater.api.realm_archives import submit_realm_load
from headwater.api.realm_client import RealmClient
from headwater.api.realm_tasks import make_realm
from headwater.api.repairs import RepairStepInfo, keeper_of
from headwater.api.spark_access import VIEWS, load_spark
from headwater.api.store_session import StoreSession
from headwater.api.task_client import TaskClient, run_or_leave
from headwater.api.task_figures import TaskFiguresInfo, figures_by_kind
from headwater.api.work_progress import Observe, WorkProgress
from headwater.backup import read_archive_manifest
from headwater.clock import Micros, as_datetime
from headwater.durability import replacing
from headwater.errors import RefusedError
from headwater.fsck import FsckFinding, check_store, plan_repairs, repair_realm
from headwater.html_report import report_page
from headwater.jobs import TASK_KINDS, Run, list_runs, run_load
from headwater.jobs.local_tasks import person
from headwater.lake_files import CODE_SENTENCES, explain_lake_file
from headwater.policies import StopScope, list_stops, resume_maintenance, stop_maintenance
from headwater.realms import RealmRegistry, hold_until
from headwater.settings import Settings, check_count
from headwater.store import SYSTEM_REALM, checked_realm_id, open_store
from headwater.store.overlay import open_dry_copy
from headwater.store.urls import parse_url
from headwater.tasks import TaskQuery, TaskQueue, TaskState


def connect(
    url: str | None = None, *, create: bool = False, author: str | None = None, settings: Settings | None = None
) -> Connection:
    """Open a store.

    url           such as ``sqlite:///headwater.db`` or ``postgresql://user@host/database``; None: the setting HEADWATER_STORE
    create        set the store up where there is none yet
    author        noted in commits that are made through this connection; None: the user
    settings      None: those of the environment
    raises        NotFoundError where there is no store; RefusedError for a wrong URL or setting; UnavailableError

    Whoever opens a store is its administrator. Use it in a ``with``, or close it; it may be used by several threads.
    """
    if settings is None:
        settings = Settings.from_environment(store=url)
    elif url is not None:
        settings = replace(settings, store=url)  # what is done on Spark opens the same store
    store = open_store(settings.store, settings=settings, create=create)
    return Connection(StoreSession(store, author or person(), _warn, settings.store))


class Connection:
    """An open store. Made by ``headwater.connect``."""

    def __init__(self, session: StoreSession) -> None:
        self._session = session

    @property
    def url(self) -> str:
        """The store's URL, without a password."""
        return parse_url(self._session.store.url).shown

    @property
    def author(self) -> str:
        """Who is noted in commits that are made through this connection."""
        return self._session.author

    def realms(self) -> list[RealmInfo]:
        """All realms, by id; raises CorruptionError where one cannot be read."""
        store = self._session.store
        now = store.clock.now()
        listed = RealmRegistry(store).list_realms().complete()
        return [RealmInfo.of(each, hold_until(each, store.settings, now)) for each in listed]

    def realm(self, realm_id: str) -> RealmClient:
        """A realm by its id. Whether it is there is found out when it is used.

        realm_id      ``::system::``, the store's own realm, can be collected, its objects explained and its tasks listed
        """
        return RealmClient(self._session, realm_id if realm_id == SYSTEM_REALM else checked_realm_id(realm_id))

    def create_realm(
        self,
        realm_id: str,
        *,
        credentials: str | Path,
        properties: Mapping[str, str] | None = None,
        purge_hold: timedelta | None = None,
    ) -> RealmClient:
        """Create a realm, with the credentials of its root in a new file that only its owner can read.

        After an interruption, the same call goes on.

        purge_hold    between INACTIVE and PURGING; None: as the settings say
        raises        RefusedError where the file is there; SwapConflictError where the realm is
        """
        checked_realm_id(realm_id)
        file = Path(credentials)
        seconds = None if purge_hold is None else purge_hold.total_seconds()
        make_realm(self._session.realms, realm_id, file, properties=properties or {}, purge_hold_seconds=seconds)
        return self.realm(realm_id)

    def import_realm(
        self, file: str | Path, realm_id: str, *, active: bool = True, detach: bool = False, progress: Observe | None = None
    ) -> Mapping[str, Any]:
        """Make a realm from an archive. After an interruption, the same call goes on.

        active        whether it serves users once it is loaded
        detach        leave it to a worker, which reads the file on its own machine: the result has the task's id alone, as ``task``
        returns       what it has, as `headwater realm import -o json` prints it
        """
        checked_realm_id(realm_id)
        if not detach:
            read_archive_manifest(Path(file))
        task = submit_realm_load(self._session.store, Path(file), realm_id, is_active=active, detach=detach)
        return run_or_leave(self._session, task, run_load, detach=detach, progress=progress)

    def tasks(
        self,
        *,
        kind: str | None = None,
        realm: str | None = None,
        state: str | None = None,
        subject: str | None = None,
        since: datetime | None = None,
        older_than: timedelta | None = None,
        limit: int | None = None,
    ) -> Iterator[TaskInfo]:
        """The tasks of the store: the active ones as they are due, then those that ended.

        state         WAITING, RUNNING, SUCCEEDED, FAILED or CANCELLED
        subject       what they are about within their realm, such as a catalog
        since, older_than  submitted then or later; submitted longer ago than that
        raises        RefusedError for a kind or state that there is not; NotFoundError for a realm that is not there, and of which nothing
                      is on record
        """
        _check_kind(kind)
        if state is not None and state not in list(TaskState):
            raise RefusedError(f"{state!r} is no state of a task: it is one of {', '.join(TaskState)}")
        store = self._session.store
        query = TaskQuery(
            kind=kind,
            realm=realm,
            state=None if state is None else TaskState(state),
            subject=subject,
            since=None if since is None else read_time(since),
            before=None if older_than is None else _before(store.clock.now(), older_than),
        )
        tasks = TaskQueue(store)
        if realm is not None and not tasks.list_tasks(limit=1, realm=realm):
            self._check_realm(realm)
        return map(TaskInfo.of, self._session.told(tasks.list_tasks(limit=limit, **query)))

    def task_figures(self) -> list[TaskFiguresInfo]:
        """For each kind, how many tasks wait, run, are late and were given up, and how long they take."""
        return figures_by_kind(TaskQueue(self._session.store).read_figures())

    def task(self, task_id: str) -> TaskClient:
        """A task by its id of 16 hex digits."""
        return TaskClient(self._session, task_id)

    def runs(
        self,
        *,
        kind: str | None = None,
        realm: str | None = None,
        since: datetime | None = None,
        failed: bool = False,
        limit: int | None = None,
    ) -> list[RunInfo]:
        """What tasks did, newest first.

        since         only runs that began then or later
        failed        only runs that failed
        raises        as ``tasks`` does
        """
        return list(map(RunInfo.of, self._runs(kind, realm, since, failed=failed, limit=limit)))

    def report_runs(
        self,
        file: str | Path,
        *,
        kind: str | None = None,
        realm: str | None = None,
        since: datetime | None = None,
        failed: bool = False,
        limit: int | None = None,
    ) -> int:
        """Write what tasks did to a file, as one page of HTML with charts, and return how many runs it has.

        file          one of that name is replaced
        """
        found = self._runs(kind, realm, since, failed=failed, limit=limit)
        page = report_page(found, store=self.url, now=self._session.store.clock.now())
        with replacing(Path(file)) as part:
            part.write_text(page, encoding="utf-8")
        return len(found)

    def apply(self, *paths: str | Path, credentials: str | Path = "credentials", dry_run: bool = False) -> list[ManifestInfo]:
        """Apply manifests, as far as possible now; long work is left to workers, as tasks. A wrong file changes nothing.

        What could not be done raises nothing: look at ``error`` and ``refused`` of each result.

        paths         files of manifests, or folders of such files
        credentials   the folder where credentials of new realms and principals are written
        dry_run       tell what would be done now, and write nothing
        raises        ManifestError for manifests that are wrong; RefusedError where no path is named
        """
        _check_named(paths)
        store = self._session.store
        return apply_manifests(store, read_manifests(store, paths), Path(credentials), is_dry_run=dry_run)

    def compare(self, *paths: str | Path) -> list[ManifestDifferenceInfo]:
        """Compare manifests with what is stored, and write nothing: what `headwater diff` shows.

        paths         files of manifests, or folders of such files
        raises        as ``apply`` does
        """
        _check_named(paths)
        store = self._session.store
        manifests = read_manifests(store, paths)
        with open_dry_copy(store) as dry:
            return list(map(ManifestDifferenceInfo.of, compare_manifests(dry, manifests)))

    def delete_described(
        self, *paths: str | Path, credentials: str | Path = "credentials", dry_run: bool = False
    ) -> list[ManifestInfo]:
        """Delete the realms and catalogs that manifests describe, as their deletionPolicy says: see what a dry run tells first.

        Retain leaves everything as it is, without a manager. Purge deletes what is in it, and needs the annotation
        headwater.dev/confirm-purge with the name of the realm or catalog. What could not be done raises nothing: look at ``error`` and
        ``refused`` of each result.

        raises        as ``apply`` does
        """
        _check_named(paths)
        store = self._session.store
        return delete_described(store, read_manifests(store, paths), Path(credentials), is_dry_run=dry_run)

    def check(self, realm: str | None = None, *, progress: Observe | None = None) -> list[FindingInfo]:
        """Check everything that is stored, as `headwater fsck` does; changes nothing. Empty: all is well."""
        return list(map(FindingInfo.of, self._checked(realm, progress)))

    def plan_repairs(
        self, realm: str | None = None, *, later: bool = False, progress: Observe | None = None
    ) -> list[RepairStepInfo]:
        """The steps of a repair of what ``check`` finds, in their order, with what each does and loses; changes nothing.

        later         set aside also what a later release has written
        """
        return list(map(RepairStepInfo.of, plan_repairs(self._checked(realm, progress), later=later)))

    def repair(
        self,
        realm: str,
        *,
        confirm: str,
        aside: str | Path | None = None,
        later: bool = False,
        progress: Observe | None = None,
    ) -> list[RepairStepInfo]:
        """Do the safe steps of one realm's plan; returns all steps with what came of them. Call ``check`` afterwards.

        confirm       the realm's id, repeated; raises RefusedError for anything else
        aside         a folder in which is kept what is taken off a list because it cannot be read
        """
        if confirm != realm:
            raise RefusedError(f"nothing was changed: confirm={confirm[:200]!r} does not repeat the id of realm {realm!r}")
        steps = plan_repairs(self._checked(realm, progress), later=later)
        keep = keeper_of(None if aside is None else Path(aside))
        return list(map(RepairStepInfo.of, repair_realm(self._session.store, realm, steps, keep=keep)))

    def privileges(self) -> list[PrivilegeInfo]:
        """What can be granted to roles."""
        return list(map(PrivilegeInfo.of, Privilege))

    def make_spark_views(self, spark: Any, *, realm: str | None = None) -> tuple[str, ...]:
        """Make a temporary view of each table of the store in a Spark session, of one realm or of all; returns their names.

        spark         a SparkSession; needs ``pip install 'headwater[spark]'``, also in the executors' Python

        What the views hold stands still: make them again to see what was committed since.
        """
        url = self._session.url or self._session.store.url
        if url.startswith("memory:"):
            raise RefusedError("a store in memory lives in one process, and Spark reads from others: use another store")
        names: tuple[str, ...] = load_spark(VIEWS)(spark, url, realm)
        return names

    def explain_file(self, url: str) -> Mapping[str, Any]:
        """Who refers to a file of a lake, or since when nobody does, by which rule, and when it may go; of a folder, whose it is.

        returns       url, exists, code, why, realm, catalog, place, table, referrers, tables, unreferenced, since, due and report, as
                      `headwater files explain -o json` prints them; times are ``datetime``
        """
        told = explain_lake_file(self._session.store, folder_location(url))
        return {
            "url": told.url,
            "exists": told.is_there,
            "code": told.code,
            "why": told.sentence,
            "realm": told.realm,
            "catalog": told.catalog,
            "place": told.place,
            "table": told.table,
            "referrers": [
                {
                    "realm": each.realm,
                    "catalog": each.catalog,
                    "table": each.key,
                    "where": each.where,
                    "snapshots": each.snapshots,
                    "metadata": each.metadata,
                }
                for each in told.referrers
            ],
            "tables": [
                {
                    "realm": each.realm,
                    "catalog": each.catalog,
                    "table": each.key,
                    "where": each.where,
                    "location": each.location,
                    "dropped": told_time(each.dropped),
                    "droppedBy": each.dropped_by,
                }
                for each in told.tables
            ],
            "unreferenced": [{"code": each.code, "files": each.files, "bytes": each.size_bytes} for each in told.unreferenced],
            "since": told_time(told.since),
            "due": told_time(told.due),
            "report": told.report,
        }

    def file_codes(self) -> Mapping[str, str]:
        """Every code of a file of a lake, and of a place where files lie, with what it means."""
        return dict(CODE_SENTENCES)

    def engines(self, *, url: str | None = None) -> list[EngineInfo]:
        """The engines that can use a catalog that a server serves; ``CatalogClient.client_config`` tells how one of them does.

        url           where engines reach the server; None: the address of the setting HEADWATER_SERVER_LISTEN
        """
        return list_engines(self._session.store.settings, url)

    def stop_maintenance(self, *, why: str = "") -> StopInfo:
        """Stop expiry of snapshots and reports of files in all of the store."""
        return StopInfo.of(stop_maintenance(self._session.store, StopScope(), by=self._session.author, why=why))

    def resume_maintenance(self) -> bool:
        """End the stop of the store; whether there was one. Stops of realms and catalogs stay."""
        return resume_maintenance(self._session.store, StopScope()) is not None

    def maintenance_stops(self) -> list[StopInfo]:
        """Where expiry of snapshots and reports of files are stopped."""
        return list(map(StopInfo.of, list_stops(self._session.store)))

    def close(self) -> None:
        """Give back what the store has leased. Afterwards nothing of this connection can be used."""
        self._session.store.close()

    def _runs(
        self, kind: str | None, realm: str | None, since: datetime | None, *, failed: bool, limit: int | None
    ) -> list[Run]:
        check_count(limit, "runs of a list")
        _check_kind(kind)
        listed = self._session.told(list_runs(self._session.store, kind=kind, realm=realm))
        if realm is not None and not listed:
            self._check_realm(realm)
        earliest = 0 if since is None else read_time(since)
        return [run for run in listed if run.started >= earliest and (run.error or not failed)][:limit]

    def _check_realm(self, realm: str) -> None:
        """Refuse a realm that is not there: a mistyped id would look like one where nothing happened."""
        if realm != SYSTEM_REALM:
            self._session.realms.read_realm(realm)

    def _checked(self, realm: str | None, progress: Observe | None) -> list[FsckFinding]:
        told = WorkProgress(progress, kind="fsck", realm=realm or "")
        return check_store(self._session.store, realm=realm, progress=told.callback)

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Connection({self.url})"


def _check_kind(kind: str | None) -> None:
    if kind is not None and kind not in TASK_KINDS:
        raise RefusedError(f"{kind!r} is not a kind of task: name one of {', '.join(TASK_KINDS)}")


def _before(now: Micros, older_than: timedelta) -> Micros:
    try:
        return read_time(as_datetime(now) - older_than)
    except OverflowError:
        raise RefusedError(f"older_than={older_than} goes back to before the year 1") from None


def _check_named(paths: Sequence[str | Path]) -> None:
    if not paths:
        raise RefusedError("say which manifests are meant: name one file or folder at least")


def _warn(sentence: str) -> None:
    warnings.warn(sentence, stacklevel=4)
