"""Reading an index page by page. A page token pins the commit that the first page was read from, and what was asked of it."""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

import msgspec

from headwater.commits.commit import Commit, Head
from headwater.errors import CorruptionError, ExpiredError, RefusedError
from headwater.index import IndexValue, after_prefix
from headwater.settings import check_count
from headwater.store import ObjectId, RealmReader, id_text
from headwater.typed_values import msgpack_decoder

T = TypeVar("T")

_FORMAT = b"\x02"


class IndexListing(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """What is listed: the keys of an index with ``start`` <= key < ``end``, in key order or backwards.

    of            the caller's name for the listing, by which a token of another listing is recognized
    """

    index: str
    start: bytes | None = None
    end: bytes | None = None
    reverse: bool = False
    of: str = ""

    @classmethod
    def of_prefix(cls, index: str, prefix: bytes, *, reverse: bool = False) -> IndexListing:
        """The keys that begin with ``prefix``."""
        return cls(index=index, start=prefix or None, end=after_prefix(prefix), reverse=reverse)


class PageToken(msgspec.Struct, frozen=True, array_like=True):
    """Where a listing goes on: in which commit, what was asked of it, and the last key that was given.

    As text: base64url, without padding, of 1 byte format, 4 bytes CRC-32 of the rest, and this as a MessagePack array.
    """

    commit_id: ObjectId
    listing: IndexListing
    last: bytes

    def as_text(self) -> str:
        return encode_token(self, _FORMAT)

    @classmethod
    def from_text(cls, text: str) -> PageToken:
        """Read the token that ``as_text`` wrote.

        raises        RefusedError for a text that is not a page token, or was altered
        """
        token = decode_token(text, _decoder)
        if token is None or token.as_text() != text:
            raise RefusedError(f"{text!r} is not a page token: give one as it came with the page before, or none")
        return token


_decoder = msgpack_decoder(PageToken)


def encode_token(token: msgspec.Struct, version: bytes) -> str:
    """A token as text: base64url, without padding, of 1 byte format, 4 bytes CRC-32 of the rest, and the token in MessagePack."""
    body = msgspec.msgpack.encode(token)
    return base64.urlsafe_b64encode(version + zlib.crc32(body).to_bytes(4, "big") + body).rstrip(b"=").decode()


def decode_token(text: str, decoder: msgspec.msgpack.Decoder[T]) -> T | None:
    """Read a token that ``encode_token`` wrote; None if it cannot be one. Only encoding it again and comparing makes that certain."""
    try:
        data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        return decoder.decode(data[5:])
    except (binascii.Error, ValueError, msgspec.MsgspecError):
        return None


@dataclass(frozen=True, slots=True)
class IndexPage:
    """Entries in the order of the listing. ``next_token`` None: there are no more."""

    entries: tuple[tuple[bytes, IndexValue], ...]
    next_token: str | None
    commit_id: ObjectId


def read_page(head: Head, listing: IndexListing, *, limit: int | None = None, after: bytes | None = None) -> IndexPage:
    """The first entries of a listing of a commit; or those beyond the key ``after``, in the direction of the listing.

    limit         at most so many; None: all that are left
    raises        RefusedError for a limit below 1; ExpiredError when the commit was collected; CorruptionError when it was not, and
                  cannot be read nevertheless
    """
    entries, has_more = take_page(head, lambda most: _entries(head, listing, after, most), limit=limit)
    token = PageToken(head.id, listing, entries[-1][0]).as_text() if has_more else None
    return IndexPage(entries, token, head.id)


def take_page(head: Head, read: Callable[[int | None], Iterator[T]], *, limit: int | None) -> tuple[tuple[T, ...], bool]:
    """The first of what is read from a commit, and whether there is more. Raises as ``read_page`` does.

    read          given how many are wanted at most
    """
    check_count(limit, "entries of a page")
    # One more than is given: only that tells whether a page follows, and a token without one would promise too much.
    most = None if limit is None else limit + 1
    try:
        entries = tuple(islice(read(most), most))
    except (ExpiredError, CorruptionError) as fault:
        if isinstance(fault, ExpiredError) or head.is_collected():
            raise _expired(head.rows, head.id) from fault
        raise
    return (entries, False) if limit is None else (entries[:limit], len(entries) > limit)


def read_next_page(rows: RealmReader, token: str, *, limit: int | None = None) -> IndexPage:
    """The page that follows, of the commit that the token pins, whatever its reference holds now. Raises as ``read_page`` does."""
    place = PageToken.from_text(token)
    return read_page(read_pinned(rows, place.commit_id), place.listing, limit=limit, after=place.last)


def read_pinned(rows: RealmReader, commit_id: ObjectId) -> Head:
    """The commit that a token pins; ExpiredError when it was collected."""
    commit = rows.find_object(commit_id, Commit)
    if commit is None:
        raise _expired(rows, commit_id)
    return Head(commit_id, commit, rows)


def _entries(head: Head, listing: IndexListing, after: bytes | None, limit: int | None) -> Iterator[tuple[bytes, IndexValue]]:
    start, end = listing.start, listing.end
    if after is not None and listing.reverse:
        end = after if end is None else min(end, after)
    elif after is not None:
        start = max(start or b"", after + b"\0")
    return head.index(listing.index).range(start, end, reverse=listing.reverse, limit=limit)


def _expired(rows: RealmReader, commit_id: ObjectId) -> ExpiredError:
    return ExpiredError(
        f"commit {id_text(commit_id)} of realm {rows.realm!r}, whose pages were being read, was collected:"
        " start the listing again, without a page token"
    )
