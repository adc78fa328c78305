"""Purge a realm: delete its file tables, then its rows in bounded batches, and move it to PURGED only when a scan finds none.

The file tables first: the realm's rows say where their files are. PURGED means that both databases are empty."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from headwater.errors import RefusedError, UnavailableError
from headwater.gc import PhaseTimer
from headwater.purge.file_table_purge import FileTablePurge, PurgedFileTables
from headwater.realms import Realm, RealmRegistry, RealmState
from headwater.store import RealmStore, Store
from headwater.store.store_identity import check_may_maintain
from headwater.throttle import Fence, ProgressCallback, Throttle, no_progress

_ROUNDS = 20
_BATCHES = 10


@dataclass(slots=True)
class PurgedRealm:
    """What a purge deleted.

    rounds        scans that still found rows of late writers
    files         what was deleted of its file tables
    seconds       by phase: files, count, delete
    """

    realm: str
    rows_deleted: int = 0
    rounds: int = 0
    files: PurgedFileTables = field(default_factory=PurgedFileTables)
    seconds: dict[str, float] = field(default_factory=dict)

    def as_plain(self) -> dict[str, Any]:
        return {
            "realm": self.realm,
            "rowsDeleted": self.rows_deleted,
            "rounds": self.rounds,
            **({"fileTables": self.files.as_plain()} if self.files.tables or self.files.rows else {}),
            "seconds": {name: round(seconds, 3) for name, seconds in self.seconds.items()},
        }


def purge_realm(
    store: Store,
    realm_id: str,
    *,
    key: int | None = None,
    fence: Fence = lambda: None,
    progress: ProgressCallback = no_progress,
) -> PurgedRealm:
    """Delete every row of a PURGING realm, verify, and move it to PURGED. Idempotent: on a PURGED realm it deletes what late writers left,
    and for a realm whose entry was deleted it does nothing.

    key           the key of the realm to purge: a realm of the same id that was created later is left alone
    raises        RefusedError in any state but PURGING and PURGED, under another key, and where only a later release may maintain the
                  store · UnavailableError when late writers keep adding rows, or data files cannot be deleted · FencedError when the
                  task was taken over
    """
    realms = RealmRegistry(store)
    result = PurgedRealm(realm_id)
    if key is not None and _is_gone(realms, realm_id, key):
        return result
    check_may_maintain(store, "a purge")
    realm = _check_key(realms.read_realm(realm_id), key)
    state = RealmState.PURGED if realm.state is RealmState.PURGED else RealmState.PURGING
    rows = realms.open_realm_for(realm_id, state)  # checks state and key before every batch
    pacing, phases = Throttle(store.settings, store.clock, fence), PhaseTimer(store.clock, result.seconds)
    files = FileTablePurge(store, rows, fence=fence, progress=progress)
    result.files = files.result
    with phases.time_phase("count"):
        total = _count(rows, pacing)
    while result.rounds < _ROUNDS:
        with phases.time_phase("files"):
            files.empty_realm()
        with phases.time_phase("delete"):
            _delete(rows, total, pacing, progress, result)
        if rows.is_empty() and not files.left_scopes():
            realms.move_realm(_check_key(realms.read_realm(realm_id), key), RealmState.PURGED, fence=fence)
            return result
        result.rounds += 1
    raise UnavailableError(
        f"realm {realm_id!r} still gets new rows after {result.rows_deleted} were deleted: stop its writers; the purge goes on by itself"
    )


def _delete(rows: RealmStore, total: int, pacing: Throttle, progress: ProgressCallback, result: PurgedRealm) -> None:
    """Delete batch after batch until no row is left, or late writers have added rows for too long."""
    size = rows.settings.delete_batch
    for _ in range(2 * total // size + _BATCHES):
        pacing.before_deleting(size)
        deleted = rows.delete_rows(size)
        if not deleted:
            return
        result.rows_deleted += deleted
        progress(result.rows_deleted, max(total, result.rows_deleted), "rows deleted")


def _count(rows: RealmStore, pacing: Throttle) -> int:
    """Count the rows to delete by one scan of their keys, because no database is asked to count."""
    total = sum(1 for _ in rows.scan_references())
    for batch in rows.scan_objects():
        pacing.before_scanning_on(len(batch))
        total += len(batch)
    return total


def _is_gone(realms: RealmRegistry, realm_id: str, key: int) -> bool:
    """Whether the realm of that key was purged and deleted: an attempt that was killed before its end does not know that."""
    realm = realms.find_realm(realm_id)
    return (realm is None or realm.key != key) and key in realms.purged_keys()


def _check_key(realm: Realm, key: int | None) -> Realm:
    if key is not None and realm.key != key:
        raise RefusedError(
            f"realm {realm.id!r} was created again (key {realm.key}, not {key}): the purge of the old one must not touch it"
        )
    return realm
