"""The state of a reference as of a past moment: for logs, revisions such as ``main*TIME``, restorations and exports.

A row knows since when it is there, when it was deleted, and each pointer that it left other than by a commit on top, with the time:

    row           pointer D, created 9:00, moves (B, 11:00)
    history       A 9:10 - B 9:50        C 10:20 - D 11:30
    at 10:00      the pointer that was left first after it is B, whose newest commit by then is B itself
    at 11:10      none was left after it: D, whose newest commit by then is C

A commit by a clock that was ahead makes times useless until they are mended (see ``commit_log``): a walk that meets one refuses, because
it would pass over every commit that was pushed ahead and give an old state without a word.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from headwater.clock import Micros, as_text
from headwater.commits.commit import Commit, Head, read_commit
from headwater.errors import ExpiredError, NotFoundError, RefusedError
from headwater.store import ObjectId, RealmReader, Reference, ReferenceMove, id_text, id_time, is_note
from headwater.store.realm_refs import CROWDED_MOVES

DescribeReference = Callable[[], str]
"""Returns the reference in people's words; called when an error needs it."""


@dataclass(frozen=True, slots=True)
class AbsentReference:
    """The result for a moment at which the reference did not exist."""


def no_state_error(
    realm: str, what: str, time: Micros, why: str, *, kind: type[NotFoundError] = NotFoundError
) -> NotFoundError:
    """The one error for a state that cannot be given.

    what          whose state, in people's words
    kind          NotFoundError: there was none · ExpiredError: it is not remembered any more
    """
    return kind(f"there is no state of {what} of realm {realm!r} as of {as_text(time)}: {why}")


def state_as_of(
    rows: RealmReader,
    row: Reference | None,
    time: Micros,
    *,
    what: DescribeReference,
    relisted: Micros | None = None,
    fence: Callable[[], None] = lambda: None,
) -> Head | AbsentReference | None:
    """The commit that was HEAD of a reference at a moment; None: it was there, and had none yet.

    row           the reference as it is now, a tombstone too
    relisted      when its name was listed first after ``time``, if it was: a name is listed only while it is not alive
    raises        ExpiredError when that is not remembered any more · RefusedError when times cannot be relied upon
    """
    if row is not None:
        check_reference_times(rows, row, time, what=what)
    if row is not None and row.moves:
        since = Micros(row.moves[0].time - _remembered(rows))
        if time < since:
            raise no_state_error(
                rows.realm,
                what(),
                time,
                f"it was moved at {as_text(row.moves[0].time)}, and moves before {as_text(since)} are forgotten; give a commit instead",
                kind=ExpiredError,
            )
    pointer = pointer_as_of(row, time, relisted)
    if pointer is None or isinstance(pointer, AbsentReference):
        return pointer
    return commit_as_of(read_commit(rows, pointer), time, what=what, fence=fence)


def check_reference_times(rows: RealmReader, row: Reference, time: Micros, *, what: DescribeReference) -> None:
    """Pass if the times at which a reference was made, moved and deleted can be right.

    raises        RefusedError with the time that cannot be right; ExpiredError when it was moved so often since that not all is recorded
    """
    wrong = max(row.created, row.deleted or 0, *(move.time for move in row.moves), 0)
    if wrong > rows.credible_until(rows.clock.now()):
        raise RefusedError(
            f"{_undetermined(rows, time, what)}: it was made, moved or deleted at {as_text(wrong)}, and it is"
            f" {as_text(rows.clock.now())} now, so a clock was ahead. Set the clocks right and run `headwater fsck`, which mends the time"
        )

    if len(row.moves) >= CROWDED_MOVES and time < (known := row.moves[CROWDED_MOVES - 1].time):
        why = f"it was moved {CROWDED_MOVES} times since {as_text(known)}, and of earlier moves not all is recorded; give a commit instead"
        raise no_state_error(rows.realm, what(), time, why, kind=ExpiredError)


