"""Reading what was committed: heads, the log in both directions, and the feed of changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from headwater.commits.committer import load_head
from headwater.commits.objects import Commit, Head, Operation
from headwater.errors import BeatenError, ExpiredError, UnreadableError
from headwater.store import ObjectId, RealmStore, Reference, id_text

__all__ = ["changes", "ensure_reference", "ensure_references", "head", "log", "read_commit"]

_BLOCK = 20


def head(rows: RealmStore, reference: str, *, fresh: bool = False) -> Head | None:
    """The newest commit of a reference; None when it has none yet.

    fresh         ask the database; otherwise the reference may be as old as its time to live in the cache
    raises        MissingError: no such reference · UnreadableError: it points to a commit that is not there
    """
    try:
        return load_head(rows, rows.read_reference(reference, fresh=fresh))
    except UnreadableError:
        if fresh:
            raise
        return head(rows, reference, fresh=True)  # what the cache remembers may have been collected since


def read_commit(rows: RealmStore, commit_id: ObjectId) -> Head:
    """A commit by its id.

    raises        ExpiredError when it is not there (any more)
    """
    found = rows.find(commit_id, Commit)
    if found is None:
        raise ExpiredError(f"commit {id_text(commit_id)} is not in realm {rows.realm!r}: it was collected, or never was")
    return Head(commit_id, found, rows)


def log(rows: RealmStore, start: str | ObjectId, *, oldest_first: bool = False, limit: int | None = None) -> Iterator[Head]:
    """The history of a reference (by its name, read fresh) or of a commit (by its id, inclusive), newest first unless asked.

    Ends where history begins or was cut. Reads twenty commits at a time.
    """
    if isinstance(start, str):
        newest = rows.read_reference(start, fresh=True)
        first = load_head(rows, newest)
    else:
        first = read_commit(rows, start)
    if first is None:
        return iter(())
    heads = _newest_first(rows, first)
    return islice(_oldest_first(rows, heads) if oldest_first else heads, limit)


def changes(rows: RealmStore, reference: str, since: ObjectId | None = None) -> Iterator[tuple[Head, Operation]]:
    """Every operation after the commit ``since`` (exclusive; None: from the beginning), once and in order.

    raises        ExpiredError when the history back to ``since`` is not there any more: read the whole state instead
    """
    later: list[ObjectId] = []
    last: Head | None = None
    for found in log(rows, reference):
        if found.id == since:
            break
        later.append(found.id)
        last = found
    else:
        if since is not None or (last is not None and last.commit.seq > 1):
            since_text = "the beginning" if since is None else f"commit {id_text(since)}"
            raise ExpiredError(
                f"the changes of reference {reference!r} of realm {rows.realm!r} since {since_text} are not there any more"
                " (collected, or never on this reference): read its whole state, and go on from that commit"
            )
    for commit_id in reversed(later):
        found = read_commit(rows, commit_id)
        for operation in found.commit.operations:
            yield found, operation


def ensure_reference(rows: RealmStore, name: str) -> Reference:
    """The reference; created without a commit if it is absent."""
    found = rows.find_reference(name, fresh=True)
    if found is not None:
        return found
    try:
        return rows.create_reference(name)
    except BeatenError:
        return rows.read_reference(name, fresh=True)


def ensure_references(rows: RealmStore, names: Sequence[str]) -> None:
    """See that all of these are there; those that are absent are created without a commit, together.

    raises        as ``create_references`` does; doing it again goes on from there
    """
    found = rows.find_rows(names)
    absent = [name for name, row in zip(names, found, strict=True) if row is None or row.deleted is not None]
    if absent:
        rows.create_references(absent)


def _newest_first(rows: RealmStore, first: Head) -> Iterator[Head]:
    current: Head | None = first
    while current is not None:
        yield current
        tail = current.commit.tail[:_BLOCK]
        current = None
        for commit_id, found in zip(tail, rows.read_many(tail, Commit), strict=True):
            if current is not None:
                yield current
            if found is None:
                return
            current = Head(commit_id, found, rows)


def _oldest_first(rows: RealmStore, heads: Iterator[Head]) -> Iterator[Head]:
    ids = [found.id for found in heads]
    ids.reverse()
    for start in range(0, len(ids), _BLOCK):
        block = ids[start : start + _BLOCK]
        for commit_id, found in zip(block, rows.read_many(block, Commit), strict=True):
            if found is not None:
                yield Head(commit_id, found, rows)
