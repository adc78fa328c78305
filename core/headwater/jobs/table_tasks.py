"""The job of the kind `purge-table`, and how it is requested.

The task is submitted before the table is dropped: a client that dies in between leaves a task that finds the table in its catalog.

    submit            not due before a claim of now could be released
    claim             the table's own, anew: so there is one, and the collector releases it when no kept commit holds the table
    drop              by a commit

When the files may be deleted is decided by the claim of the table's location.
The claim was taken for the content before the drop. Only the collector releases it, when no commit that it keeps holds the content:
no branch or tag, deleted ones included, and no kept history. Whoever brings the table back (registers, imports or restores it) claims
it before the commit. So the claim of the location is

    the content's own      it is held, or may come back: not yet
    nobody's               the purge takes it, in the commit that reads this; others are refused from then on
    another content's      its files belong to another table: never

Two operations can bring the table back without a claim. A pin keeps a commit that nothing else keeps; so there must be none, and
later pins are of kept commits, which do not hold this content. A merge or a transplant copies from any commit that still
exists; so the sweep that removed the last commit with the content must be over, readers of that commit must have timed out, and then
no head may hold the content:

    collector       releases the claim      sweeps ......... ends
    transplant                  reads the commit ...... copies        (reads again after the time-out: it is gone)
    purge                                                    claims ... waits for the time-out ... looks at the heads
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any
from uuid import UUID

import msgspec
import structlog

from headwater.catalogs import PURGING, Catalog, Catalogs, ClaimConflict, TableClaim, TableClaims, find_content_key
from headwater.clock import Micros, as_text
from headwater.commits import Commit, CommitPin, Head, read_collection, read_pins
from headwater.errors import ConflictError, FencedError, HeadwaterError, NotFoundError, RefusedError
from headwater.iceberg import StorageFile, TableStorage
from headwater.jobs.task_runs import PURGE_TABLE, open_active_realm, run_recorded
from headwater.purge.table_purge import PurgedTable, PurgeRequest, first_look_after, purge_table
from headwater.realms import RealmRegistry, RealmState
from headwater.store import ObjectId, RealmStore, Store, id_text
from headwater.store.store_identity import check_may_maintain
from headwater.tasks import SubmittedTask, Task, TaskLease, TaskNotReadyError, TaskProgress, TaskQueue, TaskState

_TRIES = 20
LOOK_AGAIN_SECONDS = 3600.0
_WITH_FILES = (RealmState.LOADING, RealmState.ACTIVE, RealmState.INACTIVE)
_IDS = "ids"
_log = structlog.get_logger()


def run_purge_table(store: Store, claim: TaskLease) -> dict[str, Any]:
    """Delete the files of a dropped table, when no kept commit holds it.

    arguments     see ``PurgeRequest``
    raises        TaskNotReadyError while a kept commit may hold it, and while the realm is INACTIVE
    """
    rows = open_active_realm(store, claim.task)
    wish = PurgeRequest.from_task(claim.task)
    result = PurgedTable(table=f"{wish.catalog}/{wish.drops[-1].key}")
    begun = [attempt.progress.unit for attempt in claim.task.attempts[:-1] if attempt.progress is not None]

    def mark(done: int, total: int, unit: str, /, *, is_durable: bool) -> None:
        claim.report_progress(done, total, unit)
        if is_durable:  # the next attempt must know that manifests may be missing
            claim.heartbeat(TaskProgress(done=done, total=total, unit=unit))
            claim.check_stop()

    def work() -> dict[str, Any]:
        check_may_maintain(store, "a purge")
        held = lock_locations(rows, wish, fence=claim.check_stop)
        try:
            check_no_realm(store, rows, wish, fence=claim.check_stop)
            storage = TableStorage(StorageFile(store.settings.storage_file), realm=rows.realm, catalog=wish.catalog)
            allowed = allowed_places(rows, wish)
            purge_table(wish, result, allowed=allowed, check=held.renew, mark=mark, begun=begun, lake=storage.lake)
        except RefusedError:
            _let_go(held)
            raise
        _let_go(held)
        return result.as_plain()

    return run_recorded(store, claim, work, so_far=result.as_plain)


def _let_go(held: LocationLock) -> None:
    """Release the lock. What stays claimed is released by a collection after the grace."""
    try:
        held.unlock()
    except FencedError:
        raise
    except HeadwaterError as fault:
        _log.warning("the claims of a purge stay for a while", fault=str(fault))


def request_table_purge(store: Store, wish: PurgeRequest, *, realm: str, realm_key: int) -> SubmittedTask:
    """Submit the task. A waiting task for the same content gets the drops of both requests; a request never reduces what is deleted.

    returns       whether the task is a new one; to take it back, cancel it only while it carries these arguments
    raises        RefusedError for more drops than a task can carry; ConflictError when the active one is running
    """
    tasks, due = TaskQueue(store), Micros(store.clock.now() + first_look_after(store.settings))
    wish.check_size()
    for _ in range(_TRIES):
        submitted = tasks.submit_task(
            PURGE_TABLE,
            realm=realm,
            realm_key=realm_key,
            subject=str(wish.content_id),
            arguments=wish.arguments(),
            due=due,
        )
        if submitted.created:
            return submitted
        amended = tasks.amend_task(submitted.id, lambda task: _joined(wish, task), due=due)
        if amended.state is TaskState.WAITING:
            return submitted
        if amended.is_active:
            break
    raise ConflictError(
        f"task {id_text(submitted.id)} is purging content {wish.content_id} of realm {realm!r} just now: try again when it has ended"
    )


def retry_reachable_only(tasks: TaskQueue, task_id: ObjectId) -> Task:
    """Requeue a failed purge of a table, limited to the files that can still be reached.

    raises        NotFoundError; RefusedError for a task of another kind, or one that has not failed
    """
    task = tasks.read_task(task_id).value
    if task.kind != PURGE_TABLE:
        raise RefusedError(f"task {id_text(task_id)} ({task}) is no purge of a table: retry it without --reachable-only")
    return tasks.retry_task(
        task_id, arguments=lambda ended: msgspec.structs.replace(PurgeRequest.from_task(ended), reachable_only=True).arguments()
    )


def _joined(wish: PurgeRequest, task: Task) -> dict[str, Any]:
    """The arguments of a task that serves this request and an earlier one for the same content."""
    joined = wish.joined(PurgeRequest.from_task(task))
    joined.check_size()
    return joined.arguments()


class LocationLock:
    """The claims of a purge, renewed so that they stay younger than the grace, after which the collector would release them."""

    def __init__(self, rows: RealmStore, claims: list[TableClaim], fence: Callable[[], None]) -> None:
        self._claims = TableClaims(rows)
        self._held = claims
        self._fence = fence
        settings = rows.settings
        self._fresh = round(min(settings.writer_grace_seconds, settings.reader_grace_seconds) * 250_000)
        self._taken = Micros(0)

    def renew(self) -> None:
        """Pass while the task and the location belong to this purge. Call it before every deletion.

        raises        FencedError, StoppedError; RefusedError when the location was claimed by another content
        """
        self._fence()
        now = self._claims.claim_time()
        if now - self._taken < self._fresh:
            return
        conflicts = self._claims.take_claims(self._held, fence=self._fence)
        if conflicts:
            raise RefusedError(f"{conflicts[0]}: no more is deleted")
        self._taken = now

    def unlock(self) -> None:
        self._claims.release_own(self._held, fence=self._fence)


def lock_locations(rows: RealmStore, wish: PurgeRequest, *, fence: Callable[[], None]) -> LocationLock:
    """Claim the location of a dropped table for its purge.

    raises        TaskNotReadyError while a kept commit may hold the table; RefusedError when it is in its catalog (again), or its location
                  belongs to another content
    """
    _check_at_rest(rows, wish)
    places = dict.fromkeys(drop.location for drop in wish.drops)
    claims = [TableClaim(PURGING, wish.content_id, place, wish.table_uuid) for place in places]
    conflicts = TableClaims(rows).take_claims(claims, fence=fence)
    held = LocationLock(rows, claims, fence)
    try:
        _check_conflicts(conflicts, wish)
        rows.clock.sleep(rows.settings.commit_timeout_seconds)  # running operations have ended: they committed, or begin anew
        _check_at_rest(rows, wish)
    except (TaskNotReadyError, RefusedError):
        held.unlock()
        raise
    return held


def allowed_places(rows: RealmStore, wish: PurgeRequest) -> tuple[str, ...] | None:
    """The places where the catalog of a purge allows tables to have files. None when the catalog is deleted: then each drop carries
    them.
    """
    catalogs = Catalogs(rows)
    definitions = (*catalogs.list_catalogs(), *catalogs.list_deleted())
    return next((definition.places for definition in definitions if definition.id == wish.catalog_id), None)


def check_no_realm(store: Store, rows: RealmStore, wish: PurgeRequest, *, fence: Callable[[], None]) -> None:
    """Pass if no other realm of the store has claimed the location. A realm that was loaded from an archive has the claims of its tables.

    raises        RefusedError
    """
    for realm in RealmRegistry(store).list_realms().complete():
        if realm.key == rows.key or realm.state not in _WITH_FILES:
            continue
        fence()
        claims = [TableClaim(PURGING, wish.content_id, drop.location, wish.table_uuid) for drop in wish.drops]
        try:
            conflicts = TableClaims(store.rows(realm.id, realm.key)).find_conflicts(claims)
        except NotFoundError:
            continue  # being loaded, or deleted since
        if conflicts:
            _log.warning("a purge meets a claim of another realm", realm=rows.realm, other=realm.id, claim=str(conflicts[0]))
            raise RefusedError(f"nothing is deleted: another realm of this store has claimed {conflicts[0].wanted}")


def _check_conflicts(conflicts: Sequence[ClaimConflict], wish: PurgeRequest) -> None:
    for conflict in conflicts:
        if (conflict.owner.catalog_id, conflict.owner.content_id) != (wish.catalog_id, wish.content_id):
            raise RefusedError(f"nothing is deleted: {conflict}")
    if conflicts:
        raise _kept_error(wish)


def _kept_error(wish: PurgeRequest) -> TaskNotReadyError:
    return TaskNotReadyError(
        f"commits that are kept may hold content {wish.content_id} of catalog {wish.catalog!r}: a collection after the history"
        " that retention keeps lets it go, and then its files can be deleted",
        seconds=LOOK_AGAIN_SECONDS,
    )


def _check_at_rest(rows: RealmStore, wish: PurgeRequest) -> None:
    """Pass if no running operation can bring the table back without a claim, and none has."""
    collection = read_collection(rows)
    if collection is not None and collection.value.sweeping:
        raise TaskNotReadyError(
            f"a collection of realm {rows.realm!r} is sweeping: this goes on after it", seconds=LOOK_AGAIN_SECONDS
        )
    pins = read_pins(rows)
    if any(pin.held_until <= rows.clock.now() for pin in pins):
        raise TaskNotReadyError(
            f"a task of realm {rows.realm!r} reads what commits of the past hold: this goes on after it",
            seconds=LOOK_AGAIN_SECONDS,
        )
    _check_no_archive(rows, wish, pins)
    _check_not_held(rows, wish)
    if wish.content_id in TableClaims(rows).find_released(wish.catalog_id):  # its place was released before its history
        raise _kept_error(wish)


def _check_no_archive(rows: RealmStore, wish: PurgeRequest, pins: Sequence[CommitPin]) -> None:
    """Pass if no exported archive that is held names the content: a commit that is held for one can be merged from, too."""
    held = {pin.commit: pin.held_until for pin in pins}
    for commit_id, commit in zip(held, rows.read_many(list(held), Commit), strict=True):
        if commit is not None and _key_in(Head(commit_id, commit, rows), wish.content_id) is not None:
            raise TaskNotReadyError(
                f"an exported archive names content {wish.content_id} of catalog {wish.catalog!r}, and is held until"
                f" {as_text(held[commit_id])}: its files can be deleted after that",
                seconds=LOOK_AGAIN_SECONDS,
            )


def _check_not_held(rows: RealmStore, wish: PurgeRequest) -> None:
    """Refuse if a head still holds the content: its drop never happened or was undone. Where that is so for all drops, nothing is purged.

    A client that was stopped before its commit can resume it until its claim is too old.
    """
    held = dict(_holders(rows, wish))
    undone = [drop for drop in wish.drops if f"branch {drop.branch}" in held]
    now, patience = rows.clock.now(), first_look_after(rows.settings)
    if len(undone) == len(wish.drops) and all(now - drop.asked > patience for drop in undone):
        first = next(iter(held.items()))
        raise RefusedError(
            f"content {wish.content_id} of catalog {wish.catalog!r} is in it, as {first[1]} on {first[0]}: it was never dropped, or has"
            " come back; nothing is deleted"
        )
    if held:
        raise TaskNotReadyError(
            f"content {wish.content_id} of catalog {wish.catalog!r} stands on {', '.join(sorted(held)[:5])}: its files stay while it does",
            seconds=LOOK_AGAIN_SECONDS,
        )


def _holders(rows: RealmStore, wish: PurgeRequest) -> Iterator[tuple[str, str]]:
    """The branches and tags of the catalog whose heads hold the content, each with the content's key there."""
    catalog = _catalog(rows, wish.catalog_id)
    if catalog is None:
        return
    listed = [("branch", reference) for reference in catalog.branches()] + [("tag", reference) for reference in catalog.tags()]
    for kind, reference in listed:
        try:
            key = _key_in(catalog.resolve(reference.name), wish.content_id)
        except NotFoundError:
            continue  # deleted after it was listed
        if key is not None:
            yield f"{kind} {reference.name}", key


def _key_in(head: Head | None, content_id: UUID) -> str | None:
    key = None if head is None else find_content_key(head.index(_IDS), content_id)
    return None if key is None else str(key)


def _catalog(rows: RealmStore, catalog_id: str) -> Catalog | None:
    """The catalog; None when it is deleted. Its tables keep their claims until it is gone."""
    definitions = Catalogs(rows).list_catalogs().complete()
    return next((Catalog(rows, definition) for definition in definitions if definition.id == catalog_id), None)
