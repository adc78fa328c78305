"""Work that waits for its realm: what users asked for in a realm that sleeps by now is done when it wakes, and is no failure."""

from __future__ import annotations

from headwater.maintenance.work.recorded import open_realm
from headwater.realms import Realms, RealmState
from headwater.store import RealmStore, Store
from headwater.tasks import NotYetError, Task

__all__ = ["open_active_realm"]


def open_active_realm(store: Store, task: Task) -> RealmStore:
    """As ``open_realm``, for work that a user could do by hand.

    raises        NotYetError while the realm is INACTIVE; RefusedError in any other state but ACTIVE, or when it was created anew;
                  MissingError
    """
    rows = open_realm(store, task)
    realm = Realms(store).read(task.realm)
    if realm.state is RealmState.INACTIVE and realm.key == rows.key:
        raise NotYetError(f"realm {task.realm!r} is INACTIVE: this goes on once it is activated")
    rows.check_write()
    return rows
