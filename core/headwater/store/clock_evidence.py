"""Whether this process' clock can be right: held against the database's, or against what other processes left in the store.

A clock that is ahead lets every grace and every retention end early, so that whoever deletes by age asks here first.

PostgreSQL and MongoDB have a clock of their own. SQLite and memory have that of this machine. There the store's own past is all that
there is: a machine whose clock jumps ahead finds that nobody wrote anything for all the time in between.

    leases          a  b   c                                                       d  now
    2026                                                                          2031
                           |------------ nobody for longer than 14 days ----------|--| less than a day of work after it
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from headwater.clock import Micros, as_text
from headwater.errors import RefusedError, UnavailableError, UnreadableError
from headwater.settings import duration_text
from headwater.store.identity import NODES, ObjectId, fixed_id, id_time
from headwater.store.ids import NodeLease, node_lease_id
from headwater.store.nodes import node_of
from headwater.store.objects import StoredObject, object_type
from headwater.store.realm_rows import RealmStore
from headwater.store.stores import Store

__all__ = ["DoubtfulClockError", "check_clock", "confirm_clock"]

_GAP_SECONDS = 14 * 86400.0
"""A store in use is written to more often: its tasks and collections alone do so once a week."""
_SETTLED_SECONDS = 86400.0
"""So long after a gap nothing is deleted by age, unless somebody confirmed the clock."""
_LONG_AGO = Micros(0)
_CONFIRMED_ID = fixed_id(5)
_REFERENCES = ("realms", "tasks", "maintenance-runs")


class DoubtfulClockError(UnavailableError):
    """The clock may be ahead: wait until ``until``, or confirm that it is right."""

    def __init__(self, message: str, *, until: int = 0) -> None:  # default: it is pickled
        super().__init__(message)
        self.until = Micros(until)


@object_type("clock-confirmation", updateable=True)
class ClockConfirmation(StoredObject, frozen=True, kw_only=True):
    """When a person said last that the clock, which said so, is right."""

    time: Micros


def check_clock(store: Store) -> None:
    """Pass if nothing speaks against this process' clock. Ask before anything is deleted, or let go, because of its age.

    raises        RefusedError when it differs from the database's by more than clocks may · DoubtfulClockError when nobody wrote
                  to the store for long before a time that is not long ago
    """
    before, server, now = store.clock.now(), store.server_time(), store.clock.now()
    if server is None:
        _check_gap(store, now)
        return
    bound = store.settings.clock_bound_seconds
    difference = max(before - server, server - now, 0)  # the answer may have taken its time: it is of some moment in between
    if difference > bound * 1_000_000:
        raise RefusedError(
            f"this machine's clock says {as_text(now)}, and that of the database {as_text(server)}: they may differ by"
            f" {duration_text(bound)} at most; set the clocks right. Nothing is deleted because of its age until then"
        )


def confirm_clock(store: Store) -> None:
    """Write down that the clock is right, for all processes. BeatenError when another does so just now."""
    confirmed = ClockConfirmation(time=store.clock.now())
    seen = store.system.find_versioned(_CONFIRMED_ID, ClockConfirmation)
    if seen is None:
        store.system.insert(_CONFIRMED_ID, confirmed)
    else:
        store.system.update(seen, confirmed)


def _check_gap(store: Store, now: Micros) -> None:
    confirmed = store.system.find_versioned(_CONFIRMED_ID, ClockConfirmation)
    said = _LONG_AGO if confirmed is None else confirmed.value.time
    times = sorted({now, *(time for time in (said, *_traces(store)) if 0 < time <= now)}, reverse=True)
    gaps = ((after, before) for after, before in pairwise(times) if after - before > _GAP_SECONDS * 1_000_000)
    after, before = next(gaps, (_LONG_AGO, _LONG_AGO))
    until = Micros(after + round(_SETTLED_SECONDS * 1_000_000))
    if now >= until or after <= said <= now:
        return
    raise DoubtfulClockError(
        f"this machine's clock says {as_text(now)}, and nobody wrote to the store between {as_text(before)} and {as_text(after)}: if it"
        f" was not idle for so long, the clock is ahead; set it right. Nothing is deleted because of its age before {as_text(until)}."
        " `headwater gc run REALM --clock-is-right` says that the clock is right",
        until=until,
    )


def _traces(store: Store) -> Iterator[Micros]:
    """When other processes wrote to the store, by their clocks: their leases, and the latest commits of the system realm."""
    for node, lease in _leased(store.system, range(NODES)):
        if node not in store.nodes:
            renewed = lease.end - round(store.settings.node_lease_seconds * 1000) if lease.owner else lease.end
            yield id_time(ObjectId(max(lease.start, renewed) << 22))
    for row in store.system.find_rows(_REFERENCES):
        for pointer in () if row is None else (row.pointer, *row.recent):
            if pointer is not None and node_of(pointer) not in store.nodes:
                yield id_time(pointer)


def _leased(rows: RealmStore, nodes: Sequence[int]) -> Iterator[tuple[int, NodeLease]]:
    """The leases that can be read, by node."""
    try:
        found = rows.read_many_versioned([node_lease_id(node) for node in nodes], NodeLease)
    except UnreadableError:
        if len(nodes) > 1:
            half = len(nodes) // 2
            yield from _leased(rows, nodes[:half])
            yield from _leased(rows, nodes[half:])
        return
    yield from ((node, lease.value) for node, lease in zip(nodes, found, strict=True) if lease is not None)
