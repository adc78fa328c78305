"""How much content of each type there is: counted whole, or told from an earlier count by what changed since."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from headwater.catalogs.content.indexes import CONTENT
from headwater.catalogs.content.types import ContentType, ContentValue
from headwater.commits import Head, KeyFilter, LogEnd, LogRange, read_commit, read_log
from headwater.errors import ExpiredError, UnreadableError
from headwater.index import Value
from headwater.store import ObjectId

__all__ = ["TypeCounts", "count_types", "recount_types"]

TypeCounts = Mapping[ContentType | int, int]
"""How many keys hold content of a type; types without any are left out."""
_NEAR = 200
"""Commits since the earlier count: beyond that, counting all is no slower."""


def count_types(head: Head) -> TypeCounts:
    """Reads the whole index."""
    return _counted(value for _, value in head.index(CONTENT).range())


def recount_types(head: Head, *, before: ObjectId, counts: TypeCounts) -> TypeCounts:
    """The same, from the ``counts`` of a commit ``before``; where that is no near ancestor, or was collected, all is counted.

    Reads the commits in between, and the keys that they changed, then and now.
    """
    stretch = LogRange(until=before, with_until=False, within=_NEAR)
    between = read_log(head.rows, head.id, stretch=stretch, touching=KeyFilter(index=CONTENT))
    changed = {one.key for found in between for one in found.commit.operations if one.index == CONTENT}
    if between.end is not LogEnd.UNTIL:
        return count_types(head)
    try:
        gone = _counted(read_commit(head.rows, before).index(CONTENT).get_many(changed).values())
    except (ExpiredError, UnreadableError):
        return count_types(head)
    total = Counter(counts)
    total.update(_counted(head.index(CONTENT).get_many(changed).values()))
    total.subtract(gone)
    return +total


def _counted(values: Iterable[Value]) -> Counter[ContentType | int]:
    return Counter(ContentValue.decode(value).type for value in values)
