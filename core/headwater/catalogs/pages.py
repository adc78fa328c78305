"""Listing content page by page. A page token pins the commit that the first page was read from."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from uuid import UUID

from headwater.catalogs.contents import ContentType, ContentValue
from headwater.catalogs.keys import ContentKey
from headwater.errors import RefusedError
from headwater.index import Index
from headwater.store import ObjectId, id_text

__all__ = ["Entry", "Page", "PageToken", "read_page"]

_FORMAT = 1


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


@dataclass(frozen=True, slots=True)
class PageToken:
    """Where a listing goes on: the commit, what was asked for, and the last key that was given.

    As text: base64url of 1 byte format, 8 bytes commit, 2 bytes length of the prefix, the prefix, the last key.
    """

    commit_id: ObjectId
    prefix: bytes
    last: bytes

    def encode(self) -> str:
        data = (
            bytes([_FORMAT]) + self.commit_id.to_bytes(8, "big") + len(self.prefix).to_bytes(2, "big") + self.prefix + self.last
        )
        return base64.urlsafe_b64encode(data).rstrip(b"=").decode()

    @classmethod
    def decode(cls, text: str) -> PageToken:
        """The reverse of ``encode``.

        raises        RefusedError for what is no page token
        """
        try:
            data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        except (binascii.Error, ValueError):
            data = b""
        end = 11 + int.from_bytes(data[9:11], "big")
        if len(data) <= end or data[0] != _FORMAT:
            raise RefusedError(f"{text!r} is no page token: give one as it came with the page before, or none")
        return cls(ObjectId(int.from_bytes(data[1:9], "big")), data[11:end], data[end:])


def read_page(content: Index, commit_id: ObjectId, *, prefix: bytes, after: bytes | None, limit: int | None) -> Page:
    """The entries beyond the key ``after``: at most ``limit``, or all that are left."""
    entries = _entries(content, prefix, after)
    page = tuple(islice(entries, limit))
    has_more = limit is not None and next(entries, None) is not None
    token = PageToken(commit_id, prefix, page[-1].key.to_index()).encode() if has_more else None
    return Page(page, token, commit_id)


def _entries(content: Index, prefix: bytes, after: bytes | None) -> Iterator[Entry]:
    for key, value in content.prefix(prefix, after=after):
        yield Entry(ContentKey.from_index(key), ContentValue.decode(value))
