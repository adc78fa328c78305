"""Content as it is listed, page by page. See ``headwater.commits`` for what a page token pins."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from headwater.catalogs.content.keys import ContentKey
from headwater.catalogs.content.types import ContentType, ContentValue
from headwater.commits import IndexPage
from headwater.store import ObjectId, id_text

__all__ = ["Entry", "Page", "page_of"]


@dataclass(frozen=True, slots=True)
class Entry:
    """A key with what the index holds about its content; the content itself was not read."""

    key: ContentKey
    value: ContentValue

    @property
    def type(self) -> ContentType | int:
        return self.value.type

    @property
    def content_id(self) -> UUID:
        return self.value.content_id


@dataclass(frozen=True, slots=True)
class Page:
    """Entries of one commit in key order. ``next_token`` None: there are no more."""

    entries: tuple[Entry, ...]
    next_token: str | None
    commit_id: ObjectId | None

    @property
    def hash(self) -> str | None:
        return None if self.commit_id is None else id_text(self.commit_id)


def page_of(found: IndexPage) -> Page:
    """A page of the index as a page of content."""
    entries = tuple(Entry(ContentKey.from_index(key), ContentValue.decode(value)) for key, value in found.entries)
    return Page(entries, found.next_token, found.commit_id)
