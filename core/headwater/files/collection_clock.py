"""The time by which a collection of files marks and deletes, and since when it can be trusted.

Marks of one collection are compared with the time of a later one, perhaps on another machine. A clock that was behind when it marked, or
is ahead when it deletes, ends the delay early. So the time is that of the database server, where it has a clock.

SQLite and memory have none, and then all processes share a machine. Its monotonic clock advances evenly, so its wall time minus its
monotonic time, the *offset*, stays the same until somebody sets the clock, or the machine starts anew. The store keeps the offset that
was seen last. A collection that sees another one stores it, and nothing is deleted until the delay has passed since then::

    clock       12:00      12:10      13:00 (was set)        13:10        13:30
    offset        a          a          b                      b            b
                marks      waits      stores b: not yet      not yet      deletes, with a delay of 30 minutes
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from headwater.clock import Micros, as_text
from headwater.errors import SwapConflictError, UnknownOutcomeError
from headwater.store import Store, StoredObject, Versioned, check_clock, fixed_id, object_type

CLOCK_OFFSET_ID = fixed_id(6)
_ALWAYS = Micros(0)
_TOLERATED_MICROS = 10_000_000
"""How far the offset may move: the two clocks are read one after the other, and suspended machines move it."""


@object_type("clock-offset", updateable=True)
class ClockOffset(StoredObject, frozen=True, kw_only=True):
    """Wall time minus monotonic time, as a collection saw it, and the wall time at which another one was replaced by it."""

    offset: int
    since: Micros


@dataclass(frozen=True, slots=True)
class CollectionTime:
    """What time it is, and since when the clock is known to have been steady; 0: all the time."""

    now: Micros
    steady_since: Micros = _ALWAYS

    def latest_mark(self, delay_seconds: float) -> Micros:
        """Files that were marked before this may be deleted. 0: none."""
        before = self.now - round(delay_seconds * 1_000_000)
        return Micros(0) if before < self.steady_since else Micros(max(before, 0))

    def why_none(self, delay_seconds: float) -> str:
        """Why no file may be deleted although the delay is over; empty where that is not so."""
        if not self.steady_since or self.latest_mark(delay_seconds):
            return ""
        until = Micros(self.steady_since + round(delay_seconds * 1_000_000))
        return (
            f"this machine's clock was set, or the machine started anew, shortly before {as_text(self.steady_since)}:"
            f" nothing is deleted before {as_text(until)}"
        )


def read_collection_time(store: Store, *, is_noted: bool = True) -> CollectionTime:
    """The time, from the database server where it has a clock.

    is_noted      whether to store what was seen of this machine's clock; a plan stores nothing
    raises        DoubtfulClockError when this machine's clock is doubtful and there is no other
    """
    server = store.server_time()
    if server is not None:
        return CollectionTime(server)
    check_clock(store, is_noted=is_noted)
    now = store.clock.now()
    offset = now - round(store.clock.monotonic() * 1_000_000)
    seen = store.system.find_versioned(CLOCK_OFFSET_ID, ClockOffset)
    if seen is not None and abs(seen.value.offset - offset) <= _TOLERATED_MICROS and seen.value.since <= now:
        return CollectionTime(now, seen.value.since)
    since = Micros(0) if seen is None else now  # before the first collection no file was marked
    if is_noted:
        _note(store, seen, ClockOffset(offset=offset, since=since))
    return CollectionTime(now, since)


def _note(store: Store, seen: Versioned[ClockOffset] | None, offset: ClockOffset) -> None:
    # Another collection notes it at this moment, or the next one does: this one deletes nothing either way.
    with suppress(SwapConflictError, UnknownOutcomeError):
        if seen is None:
            store.system.insert_object(CLOCK_OFFSET_ID, offset)
        else:
            store.system.update_object(seen, offset)
