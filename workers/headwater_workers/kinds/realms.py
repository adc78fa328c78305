"""Which realm a task is about: the one that had this id when it was asked for, and no later one."""

from __future__ import annotations

from headwater.errors import RefusedError
from headwater.realms import Realms
from headwater.store import SYSTEM_REALM, Store
from headwater.tasks import Task

__all__ = ["require_same_realm"]


def require_same_realm(store: Store, task: Task) -> None:
    """raises RefusedError for a task of a realm that was purged, and created anew under the same id; MissingError"""
    if task.realm == SYSTEM_REALM or task.realm_key == 0:
        return
    realm = Realms(store).read(task.realm)
    if realm.key != task.realm_key:
        raise RefusedError(f"realm {task.realm!r} was created anew since this task was asked for: ask again")
