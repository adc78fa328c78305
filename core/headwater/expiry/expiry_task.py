"""The job of the kind `expire-snapshots`: what is asked, its run by the holder of its lease, and a dry run."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from headwater.catalogs import HEADWATER, CatalogDefinition, Catalogs, ContentKey, find_homes
from headwater.clock import Micros
from headwater.errors import MaintenanceStoppedError, RefusedError
from headwater.expiry.catalog_expiry import CatalogExpiry, ExpiryWish
from headwater.expiry.expiry_counts import ExpiryCounts
from headwater.expiry.expiry_rules import AskedRules, ExpiryRules
from headwater.iceberg import StorageFile, TableStorage
from headwater.jobs import EXPIRE_SNAPSHOTS, catalog_of_task, submit_catalog_task
from headwater.jobs.catalog_tasks import STOPPED_LOOK_SECONDS
from headwater.jobs.task_runs import check_clock_of_task, open_active_realm, run_recorded
from headwater.policies import PolicyReader, check_not_stopped
from headwater.realms import RealmRegistry
from headwater.store import RealmStore, Store, id_text
from headwater.tasks import SubmittedTask, Task, TaskLease, TaskNotReadyError, TaskQueue
from headwater.throttle import Fence, ProgressCallback, no_progress
from headwater.typed_values import convert

BY_HAND = "by hand"


class ExpiryRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a person or a schedule asks of one catalog.

    branches      a pattern of branch names, as in policies
    keys          only these tables; empty: all
    older_than    snapshots up to this moment may go, in microseconds since 1970, whatever policies and properties say
    keep          the least number of snapshots of a branch, instead of the policies' and the properties'
    author        the author of its commits: who asked by hand; empty for a schedule
    """

    catalog: str
    catalog_id: str
    branches: str = "*"
    keys: tuple[tuple[str, ...], ...] = ()
    older_than: Micros | None = None
    keep: int | None = None
    author: str = ""

    @classmethod
    def from_task(cls, task: Task) -> ExpiryRequest:
        return convert(task.arguments, cls)

    def arguments(self) -> dict[str, Any]:
        """The arguments of the task."""
        arguments: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(self))
        return arguments

    @property
    def is_plain(self) -> bool:
        """Whether it asks for what the policies say, of all tables, in nobody's name."""
        return self == ExpiryRequest(catalog=self.catalog, catalog_id=self.catalog_id)

    @property
    def says_limits(self) -> bool:
        return self.older_than is not None or self.keep is not None

    def rules(self, rows: RealmStore, definition: CatalogDefinition, now: Micros) -> ExpiryRules:
        """What decides: the policies, unless the request says it itself."""
        if not self.says_limits:
            return PolicyReader(rows, definition)
        age = None if self.older_than is None else (now - self.older_than) // 1000
        return AskedRules(max_age_ms=age, keep=self.keep)


def run_expiry(store: Store, claim: TaskLease) -> dict[str, Any]:
    """Expire snapshots of the catalog that the task names.

    arguments     see ``ExpiryRequest``
    raises        TaskNotReadyError while the realm is INACTIVE, maintenance is stopped, or this machine's clock may be ahead: what is
                  young by the right clock would go
    """
    check_clock_of_task(store)
    rows = open_active_realm(store, claim.task)
    request = ExpiryRequest.from_task(claim.task)
    definition = catalog_of_task(rows, claim.task)
    expiry = _expiry(store, rows, definition, request, fence=claim.check_stop, progress=claim.report_progress)

    def work() -> dict[str, Any]:
        try:
            return expiry.expire().as_plain()
        except MaintenanceStoppedError as stopped:
            raise TaskNotReadyError(str(stopped), seconds=STOPPED_LOOK_SECONDS) from stopped

    return run_recorded(store, claim, work, so_far=expiry.counts.as_plain)


def dry_expiry(store: Store, realm: str, request: ExpiryRequest, *, progress: ProgressCallback = no_progress) -> ExpiryCounts:
    """Count what a run would expire now; nothing is written."""
    rows = RealmRegistry(store).open_realm(realm)
    rows.check_write()
    definition = Catalogs(rows).read_catalog(request.catalog)
    return _expiry(store, rows, definition, request, is_dry=True, progress=progress).expire()


def read_expiry_request(store: Store, realm: str, catalog: str, **asked: Any) -> ExpiryRequest:
    """A request about the catalog that has this name now."""
    definition = Catalogs(RealmRegistry(store).open_realm(realm)).read_catalog(catalog)
    return ExpiryRequest(catalog=catalog, catalog_id=definition.id, **asked)


def submit_expiry(store: Store, realm_id: str, request: ExpiryRequest) -> SubmittedTask:
    """Ask for an expiry, due now, unless the same is asked for already.

    What a person asks for, or asks for more than the policies say, is a task of its own, beside the one that waits for its time.
    Whoever asks for the same while it is under way gets that task, and its author stays.

    raises        RefusedError where another expiry of that kind is under way, asked for otherwise
    """
    if request.is_plain:
        return submit_catalog_task(store, EXPIRE_SNAPSHOTS, realm_id, request.catalog)
    realm, tasks = RealmRegistry(store).read_realm(realm_id), TaskQueue(store)
    subject, arguments = f"{request.catalog}/{BY_HAND}", request.arguments()
    submitted = tasks.submit_task(EXPIRE_SNAPSHOTS, realm=realm.id, realm_key=realm.key, subject=subject, arguments=arguments)
    task = tasks.read_task(submitted.id).value
    if replace(ExpiryRequest.from_task(task), author=request.author) != request:
        raise RefusedError(
            f"task {id_text(submitted.id)} ({task}) is under way with {task.arguments}: wait for it, or cancel it"
        )
    return submitted


def _expiry(
    store: Store,
    rows: RealmStore,
    definition: CatalogDefinition,
    request: ExpiryRequest,
    *,
    is_dry: bool = False,
    fence: Fence = lambda: None,
    progress: ProgressCallback = no_progress,
) -> CatalogExpiry:
    storage = TableStorage(StorageFile(store.settings.storage_file), realm=rows.realm, catalog=definition.name)
    now = rows.clock.now()
    wish = ExpiryWish(
        now=now,
        rules=request.rules(rows, definition, now),
        is_home=find_homes(rows, definition.id).__contains__,
        branches=request.branches,
        keys=[ContentKey(key) for key in request.keys],
        is_dry=is_dry,
        remembers=not request.says_limits,
        author=request.author or HEADWATER,
    )

    def check() -> None:
        check_not_stopped(store, rows.realm, rows.key, definition.id, catalog=definition.name)

    return CatalogExpiry(rows, definition, storage, wish, fence=fence, check=check, progress=progress)
