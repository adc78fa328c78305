"""Reliable commit times: a commit is never later than the one that took its place.

Every commit is later than its parent, so that one by a clock that was ahead pushes all that follow it ahead. The commit that mends
the time is the one exception: it is on top of such commits, and carries the right time.

    commit    A       B       C (a clock five years ahead)    D            M (mends)    E
    time      9:00    9:30    2031                            2031 + 1 µs  10:30        10:40
    sound     9:00    9:30    10:30                           10:30        10:30        10:40

What is known of C and D is that they were made between B and M.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from headwater.clock import Micros
from headwater.commits.objects import Head
from headwater.store import RealmStore

__all__ = ["credible_until", "sound_times"]


def credible_until(rows: RealmStore) -> Micros:
    """The latest time that can be right now: this process' clock, and what clocks may differ by. A later one is of a wrong clock."""
    return Micros(rows.clock.now() + round(rows.settings.clock_bound_seconds * 1_000_000))


def sound_times(newest_first: Iterable[Head]) -> Iterator[tuple[Head, Micros]]:
    """Each commit of a line with its sound time: its own, or that of the first one above it that is earlier."""
    sound: Micros | None = None
    for head in newest_first:
        sound = head.commit.time if sound is None else min(sound, head.commit.time)
        yield head, sound
