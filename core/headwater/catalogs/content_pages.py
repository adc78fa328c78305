"""Pages of listed content, and counts of content by type.

See ``headwater.commits`` for the commit that a page token pins. A count reads the whole index, or is derived from an earlier
count and the changes since.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from uuid import UUID

from headwater.catalogs.content import ContentKey, ContentType, ContentValue
from headwater.catalogs.content_operations import CONTENT
from headwater.commits import Head, IndexPage, KeyFilter, LogEnd, LogRange, read_commit, read_log
from headwater.errors import CorruptionError, ExpiredError
from headwater.index import IndexValue
from headwater.store import ObjectId, id_text


@dataclass(frozen=True, slots=True)
class ContentEntry:
    """A key with its value in the index; the content itself is not read."""

    key: ContentKey
    value: ContentValue

    @property
    def type(self) -> ContentType | int:
        return self.value.type

    @property
    def content_id(self) -> UUID:
        return self.value.content_id


@dataclass(frozen=True, slots=True)
class ContentPage:
    """Entries of one commit in key order. ``next_token`` is None on the last page."""

    entries: tuple[ContentEntry, ...]
    next_token: str | None
    commit_id: ObjectId | None

    @property
    def hash(self) -> str | None:
        return None if self.commit_id is None else id_text(self.commit_id)


def content_page(page: IndexPage) -> ContentPage:
    """Convert a page of the index to a page of content."""
    entries = tuple(ContentEntry(ContentKey.from_index(key), ContentValue.from_value(value)) for key, value in page.entries)
    return ContentPage(entries, page.next_token, page.commit_id)


TypeCounts = Mapping[ContentType | int, int]
"""How many keys hold content of a type; types without any are left out."""
_NEAR = 200
"""Commits since the earlier count: beyond that, counting all is no slower."""


def count_types(head: Head) -> TypeCounts:
    """Count the entries of each type. Reads the whole index."""
    return _counted(value for _, value in head.index(CONTENT).range())


def recount_types(head: Head, *, before: ObjectId, counts: TypeCounts) -> TypeCounts:
    """Count the entries of each type, from the ``counts`` of the commit ``before``.

    Reads the commits in between, and the keys that they changed, then and now. Counts all entries if ``before`` is no near ancestor
    or was collected.
    """
    stretch = LogRange(until=before, with_until=False, within=_NEAR)
    between = read_log(head.rows, head.id, stretch=stretch, touching=KeyFilter(index=CONTENT))
    changed = {operation.key for commit in between for operation in commit.commit.operations if operation.index == CONTENT}
    if between.end is not LogEnd.UNTIL:
        return count_types(head)
    try:
        gone = _counted(read_commit(head.rows, before).index(CONTENT).get_many(changed).values())
    except (ExpiredError, CorruptionError):
        return count_types(head)
    total = Counter(counts)
    total.update(_counted(head.index(CONTENT).get_many(changed).values()))
    total.subtract(gone)
    return +total


def _counted(values: Iterable[IndexValue]) -> Counter[ContentType | int]:
    return Counter(ContentValue.from_value(value).type for value in values)
