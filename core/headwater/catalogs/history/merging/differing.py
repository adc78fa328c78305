"""What changed between two commits, by key; equal values are no change, whatever objects hold them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from headwater.catalogs.content.indexes import CONTENT
from headwater.catalogs.content.keys import ContentKey
from headwater.catalogs.content.types import ContentValue
from headwater.commits import Commit, Head
from headwater.errors import ExpiredError
from headwater.index import Index, Value, differing
from headwater.store import RealmStore, id_text

__all__ = ["Change", "changed_by", "changes_between", "is_same"]


@dataclass(frozen=True, slots=True)
class Change:
    """A key, and what it held before and holds after. None: it was not there."""

    key: ContentKey
    before: ContentValue | None
    after: ContentValue | None


def changes_between(base: Head | None, source: Head) -> list[Change]:
    """What differs between two commits, in key order. Reads what their indexes do not share.

    base          None: a state without any content
    """
    return list(_changes(differing(Index() if base is None else base.index(CONTENT), source.index(CONTENT))))


def changed_by(rows: RealmStore, commit: Head) -> list[Change]:
    """What one commit changed.

    raises        ExpiredError when its parent was collected, so that nobody knows what was there before
    """
    parent = None
    if commit.commit.tail:
        found = rows.find(commit.commit.tail[0], Commit)
        if found is None:
            raise ExpiredError(
                f"what commit {id_text(commit.id)} changed cannot be told any more: the commit before it was collected."
                " Merge its branch, with a base, or make its changes by hand"
            )
        parent = Head(commit.commit.tail[0], found, rows)
    return _changed_keys(parent, commit, sorted(one.key for one in commit.commit.operations if one.index == CONTENT))


def _changed_keys(base: Head | None, source: Head, keys: Sequence[bytes]) -> list[Change]:
    before = {} if base is None else base.index(CONTENT).get_many(keys)
    after = source.index(CONTENT).get_many(keys)
    return list(_changes((key, before.get(key), after.get(key)) for key in keys))


def is_same(one: ContentValue | None, other: ContentValue | None) -> bool:
    """Whether a key holds the same content with the same value. Whether its Iceberg metadata is stored is no part of that."""
    if one is None or other is None:
        return one is other
    return (one.type, one.content_id, one.digest) == (other.type, other.content_id, other.digest)


def _changes(found: Iterable[tuple[bytes, Value | None, Value | None]]) -> Iterator[Change]:
    for key, before, after in found:
        if before is not None and after is not None and before.data == after.data:
            continue
        change = Change(ContentKey.from_index(key), _value(before), _value(after))
        if not is_same(change.before, change.after):
            yield change


def _value(value: Value | None) -> ContentValue | None:
    return None if value is None else ContentValue.decode(value)