def pointer_as_of(row: Reference | None, time: Micros, relisted: Micros | None = None) -> ObjectId | AbsentReference | None:
    """The pointer that a reference had at a moment, or one on top of that; None for a reference without a commit."""
    if row is None or row.created > time:
        return AbsentReference()
    left = [move for move in row.moves if not is_note(move)]  # what a late commit left stands on its own line
    if row.deleted is not None:
        left.insert(0, ReferenceMove(row.pointer, row.deleted))  # type: ignore[arg-type]  # a reference without a commit was deleted
    later = [move for move in left if move.time > time]
    if relisted is not None and not any(move.time <= relisted for move in later):
        return AbsentReference()  # what it left last before it was listed again is what its tombstone held
    if later:
        return later[-1].pointer
    return AbsentReference() if row.deleted is not None else row.pointer


def commit_as_of(head: Head, time: Micros, *, what: DescribeReference, fence: Callable[[], None] = lambda: None) -> Head | None:
    """The newest commit not after a moment in the history of a commit; None: that history begins later.

    raises        ExpiredError when history was cut before the answer was found · RefusedError when the walk passes over a commit
                  whose time is of a clock that was ahead, with the commit and what to do
    """
    rows, above, sound, is_sound = head.rows, head, head.commit.time, True
    for commit in _descend(head, time, what):
        fence()
        if commit.commit.time <= time:
            if not is_sound:  # what lies between this one and the commit that mended the time was made nobody knows when
                raise _untold(rows, above, time, what)
            return commit
        above, sound = commit, min(sound, commit.commit.time)
        is_sound = commit.commit.time == sound
        if sound > rows.credible_until(rows.clock.now()):
            raise _ahead(commit, time, what)
        if is_sound and id_time(commit.id) <= time and _is_carried(commit):
            raise _untold(rows, commit, time, what)
    if not is_sound:
        raise _untold(rows, above, time, what)
    return None


def _descend(head: Head, time: Micros, what: DescribeReference) -> Iterator[Head]:
    """Walk down from a commit. Reads the two oldest of each tail, and the whole tail where one of these is not later than the moment.

    Times ascend, so what lies above a later commit is later. The commit that mends the time is the exception; its own tail names
    its parent alone, so that it is the last but one in every tail that reaches below it::

        tail of E19    E18 ... E1, M (mends), its parent
        tail of E20    E19 ... E1, M

    And the commit above the one that was ahead is the earliest proof of that: it is the last but one where the other is the last.
    """
    current, rows = head, head.rows
    yield current
    while tail := current.commit.tail:
        oldest = tail[-2:]
        below = list(zip(oldest, rows.read_many(oldest, Commit), strict=True))
        if len(tail) > 2 and not all(commit is not None and commit.time > time for _, commit in below):
            below = list(zip(tail, rows.read_many(tail, Commit), strict=True))
        for commit_id, commit in below:
            if commit is None:
                why = f"what lies before commit {id_text(current.id)} ({as_text(current.commit.time)}) was collected"
                raise no_state_error(rows.realm, what(), time, why, kind=ExpiredError)
            current = Head(commit_id, commit, rows)
            yield current


def _is_carried(commit: Head) -> bool:
    """Whether a commit has its time from its parent, which is of a clock that was ahead: its id was made long before."""
    return commit.commit.time - id_time(commit.id) > round(commit.rows.settings.clock_bound_seconds * 1_000_000)


def _ahead(commit: Head, time: Micros, what: DescribeReference) -> RefusedError:
    now = as_text(commit.rows.clock.now())
    return RefusedError(
        f"{_undetermined(commit.rows, time, what)}: commit {id_text(commit.id)} carries the time {as_text(commit.commit.time)}, and it is"
        f" {now} now, so a clock was ahead. Give a commit instead of a time; set the clocks right and run `headwater fsck`, which names"
        " all such commits and mends the time"
    )


def _untold(rows: RealmReader, commit: Head, time: Micros, what: DescribeReference) -> RefusedError:
    return RefusedError(
        f"{_undetermined(rows, time, what)}: commit {id_text(commit.id)}, with the time {as_text(commit.commit.time)} of a clock that"
        " was ahead, may have been made before or after that. Give a commit instead of a time, or a time before that clock was used or"
        " after it was mended"
    )


def _undetermined(rows: RealmReader, time: Micros, what: DescribeReference) -> str:
    return f"the state of {what()} of realm {rows.realm!r} as of {as_text(time)} cannot be determined"


def _remembered(rows: RealmReader) -> int:
    """A row that records a move still has those that were made so many microseconds before."""
    settings = rows.settings
    return round(max(settings.reader_grace_seconds, settings.writer_grace_seconds) * 1_000_000)
