"""The work of a task of the kind `export`."""

from __future__ import annotations

from typing import Any

from headwater.clock import Micros, as_text
from headwater.errors import UnavailableError
from headwater.maintenance.archives import Order, export, is_swept, readable_from
from headwater.maintenance.work.places import file_here
from headwater.maintenance.work.recorded import recorded
from headwater.realms import Realms
from headwater.store import Store
from headwater.tasks import Claim, NotYetError

__all__ = ["run_export"]

_LOOK_AGAIN_SECONDS = 10.0


def run_export(store: Store, claim: Claim) -> dict[str, Any]:
    """Export the task's realm.

    arguments     `file` and `host`: where to (see `places`); `asOf`: microseconds since 1970, absent for the newest moment that
                  can be read when the attempt begins
    raises        NotYetError while a collection sweeps, as long as the moment can still be told after that
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
    _check_unswept(store, order)
    return recorded(store, claim, lambda: export(store, order, fence=claim.check, progress=claim.report).as_plain())


def _check_over(store: Store, order: Order) -> None:
    """The door has seen that its moment will be readable; here a clock may be behind that one's."""
    if order.time is not None and store.clock.now() < readable_from(order.time, store.settings):
        raise UnavailableError(
            f"realm {order.realm!r} as of {as_text(order.time)} cannot be read yet: the export goes on by itself"
        )


def _check_unswept(store: Store, order: Order) -> None:
    """Leave the worker to others meanwhile: it may be the one that ends an interrupted sweep."""
    realm = Realms(store).find(order.realm)
    if realm is None or not is_swept(store.rows(realm.id, realm.key)):
        return
    grace = store.settings.reader_grace_seconds - _LOOK_AGAIN_SECONDS
    if order.time is None or store.clock.now() < order.time + round(grace * 1_000_000):
        raise NotYetError(
            f"a collection of realm {order.realm!r} is sweeping, and nothing can be pinned: the export goes on after it",
            seconds=_LOOK_AGAIN_SECONDS,
        )
