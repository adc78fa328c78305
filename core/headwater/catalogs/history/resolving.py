"""The way back from a commit, step by step. A commit names its last 20 ancestors, so that one in twenty is read."""

from __future__ import annotations

from headwater.catalogs.history.meta import CommitMeta
from headwater.catalogs.history.references import ReferenceText, Step, Way
from headwater.clock import Micros, as_text
from headwater.commits import AbsentReference, Commit, DescribeReference, Head, commit_as_of, no_state_error, state_as_of
from headwater.errors import ExpiredError, MissingError
from headwater.store import ObjectId, RealmStore, Reference, id_text

__all__ = ["earlier", "follow", "nth_before", "nth_parent"]

_NOTHING = "nothing was committed by then"


def follow(
    rows: RealmStore,
    start: Head | None,
    told: ReferenceText,
    *,
    row: Reference | None = None,
    what: DescribeReference | None = None,
) -> Head | None:
    """The commit that the steps of a text lead to.

    start         the commit that stands before them
    row           the branch or tag that stands before them, if nothing stands between: then a time means where that was at
    what          that branch or tag, in people's words
    raises        MissingError: history does not go so far · ExpiredError: it was cut on the way · RefusedError: a time that cannot be
                  told
    """
    found = start
    for number, step in enumerate(told.steps):
        try:
            if number == 0 and row is not None and step.way is Way.TIME:
                found = named_as_of(rows, row, Micros(step.number), what=what or (lambda: repr(row.name)))
            elif found is not None:
                found = _stepped(found, step)
        except ExpiredError as fault:
            raise ExpiredError(f"{told.text!r} of realm {rows.realm!r} has expired at {step.text}: {fault}") from fault
        except MissingError as fault:
            raise MissingError(f"{told.text!r} is no commit of realm {rows.realm!r}, at {step.text}: {fault}") from fault
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


def earlier(start: Head, time: Micros, *, what: DescribeReference | None = None) -> Head:
    """The youngest commit of a history that was made at ``time`` or before it; ``what`` is the history's name for people.

    raises        MissingError: there is none · ExpiredError: it was cut on the way · RefusedError: times cannot be relied upon
    """
    what = what or (lambda: f"the history of commit {id_text(start.id)}")
    found = commit_as_of(start, time, what=what)
    if found is None:
        raise no_state_error(start.rows.realm, what(), time, _NOTHING)
    return found


def named_as_of(rows: RealmStore, row: Reference, time: Micros, *, what: DescribeReference) -> Head:
    """The commit that a branch or tag was at. Raises as ``earlier`` does."""
    found = state_as_of(rows, row, time, what=what)
    if isinstance(found, AbsentReference):
        why = f"it was made at {as_text(row.created)}" if row.created > time else "it was deleted then"
        raise no_state_error(rows.realm, what(), time, why)
    if found is None:
        raise no_state_error(rows.realm, what(), time, _NOTHING)
    return found


def _read(above: Head, commit_id: ObjectId) -> Head:
    found = above.rows.find(commit_id, Commit)
    if found is None:
        raise _cut(above, commit_id)
    return Head(commit_id, found, above.rows)


def _cut(above: Head, commit_id: ObjectId) -> ExpiredError:
    return ExpiredError(
        f"commit {id_text(commit_id)}, in the history of commit {id_text(above.id)}, was collected: retention no longer keeps it"
    )
