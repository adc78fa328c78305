"""The way back from a commit, step by step. A commit names its last 20 ancestors, so that one in twenty is read."""

from __future__ import annotations

from collections.abc import Sequence

from headwater.catalogs.history.meta import CommitMeta
from headwater.catalogs.history.references import ReferenceText, Step, Way
from headwater.clock import Micros, as_text
from headwater.commits import Commit, Head
from headwater.errors import ExpiredError, MissingError
from headwater.store import ObjectId, id_text

__all__ = ["earlier", "follow", "nth_before", "nth_parent"]


def follow(start: Head, told: ReferenceText) -> Head:
    """The commit that the steps of a text lead to.

    start         the commit that stands before them
    raises        MissingError: history does not go so far · ExpiredError: it was cut on the way
    """
    found = start
    for step in told.steps:
        try:
            found = _stepped(found, step)
        except ExpiredError as fault:
            raise ExpiredError(f"{told.text!r} of realm {start.rows.realm!r} has expired at {step.text}: {fault}") from fault
        except MissingError as fault:
            raise MissingError(f"{told.text!r} is no commit of realm {start.rows.realm!r}, at {step.text}: {fault}") from fault
    return found


def _stepped(start: Head, step: Step) -> Head:
    if step.way is Way.BEFORE:
        return nth_before(start, step.number)
    if step.way is Way.PARENT:
        return nth_parent(start, step.number)
    return earlier(start, Micros(step.number))


def nth_before(start: Head, count: int) -> Head:
    """The commit ``count`` steps down the history of first parents. Raises as ``follow`` does."""
    if count >= start.commit.seq:
        raise MissingError(f"there are {start.commit.seq - 1} commits before commit {id_text(start.id)}, not {count}")
    found, left = start, count
    while left:
        step = min(left, len(found.commit.tail))
        found = _read(found, found.commit.tail[step - 1])
        left -= step
    return found


def nth_parent(start: Head, number: int) -> Head:
    """The first parent is the commit before; from the second on they are the heads that were merged in. Raises as ``follow`` does."""
    parents = (*start.commit.tail[:1], *CommitMeta.of(start.commit).merged)
    if number > len(parents):
        raise MissingError(f"commit {id_text(start.id)} has {len(parents)} parents, not {number}")
    return _read(start, parents[number - 1])


def earlier(start: Head, time: Micros) -> Head:
    """The youngest commit of a history that was made at ``time`` or before it. Raises as ``follow`` does."""
    found = start
    while found.commit.time > time:
        tail = found.commit.tail
        if not tail:
            raise MissingError(f"history begins with commit {id_text(found.id)}, at {as_text(found.commit.time)}")
        oldest = found.rows.find(tail[-1], Commit)
        if oldest is not None and oldest.time > time:
            found = Head(tail[-1], oldest, found.rows)
        else:
            return _first_at(found, tail, time)
    return found


def _first_at(above: Head, tail: Sequence[ObjectId], time: Micros) -> Head:
    """The first of some ancestors, nearest first, that is not later."""
    for commit_id, commit in zip(tail, above.rows.read_many(tail, Commit), strict=True):
        if commit is None:
            raise _cut(above, commit_id)
        if commit.time <= time:
            return Head(commit_id, commit, above.rows)
    raise _cut(above, tail[-1])  # it was there a moment ago, and older


def _read(above: Head, commit_id: ObjectId) -> Head:
    found = above.rows.find(commit_id, Commit)
    if found is None:
        raise _cut(above, commit_id)
    return Head(commit_id, found, above.rows)


def _cut(above: Head, commit_id: ObjectId) -> ExpiredError:
    return ExpiredError(
        f"commit {id_text(commit_id)}, in the history of commit {id_text(above.id)}, was collected: retention no longer keeps it"
    )
