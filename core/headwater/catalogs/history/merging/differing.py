"""What changed between two commits, by key; equal values are no change, whatever objects hold them."""

from __future__ import annotations

from collections.abc import Sequence

from headwater.catalogs.content.indexes import CONTENT
from headwater.catalogs.history.comparing import Change, change_of, differences, is_same
from headwater.commits import Commit, Head
from headwater.errors import ExpiredError
from headwater.index import Difference
from headwater.store import RealmReader, id_text

__all__ = ["changed_by", "changes_between"]


def changes_between(base: Head | None, source: Head) -> list[Change]:
    """What differs between two commits, in key order. Reads what their indexes do not share.

    base          None: a state without any content
    """
    return [change_of(one) for one in differences(base, source)]


def changed_by(rows: RealmReader, commit: Head) -> list[Change]:
    """What one commit changed.

    raises        ExpiredError when its parent was collected, so that nobody knows what was there before
    """
    parent = None
    if commit.commit.tail:
        found = rows.find(commit.commit.tail[0], Commit)
        if found is None:
            raise ExpiredError(
                f"what commit {id_text(commit.id)} of realm {rows.realm!r} changed cannot be told any more: the commit before it was"
                " collected. Merge its branch, with a base, or make its changes by hand"
            )
        parent = Head(commit.commit.tail[0], found, rows)
    return _changed_keys(parent, commit, sorted(one.key for one in commit.commit.operations if one.index == CONTENT))


def _changed_keys(base: Head | None, source: Head, keys: Sequence[bytes]) -> list[Change]:
    before = {} if base is None else base.index(CONTENT).get_many(keys)
    after = source.index(CONTENT).get_many(keys)
    changes = [change_of(Difference(key, before.get(key), after.get(key))) for key in keys]
    return [one for one in changes if not is_same(one.before, one.after)]
