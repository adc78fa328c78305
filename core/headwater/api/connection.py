"""The connection to a store, from which everything else is reached."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Any

from headwater.access import Privilege
from headwater.api.access_client import PrivilegeInfo
from headwater.api.api_values import FindingInfo, ManifestInfo, RealmInfo, RunInfo, StopInfo, TaskInfo
from headwater.api.locations import folder_location
from headwater.api.realm_client import RealmClient
from headwater.api.realm_tasks import check_same, make_realm
from headwater.api.repairs import RepairStepInfo, keeper_of
from headwater.api.spark_access import VIEWS, load_spark
from headwater.api.store_session import StoreSession
from headwater.api.task_client import Observe, TaskClient, run_here
from headwater.backup import check_loadable, read_archive_manifest
from headwater.durability import replacing
from headwater.errors import RefusedError
from headwater.fsck import check_store, plan_repairs, repair_realm
from headwater.html_report import report_page
from headwater.jobs import LOAD, file_arguments, list_runs, run_load
from headwater.jobs.local_tasks import person
from headwater.lake_files import explain_lake_file
from headwater.policies import list_stops
from headwater.realms import RealmRegistry, hold_until
from headwater.reconcile import FileCredentials, ManagerIdentity, known_realms, load_manifests, reconcile
from headwater.reconcile.manifests import RealmManifest
from headwater.reconcile.plan_preview import preview_catalog, preview_realm
from headwater.settings import Settings
from headwater.store import checked_realm_id, open_store
from headwater.store.urls import parse_url
from headwater.tasks import TaskQueue, TaskState


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
        """A realm by its id. Whether it is there is found out when it is used."""
        return RealmClient(self._session, checked_realm_id(realm_id))

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
        self, file: str | Path, realm_id: str, *, active: bool = True, progress: Observe | None = None
    ) -> Mapping[str, Any]:
        """Make a realm from an archive. After an interruption, the same call goes on.

        active        whether it serves users once it is loaded
        returns       what it has, as `headwater realm import -o json` prints it
        """
        checked_realm_id(realm_id)
        read_archive_manifest(Path(file))
        store, arguments = self._session.store, file_arguments(Path(file), is_here=True) | {"inactive": not active}
        tasks = TaskQueue(store)
        if not any(task.value.is_active for task in tasks.list_tasks(kind=LOAD, realm=realm_id)):
            check_loadable(RealmRegistry(store).find_realm(realm_id))  # an import under way may be further than that
        submitted = tasks.submit_task(LOAD, realm=realm_id, arguments=arguments)
        check_same(store, submitted, arguments)
        return run_here(self._session, submitted.id, run_load, progress=progress)

    def tasks(self, *, kind: str | None = None, realm: str | None = None, state: str | None = None) -> Iterator[TaskInfo]:
        """The tasks of the store: the active ones as they are due, then those that ended.

        state         WAITING, RUNNING, SUCCEEDED, FAILED or CANCELLED
        """
        if state is not None and state not in list(TaskState):
            raise RefusedError(f"{state!r} is no state of a task: it is one of {', '.join(TaskState)}")
        chosen = None if state is None else TaskState(state)
        return map(TaskInfo.of, TaskQueue(self._session.store).list_tasks(kind=kind, realm=realm, state=chosen))

    def task(self, task_id: str) -> TaskClient:
        """A task by its id of 16 hex digits."""
        return TaskClient(self._session, task_id)

    def runs(self, *, kind: str | None = None, realm: str | None = None, limit: int | None = None) -> list[RunInfo]:
        """What tasks did, newest first."""
        return list(map(RunInfo.of, list_runs(self._session.store, kind=kind, realm=realm, limit=limit)))

    def report_runs(
        self, file: str | Path, *, kind: str | None = None, realm: str | None = None, limit: int | None = None
    ) -> int:
        """Write what tasks did to a file, as one page of HTML with charts, and return how many runs it has.

        file          one of that name is replaced
        """
        store = self._session.store
        found = list_runs(store, kind=kind, realm=realm, limit=limit)
        page = report_page(found, store=self.url, now=store.clock.now())
        with replacing(Path(file)) as part:
            part.write_text(page, encoding="utf-8")
        return len(found)

    def apply(self, *paths: str | Path, credentials: str | Path = "credentials") -> list[ManifestInfo]:
        """Apply manifests, as far as possible now; long work is left to workers, as tasks. A wrong file changes nothing.

        paths         files of manifests, or folders of such files
        credentials   the folder where credentials of new realms and principals are written
        raises        ManifestError for manifests that are wrong
        """
        store, files = self._session.store, tuple(map(Path, paths))
        manifests = load_manifests(files, settings=store.settings, known_realms=known_realms(store))
        made = reconcile(store, manifests, credentials=FileCredentials(Path(credentials)), manager=ManagerIdentity())
        return list(map(ManifestInfo.of, made))

    def preview(self, *paths: str | Path) -> list[ManifestInfo]:
        """What ``apply`` would do now; what follows its steps is planned when they are done. Writes nothing."""
        store, files = self._session.store, tuple(map(Path, paths))
        previews = []
        for manifest in load_manifests(files, settings=store.settings, known_realms=known_realms(store)):
            if isinstance(manifest, RealmManifest):
                told = preview_realm(store, manifest, manager=ManagerIdentity())
            else:
                told = preview_catalog(store, manifest, manager=ManagerIdentity())
            previews.append(
                ManifestInfo(
                    subject=str(manifest.subject),
                    steps=told.steps,
                    waits=tuple(wait.message for wait in told.waits),
                    refused=tuple(refusal.message for refusal in told.refused),
                    reports=tuple(report.message for report in told.reports),
                )
            )
        return previews

    def check(self, realm: str | None = None) -> list[FindingInfo]:
        """Check everything that is stored, as `headwater fsck` does; changes nothing. Empty: all is well."""
        return list(map(FindingInfo.of, check_store(self._session.store, realm=realm)))

    def plan_repairs(self, realm: str | None = None, *, later: bool = False) -> list[RepairStepInfo]:
        """The steps of a repair of what ``check`` finds, in their order, with what each does and loses; changes nothing.

        later         set aside also what a later release has written
        """
        return list(map(RepairStepInfo.of, plan_repairs(check_store(self._session.store, realm=realm), later=later)))

    def repair(self, realm: str, *, confirm: str, aside: str | Path | None = None, later: bool = False) -> list[RepairStepInfo]:
        """Do the safe steps of one realm's plan; returns all steps with what came of them. Call ``check`` afterwards.

        confirm       the realm's id, repeated; raises RefusedError for anything else
        aside         a folder in which is kept what is taken off a list because it cannot be read
        """
        if confirm != realm:
            raise RefusedError(f"nothing was changed: confirm={confirm[:200]!r} does not repeat the id of realm {realm!r}")
        store = self._session.store
        steps = plan_repairs(check_store(store, realm=realm), later=later)
        keep = keeper_of(None if aside is None else Path(aside))
        return list(map(RepairStepInfo.of, repair_realm(store, realm, steps, keep=keep)))

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
        """Who refers to a file of a lake, or since when nobody does: code, sentence, realm, catalog, table and referrers."""
        told = explain_lake_file(self._session.store, folder_location(url))
        return {
            "url": told.url,
            "exists": told.is_there,
            "code": told.code,
            "why": told.sentence,
            "realm": told.realm,
            "catalog": told.catalog,
            "table": told.table,
            "referrers": [{"realm": each.realm, "catalog": each.catalog, "table": each.key} for each in told.referrers],
        }

    def maintenance_stops(self) -> list[StopInfo]:
        """Where expiry of snapshots and reports of files are stopped."""
        return list(map(StopInfo.of, list_stops(self._session.store)))

    def close(self) -> None:
        """Give back what the store has leased. Afterwards nothing of this connection can be used."""
        self._session.store.close()

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Connection({self.url})"


def _warn(sentence: str) -> None:
    warnings.warn(sentence, stacklevel=4)
