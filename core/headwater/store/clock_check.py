"""Checks whether this process' clock can be right, against the database's clock or against what other processes left in the store.

A clock that is ahead ends every grace period and every retention early, so everything that deletes by age calls this first.

PostgreSQL and MongoDB have a clock of their own. SQLite and memory share this machine's clock, so only the store's own past can tell:
a machine whose clock jumped ahead finds that nobody wrote anything for all the time in between.

    leases          a  b   c                                                       d  now
    2026                                                                          2031
                           |------------ nobody for longer than 14 days ----------|--| less than a day of work after it

A process that keeps running needs no other evidence for the time since it opened the store, as long as its wall clock advances with
its monotonic clock. When it does not, the time that the clock would show had it not been set is the newest trace.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise

from msgspec.structs import replace

from headwater.clock import Micros, as_text
from headwater.errors import HeadwaterError, UnavailableError
from headwater.settings import duration_text
from headwater.store.id_generator import NodeLease, node_lease_id
from headwater.store.ids import NODES, ObjectId, fixed_id, id_time, node_of
from headwater.store.stored_objects import StoredObject, Versioned, object_type
from headwater.store.stores import Store

_GAP_SECONDS = 14 * 86400.0
"""A store in use is written to more often: its tasks and collections alone do so once a week."""
_SETTLED_SECONDS = 86400.0
"""For this long after a gap nothing is deleted by age, unless somebody confirms the clock."""
_AGAIN_SECONDS = 60.0
"""When to check again a clock that differs from the database's: on another machine, or after it was corrected."""
_LONG_AGO = Micros(0)
_CONFIRMED_ID = fixed_id(5)
_REFERENCES = ("realms", "tasks", "maintenance-runs")


class DoubtfulClockError(UnavailableError):
    """The clock may be ahead. Try again at ``until``, on a machine whose clock is right, or confirm that this one is."""

    def __init__(self, message: str, *, until: int = 0) -> None:  # default: it is pickled
        super().__init__(message)
        self.until = Micros(until)


@object_type("clock-confirmation", updateable=True)
class ClockConfirmation(StoredObject, frozen=True, kw_only=True):
    """Confirmations and doubts about the clocks of a store without a server clock; each time is from the clock concerned.

    time          when a person last confirmed the clock; 0: never
    doubted       the end of the gap that last caused a doubt; 0: none. That time then counts as a trace, so that the doubt ends
    """

    time: Micros
    doubted: Micros = Micros(0)


def check_clock(store: Store, *, is_noted: bool = False) -> None:
    """Raise if this process' clock is doubtful. Call this before anything is deleted or released because of its age.

    is_noted      whether to record a doubt, so that it ends a day after it was first raised, even if nobody writes anything else
    raises        DoubtfulClockError when it differs from the database's by more than clocks may, or when nobody wrote to the store
                  for long before a time that is not long ago
    """
    before, server, now = store.clock.now(), store.server_time(), store.clock.now()
    if server is None:
        _check_gap(store, is_noted=is_noted)
        return
    bound = store.settings.clock_bound_seconds
    difference = max(before - server, server - now, 0)  # the answer may have taken its time: it is of some moment in between
    if difference > bound * 1_000_000:
        raise DoubtfulClockError(
            f"this machine's clock says {as_text(now)}, and that of the database {as_text(server)}: they may differ by"
            f" {duration_text(bound)} at most; set the clocks right. Nothing is deleted because of its age until then",
            until=now + round(_AGAIN_SECONDS * 1_000_000),
        )


def confirm_clock(store: Store) -> None:
    """Record that the clock is right, for all processes. SwapConflictError when another process confirms it at the same time."""
    now, seen = store.clock.now(), store.system.find_versioned(_CONFIRMED_ID, ClockConfirmation)
    if seen is None:
        store.system.insert_object(_CONFIRMED_ID, ClockConfirmation(time=now))
    else:
        store.system.update_object(seen, replace(seen.value, time=now))


def _check_gap(store: Store, *, is_noted: bool) -> None:
    seen = store.system.find_versioned(_CONFIRMED_ID, ClockConfirmation)
    known = ClockConfirmation(time=_LONG_AGO) if seen is None else seen.value
    steady, now = store.clock_watch.look(tolerated_seconds=_GAP_SECONDS), store.clock.now()
    traces = (known.time, known.doubted, steady.before, *_traces(store))
    times = sorted({steady.since, *(time for time in traces if 0 < time <= steady.since)}, reverse=True)
    gaps = ((after, before) for after, before in pairwise(times) if after - before > _GAP_SECONDS * 1_000_000)
    after, before = next(gaps, (_LONG_AGO, _LONG_AGO))
    until = Micros(after + round(_SETTLED_SECONDS * 1_000_000))
    if now >= until or after <= known.time <= now:
        return
    if is_noted and known.doubted != after:
        _note(store, seen, replace(known, doubted=after))
    raise DoubtfulClockError(
        f"this machine's clock says {as_text(now)}, and nobody wrote to the store between {as_text(before)} and {as_text(after)}: if it"
        f" was not idle for so long, the clock is ahead; set it right. Nothing is deleted because of its age before {as_text(until)}."
        " `headwater gc run REALM --clock-is-right` says that the clock is right",
        until=until,
    )


def _note(store: Store, seen: Versioned[ClockConfirmation] | None, doubt: ClockConfirmation) -> None:
    # another process may note it at this moment; and the doubt stands, whether it is noted or not
    with suppress(HeadwaterError):
        if seen is None:
            store.system.insert_object(_CONFIRMED_ID, doubt)
        else:
            store.system.update_object(seen, doubt)


def _traces(store: Store) -> Iterator[Micros]:
    """The times at which other processes wrote to the store, by their clocks: their leases, and the latest system-realm commits."""
    leases = store.system.read_each_versioned([node_lease_id(node) for node in range(NODES)], NodeLease)
    for node, stored in enumerate(leases):
        if isinstance(stored, Versioned) and node not in store.ids.nodes:
            lease = stored.value
            renewed = lease.end - round(store.settings.node_lease_seconds * 1000) if lease.owner else lease.end
            yield id_time(ObjectId(max(lease.start, renewed) << 22))
    for row in store.system.find_rows(_REFERENCES):
        for pointer in () if row is None else (row.pointer, *row.recent):
            if pointer is not None and node_of(pointer) not in store.ids.nodes:
                yield id_time(pointer)
