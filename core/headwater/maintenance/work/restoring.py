"""The work of a task of the kind `restore`."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from headwater.commits import unpin_commits
from headwater.errors import HeadwaterError, MissingError, RefusedError, UnreadableError
from headwater.maintenance.restoring import Asked, Request, restore
from headwater.maintenance.work.recorded import recorded
from headwater.realms import Realms, RealmState
from headwater.store import RealmStore, Store
from headwater.tasks import Claim, Task

__all__ = ["run_restore"]


def run_restore(store: Store, claim: Claim) -> dict[str, Any]:
    """Restore what the task's arguments name (see ``Request.arguments``). Done again it finds nothing to do."""
    rows = _open(store, claim.task)

    def work() -> dict[str, Any]:
        request = Request.of(claim.task.arguments)
        try:
            return restore(
                rows,
                claim.id,
                request,
                asked=Asked(claim.task.created, is_resumed=claim.attempt > 1),
                fence=claim.check,
                progress=claim.report,
            ).as_plain()
        except (RefusedError, MissingError, UnreadableError):
            with suppress(HeadwaterError):  # the next collection gives up the pins of tasks that ended
                unpin_commits(rows, claim.id, fence=claim.check)
            raise

    return recorded(store, claim, work)


def _open(store: Store, task: Task) -> RealmStore:
    """A handle on the realm as it is, serving or at rest: an undo is often wanted while nobody works with it."""
    realms = Realms(store)
    realm = realms.read(task.realm)
    if task.realm_key not in (0, realm.key):
        raise RefusedError(f"realm {realm.id!r} was created anew since this task was asked for: ask again")
    if realm.state not in (RealmState.ACTIVE, RealmState.INACTIVE):
        raise RefusedError(f"realm {realm.id!r} is {realm.state}: only ACTIVE and INACTIVE realms are restored")
    return realms.open_for(realm.id, realm.state)
