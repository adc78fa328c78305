"""The work of a task of the kind `export`."""

from __future__ import annotations

from typing import Any

from headwater.clock import Micros, as_text
from headwater.errors import UnavailableError
from headwater.maintenance.archives import Order, export, readable_from
from headwater.maintenance.work.places import file_here
from headwater.maintenance.work.recorded import recorded
from headwater.store import Store
from headwater.tasks import Claim

__all__ = ["run_export"]


def run_export(store: Store, claim: Claim) -> dict[str, Any]:
    """Export the task's realm.

    arguments     `file` and `host`: where to (see `places`); `asOf`: microseconds since 1970, absent for the newest moment that
                  can be read when the attempt begins
    """
    task = claim.task
    as_of = task.arguments.get("asOf")
    order = Order(
        realm=task.realm,
        realm_key=task.realm_key,
        file=file_here(task),
        time=None if as_of is None else Micros(as_of),
        task=claim.id,
        attempt=claim.attempt,
    )
    _check_over(store, order)
    return recorded(store, claim, lambda: export(store, order, fence=claim.check, progress=claim.report).as_plain())


def _check_over(store: Store, order: Order) -> None:
    """The door has seen that its moment will be readable; here a clock may be behind that one's."""
    if order.time is not None and store.clock.now() < readable_from(order.time, store.settings):
        raise UnavailableError(
            f"realm {order.realm!r} as of {as_text(order.time)} cannot be read yet: the export goes on by itself"
        )
