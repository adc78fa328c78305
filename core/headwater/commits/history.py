"""Reading what was committed: heads, the log in both directions, and the feed of changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from headwater.commits.ancestry import load_head
from headwater.commits.objects import Commit, Head, Operation
from headwater.commits.walking import Descent, End, Log, Stretch, Touching, ascend, climb
from headwater.errors import BeatenError, ExpiredError, UnreadableError
from headwater.quantities import check_count
from headwater.store import ObjectId, RealmStore, Reference, id_text

__all__ = ["changes", "ensure_reference", "ensure_references", "head", "log", "read_commit"]

_ALL = Stretch()
_LOOKS = 3


def head(rows: RealmStore, reference: str, *, fresh: bool = False) -> Head | None:
    """The newest commit of a reference; None when it has none yet.

    fresh         ask the database; otherwise the reference may be as old as its time to live in the cache
    raises        MissingError: no such reference · UnreadableError: it points to a commit that is not there
    """
    for _ in range(_LOOKS):
        try:
            return load_head(rows, rows.read_reference(reference, fresh=fresh))
        except ExpiredError:
            fresh = True  # what the cache remembers was collected since, or this process was stopped for long
        except UnreadableError:
            if fresh:
                raise
            fresh = True
    return load_head(rows, rows.read_reference(reference, fresh=True))


def read_commit(rows: RealmStore, commit_id: ObjectId) -> Head:
    """A commit by its id.

    raises        ExpiredError when it is not there (any more)
    """
    found = rows.find(commit_id, Commit)
    if found is None:
        raise ExpiredError(f"commit {id_text(commit_id)} is not in realm {rows.realm!r}: it was collected, or never was")
    return Head(commit_id, found, rows)


def log(
    rows: RealmStore,
    start: str | ObjectId,
    *,
    oldest_first: bool = False,
    limit: int | None = None,
    stretch: Stretch = _ALL,
    touching: Touching | None = None,
) -> Log:
    """The history of a reference (by its name, read fresh) or of a commit (by its id), newest first unless asked.

    Ends where history begins, was cut, or as the stretch says; the log's ``end`` tells which. A walk reads twenty commits in a
    round trip. Oldest first it goes all the way down before it returns, then up again a hundred at a time: give it a stretch.

    limit         how many commits to give, of those that are wanted
    touching      only commits that changed a key, or a key with a prefix
    raises        MissingError: no such reference · ExpiredError: no such commit (any more)
    """
    check_count(limit, "commits of a log")
    first = load_head(rows, rows.read_reference(start, fresh=True)) if isinstance(start, str) else read_commit(rows, start)
    if oldest_first:
        return ascend(rows, Descent(rows, first, stretch, touching, None), limit)
    return Descent(rows, first, stretch, touching, limit)


def changes(rows: RealmStore, reference: str, since: ObjectId | None = None) -> Iterator[tuple[Head, Operation]]:
    """Every operation after the commit ``since`` (exclusive; None: from the beginning) up to the head as it is now, once and in order.

    To go on later, give the last commit all of whose operations were seen: of a commit that was left half-way all come again when
    the one before it is given.

    raises        ExpiredError when ``since``, or what came after it, is not there any more: read the whole state instead
    """
    if since is not None and rows.find(since, Commit) is None:
        raise _expired(rows, reference, since)
    down = log(rows, reference, stretch=Stretch(until=since, with_until=False))
    later = [found.id for found in down]
    if down.end is not (End.BEGINNING if since is None else End.UNTIL):
        raise _expired(rows, reference, since)
    for commit_id, found in climb(rows, later):
        if found is None:
            raise _expired(rows, reference, since)
        for operation in found.operations:
            yield Head(commit_id, found, rows), operation


def _expired(rows: RealmStore, reference: str, since: ObjectId | None) -> ExpiredError:
    since_text = "the beginning" if since is None else f"commit {id_text(since)}"
    return ExpiredError(
        f"the changes of reference {reference!r} of realm {rows.realm!r} since {since_text} are not there any more"
        " (collected, or never on this reference): read its whole state, and go on from that commit"
    )


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
