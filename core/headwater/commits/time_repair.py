"""Mending the time of a reference whose commits were pushed ahead by a clock that was ahead: a commit on top with the right time.

It changes nothing else, and names its parent alone as ancestor, so that a search for a moment cannot pass over it (see ``as_of``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from headwater.clock import Micros, as_text
from headwater.commits.history import log
from headwater.commits.making import Part, Transaction, commit_series
from headwater.commits.objects import Head
from headwater.commits.times import credible_until, sound_times
from headwater.store import ObjectId, RealmStore, id_text

__all__ = ["Ahead", "find_ahead", "mend_time"]


class Ahead(NamedTuple):
    """Commits of a line that carry times of a clock that was ahead.

    first         the oldest of them, with which it began
    commits       how many there are down to it
    before        the time of the last commit before them; 0 when there is none, or it was collected
    """

    first: Head
    commits: int
    before: Micros


def find_ahead(rows: RealmStore, pointer: ObjectId) -> Ahead | None:
    """The commits from a pointer downwards whose times lie in the future; None when they do not, or were mended."""
    credible, first, count = credible_until(rows), None, 0
    for head, time in sound_times(log(rows, pointer)):
        if time <= credible:
            return None if first is None else Ahead(first, count, time)
        first, count = head, count + 1
    return None if first is None else Ahead(first, count, Micros(0))


def mend_time(
    rows: RealmStore, reference: str, *, properties: Callable[[Head], dict[str, Any]], fence: Callable[[], None] | None = None
) -> ObjectId | None:
    """Put a commit with the right time on top of commits that lie ahead. None: there was nothing to mend.

    This process' clock must be right: ask ``check_clock`` before.

    properties    of the commit, made of its parent's
    raises        as ``commit`` does
    """

    def parts(head: Head | None) -> Sequence[Part[None]]:
        ahead = None if head is None else find_ahead(rows, head.id)
        if head is None or ahead is None:
            return []

        def change(tx: Transaction) -> None:
            tx.mend_time(ahead.before)

        first, text = id_text(ahead.first.id), as_text(ahead.first.commit.time)
        few = "1 commit" if ahead.commits == 1 else f"{ahead.commits} commits"
        carry = "carries a time" if ahead.commits == 1 else "carry times"
        message = f"mend the time: {few} from {first} on {carry} of a clock that was ahead ({text})"
        return [Part(change, message=message, properties=properties(head))]

    done = commit_series(rows, reference, parts, fence=fence)
    return done[-1].commit_id if done else None
