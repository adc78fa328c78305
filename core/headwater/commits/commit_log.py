"""The log of a reference: its commits in both directions, the times that are certain, why there are no more; and the feed of changes.

Reliable times: a commit is never later than the one that took its place. Every commit is later than its parent, so that one by a
clock that was ahead pushes all that follow it ahead. The commit that mends the time is the one exception: it is on top of such
commits, and carries the right time.

    commit    A       B       C (a clock five years ahead)    D            M (mends)    E
    time      9:00    9:30    2031                            2031 + 1 µs  10:30        10:40
    sound     9:00    9:30    10:30                           10:30        10:30        10:40

What is known of C and D is that they were made between B and M. The commit M changes nothing else, and names its parent alone as
ancestor, so that a search for a moment cannot pass over it (see ``as_of``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import Any, NamedTuple

from headwater.clock import Micros, as_text
from headwater.commits.commit import Commit, Head, Operation, Transaction, load_head, read_commit
from headwater.commits.committer import SeriesPart, commit_series
from headwater.errors import CorruptionError, ExpiredError
from headwater.settings import check_count
from headwater.store import ObjectId, RealmReader, RealmStore, id_text

_CLIMBED = 100
"""Commits that are read together on the way up, where all ids are known."""


class LogEnd(StrEnum):
    """Why a log has no more commits."""

    BEGINNING = "beginning"
    """The log has reached the first commit."""
    CUT = "cut"
    """Older commits were collected."""
    UNTIL = "until"
    """The log has reached the commit that was asked for as the oldest."""
    BOUND = "bound"
    """The log has looked at as many commits as were allowed; there may be more among the older ones."""
    LIMIT = "limit"
    """The log has given as many commits as were wanted; there may be more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRange:
    """The part of a history that a log looks at, from the commit where it starts downwards.

    with_start    whether that commit belongs to it
    until         the oldest commit wanted; None: as far down as history goes
    with_until    whether that one belongs to it
    within        look at so many commits at most: a search that finds nothing should not read everything
    """

    with_start: bool = True
    until: ObjectId | None = None
    with_until: bool = True
    within: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyFilter:
    """Only commits that changed this key of an index, or any key with this prefix."""

    index: str
    key: bytes | None = None
    prefix: bytes = b""

    def chooses(self, commit: Commit) -> bool:
        return any(operation.index == self.index and self._is_meant(operation.key) for operation in commit.operations)

    def _is_meant(self, key: bytes) -> bool:
        return key.startswith(self.prefix) if self.key is None else key == self.key


_ALL = LogRange()


class CommitLog(Iterator[Head]):
    """Commits of a history, one by one.

    end           why there are no more. Newest first it is None until they have ended; oldest first it is what the way down met
    """

    def __init__(self, heads: Iterator[Head], end: LogEnd | None) -> None:
        self.end = end
        self._heads = heads

    def __next__(self) -> Head:
        return next(self._heads)


class DescendingLog(CommitLog):
    """Newest first: reads twenty commits at a time, as far as it is asked for them."""

    def __init__(
        self, rows: RealmReader, start: Head | None, stretch: LogRange, touching: KeyFilter | None, limit: int | None
    ) -> None:
        super().__init__(self._chosen(), None)
        self._rows = rows
        self._start = start
        self._stretch = stretch
        self._touching = touching
        self._limit = limit

    def _chosen(self) -> Iterator[Head]:
        wanted = self._wanted() if self._touching is None else filter(self._is_touched, self._wanted())
        yield from islice(wanted, self._limit)
        self.end = self.end or LogEnd.LIMIT

    def _is_touched(self, head: Head) -> bool:
        return self._touching is None or self._touching.chooses(head.commit)

    def _wanted(self) -> Iterator[Head]:
        """The commits of the range. Sets ``end`` after the last."""
        stretch, bound = self._stretch, self._bound()
        last: Head | None = None
        looked = 0
        for looked, last in enumerate(_descend(self._rows, self._start, self._most(bound)), 1):
            is_until = last.id == stretch.until
            if (looked > 1 or stretch.with_start) and (not is_until or stretch.with_until):
                yield last
            if is_until:
                self.end = LogEnd.UNTIL
                return
        if last is None or not last.commit.tail:
            self.end = LogEnd.BEGINNING
        else:
            self.end = LogEnd.BOUND if looked == bound else LogEnd.CUT

    def _bound(self) -> int | None:
        """How many commits may be looked at, with the one at the start."""
        within = self._stretch.within
        return None if within is None else within + (not self._stretch.with_start)

    def _most(self, bound: int | None) -> int | None:
        """How many commits can be needed: no more are read."""
        if self._limit is None or self._touching is not None:
            return bound
        needed = self._limit + (not self._stretch.with_start)
        return needed if bound is None else min(needed, bound)


