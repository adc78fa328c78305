"""Reliable commit times: a commit is never later than the one that took its place.

Every commit is later than its parent, so that one by a clock that was ahead pushes all that follow it ahead. The commit that mends
the time is the one exception: it is on top of such commits, and carries the right time.

    commit    A       B       C (a clock five years ahead)    D            M (mends)    E
    time      9:00    9:30    2031                            2031 + 1 µs  10:30        10:40
    sound     9:00    9:30    10:30                           10:30        10:30        10:40

What is known of C and D is that they were made between B and M. The commit M changes nothing else, and names its parent alone as
ancestor, so that a search for a moment cannot pass over it (see ``as_of``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from headwater.clock import Micros, as_text
from headwater.commits.commit import Head
from headwater.commits.commit_log import read_log
from headwater.commits.committer import SeriesPart, commit_series
from headwater.commits.transaction import Transaction
from headwater.store import ObjectId, RealmReader, RealmStore, id_text


def credible_until(rows: RealmReader) -> Micros:
    """The latest time that can be right: now, plus the bound by which clocks may differ. A later time is of a wrong clock."""
    return Micros(rows.clock.now() + round(rows.settings.clock_bound_seconds * 1_000_000))


def sound_times(newest_first: Iterable[Head]) -> Iterator[tuple[Head, Micros]]:
    """Each commit of a line with its sound time: its own, or that of the first one above it that is earlier."""
    sound: Micros | None = None
    for head in newest_first:
        sound = head.commit.time if sound is None else min(sound, head.commit.time)
        yield head, sound


class CommitsAhead(NamedTuple):
    """Commits of a line that carry times of a clock that was ahead.

    first         the oldest of them, with which it began
    commits       how many there are down to it
    before        the time of the last commit before them; 0 when there is none, or it was collected
    """

    first: Head
    commits: int
    before: Micros


def find_ahead(rows: RealmReader, pointer: ObjectId) -> CommitsAhead | None:
    """The commits from a pointer downwards whose times lie in the future; None when they do not, or were mended."""
    credible, first, count = credible_until(rows), None, 0
    for head, time in sound_times(read_log(rows, pointer)):
        if time <= credible:
            return None if first is None else CommitsAhead(first, count, time)
        first, count = head, count + 1
    return None if first is None else CommitsAhead(first, count, Micros(0))


def mend_time(
    rows: RealmStore, reference: str, *, properties: Callable[[Head], dict[str, Any]], fence: Callable[[], None] | None = None
) -> ObjectId | None:
    """Put a commit with the right time on top of commits that lie ahead. None: there was nothing to mend.

    This process' clock must be right: ask ``check_clock`` before.

    properties    of the commit, made of its parent's
    raises        as ``commit_change`` does
    """

    def parts(head: Head | None) -> Sequence[SeriesPart[None]]:
        ahead = None if head is None else find_ahead(rows, head.id)
        if head is None or ahead is None:
            return []

        def change(tx: Transaction) -> None:
            tx.mend_time(ahead.before)

        first, text = id_text(ahead.first.id), as_text(ahead.first.commit.time)
        few = "1 commit" if ahead.commits == 1 else f"{ahead.commits} commits"
        carry = "carries a time" if ahead.commits == 1 else "carry times"
        message = f"mend the time: {few} from {first} on {carry} of a clock that was ahead ({text})"
        return [SeriesPart(change, message=message, properties=properties(head))]

    done = commit_series(rows, reference, parts, fence=fence)
    return done[-1].commit_id if done else None
