"""What goes beside a realm's garbage: tombstones and names, claims, pins, catalogs whose hold is over, rows under purged keys."""

from __future__ import annotations

from collections.abc import Iterable

from headwater.catalogs import Catalogs, release_name
from headwater.clock import Micros
from headwater.commits import read_pins, unpin_commits
from headwater.errors import BeatenError, MissingError, UnreadableError
from headwater.maintenance.garbage.counts import Collected
from headwater.maintenance.garbage.keys import keys_with_rows
from headwater.maintenance.garbage.listing import Listed, Scope
from headwater.maintenance.garbage.pacing import Pacing, Watch
from headwater.realms import Realms
from headwater.store import ObjectId, RealmId, RealmKey, Reference, Store
from headwater.tasks import Tasks

__all__ = ["bury", "collect_purged_keys", "finish_catalogs", "release_pins"]

_LATE_BATCHES = 2000
"""Under one key, in one collection: a million rows as shipped."""


def bury(scope: Scope, found: Iterable[tuple[Listed, Reference]], watch: Watch, result: Collected) -> None:
    """Remove tombstones that nobody can read from any more, then their names."""
    slack = round(scope.rows.settings.commit_timeout_seconds * 1_000_000)
    cutoff = Micros(min(result.reader_cutoff, result.writer_cutoff) - slack)
    for entry, row in found:
        ended = row.deleted
        if ended is None or entry.listed == 0 or max(ended, entry.listed, *(m.time for m in row.moves), 0) >= cutoff:
            continue
        watch.check()
        try:
            scope.rows.remove_tombstone(row)
        except BeatenError:
            continue  # alive again
        release_name(scope.rows, entry.name, older_than=cutoff)
        result.tombstones_removed += 1


def release_pins(store: Store, scope: Scope, watch: Watch, result: Collected) -> None:
    """Take away the pins whose task has ended, or is no more: it died before it could do so itself."""
    tasks = Tasks(store)
    owners = sorted({pin.owner for pin in read_pins(scope.rows)})  # read before the tasks: who pins has an active one
    for owner in owners:
        if not _is_active(tasks, owner):
            watch.check()
            result.pins_released += unpin_commits(scope.rows, owner, fence=watch.check)


def finish_catalogs(scope: Scope, watch: Watch) -> None:
    """Bury what belongs to catalogs whose hold is over."""
    Catalogs(scope.rows).finish_deletions(fence=watch.check)


def collect_purged_keys(store: Store, pacing: Pacing, result: Collected) -> None:
    """Delete the rows that late writers left under purged keys, and forget keys that are old enough and have none.

    A key whose writers go on and on is left to the next collection after so many batches.
    """
    realms = Realms(store)
    oldest = store.clock.now() - store.settings.purged_keys_kept_seconds * 1_000_000
    purged = realms.purged_keys()
    fed = {key for key in keys_with_rows(store, purged, pacing.watch.look) if not _is_cleared(store, key, pacing, result)}
    old = [key for key, removed in purged.items() if removed < oldest and key not in fed]
    realms.forget_purged_keys(old, fence=pacing.watch.check)


def _is_cleared(store: Store, key: RealmKey, pacing: Pacing, result: Collected) -> bool:
    rows, size = store.rows(RealmId("purged"), key), store.settings.delete_batch
    for _ in range(_LATE_BATCHES):
        pacing.before_deleting(size)
        deleted = rows.delete_rows(size)
        result.late_rows_deleted += deleted
        if not deleted:
            return rows.is_empty()
    return False


def _is_active(tasks: Tasks, owner: ObjectId) -> bool:
    try:
        return tasks.read(owner).value.is_active
    except MissingError:
        return False
    except UnreadableError:
        return True  # for all that can be told, and a pin too many only keeps what it names