def ascend(rows: RealmReader, down: CommitLog, limit: int | None) -> CommitLog:
    """Returns the commits of a log, oldest first. Keeps only ids in memory; commits that are collected meanwhile are left out."""
    ids = [head.id for head in down]
    heads = (Head(commit_id, commit, rows) for commit_id, commit in climb(rows, ids) if commit is not None)
    return CommitLog(islice(heads, limit), down.end)


def climb(rows: RealmReader, newest_first: Sequence[ObjectId]) -> Iterator[tuple[ObjectId, Commit | None]]:
    """Commits by their ids, the last one first; None for what was collected. Reads a hundred at a time."""
    for end in range(len(newest_first), 0, -_CLIMBED):
        block = newest_first[max(end - _CLIMBED, 0) : end][::-1]
        yield from zip(block, rows.read_many(block, Commit), strict=True)


def _descend(rows: RealmReader, start: Head | None, most: int | None) -> Iterator[Head]:
    """Walk from a commit down to the first, to where history was cut, or until ``most`` commits (at least one) were given."""
    if start is None:
        return
    yield start
    current, given = start, 1
    while current.commit.tail and (most is None or given < most):
        block = current.commit.tail[: None if most is None else most - given]
        for commit_id, commit in zip(block, rows.read_many(block, Commit), strict=True):
            if commit is None:
                return
            current = _older(current, Head(commit_id, commit, rows))
            yield current
        given += len(block)


def _older(above: Head, below: Head) -> Head:
    """Returns ``below``, whose seq must be smaller: otherwise a damaged store could send a walk round in circles."""
    if below.commit.seq >= above.commit.seq:
        raise CorruptionError(
            f"commit {id_text(below.id)} of realm {below.rows.realm!r} cannot be an ancestor of {id_text(above.id)}, which is older:"
            " run `headwater fsck`"
        )
    return below


def read_log(
    rows: RealmReader,
    start: str | ObjectId,
    *,
    oldest_first: bool = False,
    limit: int | None = None,
    stretch: LogRange = _ALL,
    touching: KeyFilter | None = None,
) -> CommitLog:
    """The history of a reference (by its name, read fresh) or of a commit (by its id), newest first unless asked.

    Ends where history begins, was cut, or as the stretch says; the log's ``end`` tells which. A walk reads twenty commits in a
    round trip. Oldest first it goes all the way down before it returns, then up again a hundred at a time: give it a stretch.

    limit         how many commits to give, of those that are wanted
    touching      only commits that changed a key, or a key with a prefix
    raises        NotFoundError: no such reference · ExpiredError: no such commit (any more)
    """
    check_count(limit, "commits of a log")
    first = load_head(rows, rows.read_reference(start, fresh=True)) if isinstance(start, str) else read_commit(rows, start)
    if oldest_first:
        return ascend(rows, DescendingLog(rows, first, stretch, touching, None), limit)
    return DescendingLog(rows, first, stretch, touching, limit)


def read_changes(rows: RealmReader, reference: str, since: ObjectId | None = None) -> Iterator[tuple[Head, Operation]]:
    """Every operation after the commit ``since`` (exclusive; None: from the beginning) up to the head as it is now, once and in order.

    To go on later, give the last commit all of whose operations were seen: of a commit that was left half-way all come again when
    the one before it is given.

    raises        ExpiredError when ``since``, or what came after it, is not there any more: read the whole state instead
    """
    if since is not None and rows.find_object(since, Commit) is None:
        raise _expired(rows, reference, since)
    down = read_log(rows, reference, stretch=LogRange(until=since, with_until=False))
    later = [head.id for head in down]
    if down.end is not (LogEnd.BEGINNING if since is None else LogEnd.UNTIL):
        raise _expired(rows, reference, since)
    for commit_id, commit in climb(rows, later):
        if commit is None:
            raise _expired(rows, reference, since)
        for operation in commit.operations:
            yield Head(commit_id, commit, rows), operation


def _expired(rows: RealmReader, reference: str, since: ObjectId | None) -> ExpiredError:
    since_text = "the beginning" if since is None else f"commit {id_text(since)}"
    return ExpiredError(
        f"the changes of reference {reference!r} of realm {rows.realm!r} since {since_text} are not there any more"
        " (collected, or never on this reference): read its whole state, and go on from that commit"
    )


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
    credible, first, count = rows.credible_until(rows.clock.now()), None, 0
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
        # Counted anew for each attempt: commits that beat this one may lie ahead too, or have mended the time already.
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
