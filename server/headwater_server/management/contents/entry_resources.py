"""What stands in a reference, as resources: the children of a namespace, and a search through all keys.

A search through a million keys goes on from request to request. Each looks at so many keys at most and says how far it came, so that
nobody takes an empty page for the end. Where keys are hidden from the caller, a page ends only behind a key that it shows: its token
tells that key, and how many others there are must not be told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from headwater.catalogs import (
    CONTENT,
    ContentEntry,
    ContentKey,
    ContentType,
)
from headwater.catalogs.content import ContentValue
from headwater.commits import Head, IndexListing, PageToken
from headwater.errors import ExpiredError, NotFoundError, RefusedError
from headwater.index import IndexValue, after_prefix
from headwater_server.call import Answer, Call
from headwater_server.management.contents.content_shapes import (
    CatalogEntryList,
    EntriesListQuery,
    FoundEntries,
    KeySearchQuery,
)
from headwater_server.management.contents.contents_reader import ContentsReader, commit_of_token, open_reader
from headwater_server.management.contents.shown_entries import entry_bodies
from headwater_server.management.route_parts import READ_ERRORS, REFERENCE_PATH
from headwater_server.nessie.shown_contents import filter_entries
from headwater_server.nessie.shown_pages import ShownPage, expired_page_error, read_shown
from headwater_server.route_table import Route

LOOKED_AT: Final = 20_000
"""Keys that a request of a search looks at. Measured: 4 µs for each."""
_NEEDS: Final = (
    "NAMESPACE_LIST, TABLE_LIST or VIEW_LIST on each entry, others are left out; details are added where they may be read"
)


def content_entry_routes() -> list[Route]:
    """Make the routes of entries."""
    return [
        Route(
            method="GET",
            template=f"{REFERENCE_PATH}/entries",
            handler=answer_entry_list,
            name="listEntries",
            needs=_NEEDS,
            summary="List what stands directly below a namespace, or at the top.",
            query=EntriesListQuery,
            answers={200: CatalogEntryList},
            errors=READ_ERRORS,
        ),
        Route(
            method="GET",
            template=f"{REFERENCE_PATH}/search",
            handler=answer_key_search,
            name="searchEntries",
            needs=_NEEDS,
            summary="Search the keys of a reference; as long as there is another page, the search is not over.",
            query=KeySearchQuery,
            answers={200: FoundEntries},
            errors=READ_ERRORS,
        ),
    ]


def answer_entry_list(call: Call[EntriesListQuery, None]) -> Answer:
    """List the children of a namespace; raises NotFoundError for one that is not there, or that the caller may not see."""
    reader, query = open_reader(call), call.query
    parent = None if query.parent is None else ContentKey.parse(query.parent)
    tokens = reader.tokens_of(f"entries {query.type} {parent}")
    token = tokens.from_client(query.page_token)
    commit, inner = _split_token(token)
    if commit is not None:
        reader = reader.at_commit(commit_of_token(commit))
    if parent is not None and not any(filter_entries(reader.seen, _find(reader, parent))):
        raise NotFoundError(f"there is no namespace {query.parent!r} on {reader.ref!r}")
    page = _children(reader, parent, query, inner)
    following = None if page.token is None else f"{reader.commit}.{page.token}"
    return Answer(
        body=CatalogEntryList(
            ref=reader.ref,
            commit=reader.commit,
            entries=entry_bodies(reader, page.shown, with_details=query.details),
            next_page_token=tokens.to_client(following),
        )
    )


def answer_key_search(call: Call[KeySearchQuery, None]) -> Answer:
    """Search the keys of a reference, from where the request before came to."""
    reader, query = open_reader(call), call.query
    tokens = reader.tokens_of(f"search {query.match} {query.type} {query.q}")
    token = tokens.from_client(query.page_token)
    if token is not None:
        reader = reader.at_commit(PageToken.from_text(token).commit_id)
    scan = _KeyScan.of_query(reader, query)
    if scan is None:
        return Answer(body=_found(reader, query, [], None, looked=0, searched_to=None))
    if reader.shows_all:
        part = scan.scan_part(token, query.page_size, most=LOOKED_AT)
        shown, following = part.entries, part.token
        looked, last = part.looked, None if following is None else ContentKey.from_index(part.last)
    else:
        page = _read_page(reader, scan.scan_page, token, query.page_size)
        shown, following = page.shown, page.token
        looked, last = None, None if following is None else shown[-1].key
    return Answer(body=_found(reader, query, shown, tokens.to_client(following), looked=looked, searched_to=last))


def _found(
    reader: ContentsReader,
    query: KeySearchQuery,
    entries: Sequence[ContentEntry],
    token: str | None,
    *,
    looked: int | None,
    searched_to: ContentKey | None,
) -> FoundEntries:
    head = reader.seen.head
    return FoundEntries(
        ref=reader.ref,
        commit=reader.commit,
        entries=entry_bodies(reader, entries, with_details=query.details),
        next_page_token=token,
        is_complete=token is None,
        searched_to=None if searched_to is None else str(searched_to),
        looked=looked,
        total=None if not reader.shows_all else 0 if head is None else len(head.index(CONTENT)),
    )


def _split_token(token: str | None) -> tuple[str | None, str | None]:
    """The commit and the place of a token of a list."""
    if token is None:
        return None, None
    commit, _, inner = token.partition(".")
    return commit, inner


def _find(reader: ContentsReader, key: ContentKey) -> list[ContentEntry]:
    value = reader.seen.state.find_value(key)
    return [] if value is None or value.type is not ContentType.NAMESPACE else [ContentEntry(key, value)]


def _children(
    reader: ContentsReader, parent: ContentKey | None, query: EntriesListQuery, token: str | None
) -> ShownPage[ContentEntry]:
    if reader.commit is None:
        return ShownPage([], None)
    types = () if query.type is None else (ContentType[query.type],)

    def read(place: str | None, limit: int) -> tuple[Sequence[ContentEntry], str | None]:
        page = reader.session.catalog.children(reader.commit, parent, content_types=types, token=place, limit=limit)
        return page.entries, page.next_token

    return _read_page(reader, read, token, query.page_size)


def _read_page(
    reader: ContentsReader,
    read: Callable[[str | None, int], tuple[Sequence[ContentEntry], str | None]],
    token: str | None,
    limit: int,
) -> ShownPage[ContentEntry]:
    try:
        return read_shown(
            read,
            lambda entries: entries if reader.shows_all else filter_entries(reader.seen, entries),
            token=token,
            limit=limit,
            is_all_shown=reader.shows_all,
            clock=reader.session.rows.clock,
        )
    except ExpiredError as fault:
        raise expired_page_error(fault) from fault


@dataclass(frozen=True, slots=True)
class _ScanPart:
    """What a part of a search found.

    token         where the search goes on; None: it is over
    last          the index key that it looked at last
    """

    entries: list[ContentEntry]
    token: str | None
    looked: int
    last: bytes


@dataclass(frozen=True, slots=True)
class _KeyScan:
    """A search through a range of a commit's keys."""

    head: Head
    listing: IndexListing
    needle: str
    types: frozenset[int]

    @classmethod
    def of_query(cls, reader: ContentsReader, query: KeySearchQuery) -> _KeyScan | None:
        """The search that is asked for; None where there is no key."""
        head = reader.seen.head
        if head is None:
            return None
        is_prefix = query.match == "prefix"
        begin = key_beginning(query.q) if is_prefix else b""
        listing = IndexListing(index=CONTENT, start=begin or None, end=after_prefix(begin) if begin else None)
        types = frozenset() if query.type is None else frozenset((int(ContentType[query.type]),))
        return cls(head, listing, "" if is_prefix else query.q.casefold(), types)

    def scan_part(self, token: str | None, limit: int, *, most: int | None) -> _ScanPart:
        """Look at so many keys at most, until so many were found; raises RefusedError where the commit was collected."""
        found: list[ContentEntry] = []
        looked, last, is_over = 0, b"", True
        try:
            for key, value in self._keys(None if token is None else PageToken.from_text(token).last):
                if len(found) == limit or looked == most:
                    is_over = False
                    break
                looked, last = looked + 1, key
                if self._is_found(key, value):
                    found.append(ContentEntry(ContentKey.from_index(key), ContentValue.from_value(value)))
        except ExpiredError as fault:
            raise expired_page_error(fault) from fault
        following = None if is_over else PageToken(self.head.id, self.listing, last).as_text()
        return _ScanPart(found, following, looked, last)

    def scan_page(self, token: str | None, limit: int) -> tuple[Sequence[ContentEntry], str | None]:
        """What a part found, for a page that looks at as many parts as it may."""
        part = self.scan_part(token, limit, most=LOOKED_AT)
        return part.entries, part.token

    def _keys(self, after: bytes | None) -> Iterator[tuple[bytes, IndexValue]]:
        start = self.listing.start if after is None else after + b"\0"
        return self.head.index(CONTENT).range(start, self.listing.end)

    def _is_found(self, key: bytes, value: IndexValue) -> bool:
        if self.types and ContentValue.from_value(value).type not in self.types:
            return False
        return not self.needle or self.needle in key.decode().replace("\0", ".").casefold()


def key_beginning(text: str) -> bytes:
    """What the index keys begin with whose text form begins with a text; raises RefusedError where no key can."""
    is_ended = text.endswith(".") and not text.endswith("\\.")
    try:
        key = ContentKey.parse(text[:-1] if is_ended else text)
    except RefusedError as fault:
        raise RefusedError(f"q: no key begins with {text[:200]!r}: {fault}") from None
    return key.child_prefix() if is_ended else key.to_index()
