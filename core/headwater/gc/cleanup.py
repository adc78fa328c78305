"""What a collection removes beside garbage rows: tombstones and names, stale pins, deleted catalogs, rows under purged realm keys."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from headwater.catalogs import Catalogs, release_name
from headwater.clock import Micros
from headwater.commits import read_pins, unpin_commits
from headwater.errors import CorruptionError, NotFoundError, SwapConflictError
from headwater.gc.collection_result import CollectionResult
from headwater.gc.retention import CollectionScope, ScopeEntry
from headwater.gc.throttle import FenceWatch, Throttle
from headwater.realms import RealmRegistry
from headwater.store import ObjectId, RealmId, RealmKey, Reference, ScanSplit, Store
from headwater.tasks import TaskQueue

_LATE_BATCHES = 2000
"""Under one key, in one collection: a million rows as shipped."""


def remove_tombstones(
    scope: CollectionScope, found: Iterable[tuple[ScopeEntry, Reference]], watch: FenceWatch, result: CollectionResult
) -> None:
    """Remove tombstones that nobody can read from any more, then their names."""
    slack = round(scope.rows.settings.commit_timeout_seconds * 1_000_000)
    cutoff = Micros(min(result.reader_cutoff, result.writer_cutoff) - slack)
    for entry, row in found:
        ended = row.deleted
        if ended is None or entry.listed == 0 or max(ended, entry.listed, *(m.time for m in row.moves), 0) >= cutoff:
            continue
        watch.check_fence()
        try:
            scope.rows.remove_tombstone(row)
        except SwapConflictError:
            continue  # alive again
        release_name(scope.rows, entry.name, older_than=cutoff)
        result.tombstones_removed += 1


def release_pins(store: Store, scope: CollectionScope, watch: FenceWatch, result: CollectionResult) -> None:
    """Take away the pins whose task has ended, or is no more: it died before it could do so itself."""
    tasks = TaskQueue(store)
    owners = sorted({pin.owner for pin in read_pins(scope.rows)})  # read before the tasks: who pins has an active one
    for owner in owners:
        if not _is_active(tasks, owner):
            watch.check_fence()
            result.pins_released += unpin_commits(scope.rows, owner, fence=watch.check_fence)


def finish_catalog_deletions(scope: CollectionScope, watch: FenceWatch) -> None:
    """Bury what belongs to catalogs whose hold is over."""
    Catalogs(scope.rows).finish_deletions(fence=watch.check_fence)


def collect_purged_keys(store: Store, pacing: Throttle, result: CollectionResult) -> None:
    """Delete the rows that late writers left under purged keys, and forget keys that are old enough and have none.

    A key whose writers go on and on is left to the next collection after so many batches.
    """
    realms = RealmRegistry(store)
    oldest = store.clock.now() - store.settings.purged_keys_kept_seconds * 1_000_000
    purged = realms.purged_keys()
    fed = {
        key
        for key in keys_with_rows(store, purged, pacing.watch.check_now_and_then)
        if not _is_cleared(store, key, pacing, result)
    }
    old = [key for key, removed in purged.items() if removed < oldest and key not in fed]
    realms.forget_purged_keys(old, fence=pacing.watch.check_fence)


def _is_cleared(store: Store, key: RealmKey, pacing: Throttle, result: CollectionResult) -> bool:
    rows, size = store.rows(RealmId("purged"), key), store.settings.delete_batch
    for _ in range(_LATE_BATCHES):
        pacing.before_deleting(size)
        deleted = rows.delete_rows(size)
        result.late_rows_deleted += deleted
        if not deleted:
            return rows.is_empty()
    return False


def _is_active(tasks: TaskQueue, owner: ObjectId) -> bool:
    try:
        return tasks.read_task(owner).value.is_active
    except NotFoundError:
        return False
    except CorruptionError:
        return True  # for all that can be told, and a pin too many only keeps what it names


_SCAN_ROWS = 1000


def keys_with_rows(store: Store, keys: Collection[RealmKey], fence: Callable[[], None]) -> list[RealmKey]:
    """Those of the keys that some row carries: each looked up where keys are ordered, else all in one scan."""
    if not keys or store.backend.capabilities.ordered_keys:
        return [key for key in keys if not store.rows(RealmId("any"), key).is_empty()]
    return sorted(keys_in_use(store, fence).intersection(keys))


def keys_in_use(store: Store, fence: Callable[[], None] = lambda: None) -> set[RealmKey]:
    """All realm keys that some row carries."""
    found: set[RealmKey] = set()
    after = None
    while batch := store.backend.scan_objects(ScanSplit(), after, _SCAN_ROWS):
        fence()
        found.update(key.realm for key in batch)
        after = batch[-1].position
    name = None
    while rows := store.backend.scan_references(ScanSplit(), name, _SCAN_ROWS):
        fence()
        found.update(row.realm for row in rows)
        name = rows[-1].position
    return found
