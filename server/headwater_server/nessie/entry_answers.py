"""Contents of a reference by their keys, as both versions of Nessie's API list them.

A page is pinned to the commit that the first one was read at, which ``effectiveReference`` names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from headwater.catalogs import ContentEntry, ContentKey, ContentType, EntryExpression
from headwater.commits import PageToken
from headwater.errors import ExpiredError
from headwater.iceberg_catalog.branch_session import BranchState
from headwater.store import id_text
from headwater_server.call import Answer, Call
from headwater_server.nessie.api_paths import READ_ERRORS, TREE, V1
from headwater_server.nessie.content_bodies import ContentKeyBody, content_body, content_type_name
from headwater_server.nessie.entry_shapes import (
    EntriesAnswer,
    EntriesAnswerV1,
    EntriesQuery,
    EntriesQueryV1,
    EntryBody,
    EntryBodyV1,
)
from headwater_server.nessie.key_ranges import ContentKeyRange
from headwater_server.nessie.nessie_session import NessieSession, SeenReference, open_nessie
from headwater_server.nessie.reference_answers import seen_body
from headwater_server.nessie.reference_paths import parse_reference_path, reference_from_query
from headwater_server.nessie.shown_contents import filter_entries, read_shown_contents
from headwater_server.nessie.shown_pages import PageTokens, ShownPage, expired_page_error, page_limit, read_shown
from headwater_server.route_table import Route

_NEEDS: Final = "NAMESPACE_LIST, TABLE_LIST or VIEW_LIST on each entry; others are left out"
_MOST: Final = 20_000
"""Entries of a page."""
_MOST_WITH_CONTENT: Final = 1_000
_MOST_V1: Final = 100_000
"""Old clients do not ask for a second page."""


@dataclass(frozen=True, slots=True)
class _Listing:
    """Which entries of a reference are asked for."""

    session: NessieSession
    seen: SeenReference
    range: ContentKeyRange
    where: EntryExpression | None
    depth: int = 0


def entry_routes() -> list[Route]:
    """Make the routes of listings of contents."""
    return [
        Route(
            method="GET",
            template=f"{TREE}/entries",
            handler=answer_entries,
            name="nessieListEntries",
            needs=f"{_NEEDS}. Contents are added where they may be read",
            summary="List the contents of a reference by their keys.",
            query=EntriesQuery,
            answers={200: EntriesAnswer},
            errors=READ_ERRORS,
        ),
        Route(
            method="GET",
            template=f"{V1}/trees/tree/{{ref}}/entries",
            handler=answer_entries_v1,
            name="nessieListEntriesV1",
            needs=_NEEDS,
            summary="List the contents of a reference by their keys.",
            query=EntriesQueryV1,
            answers={200: EntriesAnswerV1},
            errors=READ_ERRORS,
        ),
    ]


def answer_entries(call: Call[EntriesQuery, None]) -> Answer:
    """List the contents of a reference by their keys."""
    query, path = call.query, parse_reference_path(call.path["ref"])
    chosen = ContentKeyRange.of_query(query.min_key, query.max_key, query.prefix_key, query.key)
    where, session = _expression(query.filter), open_nessie(call)
    tokens, token, seen = _pinned(session, session.see_reference(path), query.page_token)
    limit = page_limit(query.max_records, _MOST_WITH_CONTENT if query.content else _MOST)
    page = _read_page(_Listing(session, seen, chosen, where), token, limit)
    return Answer(
        body=EntriesAnswer(
            has_more=page.token is not None,
            token=tokens.to_client(page.token),
            effective_reference=seen_body(seen),
            entries=_bodies(seen, page.shown, with_content=query.content),
        )
    )


def answer_entries_v1(call: Call[EntriesQueryV1, None]) -> Answer:
    """List the contents of a reference by their keys."""
    query, path = call.query, reference_from_query(call.path["ref"], call.query.hash_on_ref)
    where, session = _expression(query.filter), open_nessie(call)
    tokens, token, seen = _pinned(session, session.see_reference(path), query.page_token)
    listing = _Listing(session, seen, ContentKeyRange(), where, query.namespace_depth or 0)
    page = _read_page(listing, token, page_limit(query.max_records, _MOST_V1))
    entries = [_body_v1(entry, listing.depth) for entry in page.shown]
    return Answer(body=EntriesAnswerV1(page.token is not None, tokens.to_client(page.token), entries))


def _expression(text: str | None) -> EntryExpression | None:
    return EntryExpression.parse(text) if text else None


def _pinned(
    session: NessieSession, seen: SeenReference, page_token: str | None
) -> tuple[PageTokens, str | None, SeenReference]:
    """The tokens of a listing, the one that it goes on from, and the reference at the commit that this pins.

    raises        RefusedError for a token that is none, or has expired
    """
    tokens = PageTokens.of_listing(session, "entries", seen)
    token = tokens.from_client(page_token)
    if token is None:
        return tokens, None, seen
    try:
        head = session.catalog.resolve(id_text(PageToken.from_text(token).commit_id))
    except ExpiredError as fault:
        raise expired_page_error(fault) from fault
    return tokens, token, replace(seen, state=BranchState(session.catalog, session.rows, head))


def _read_page(listing: _Listing, token: str | None, limit: int) -> ShownPage[ContentEntry]:
    seen = listing.seen
    if seen.commit_text is None:
        return ShownPage([], None)
    is_all_shown = seen.access is None and not listing.depth
    if listing.range.keys:
        entries = listing.session.catalog.find_entries(seen.commit_text, listing.range.keys_within, where=listing.where)
        return ShownPage([entry for entry in filter_entries(seen, entries) if entry is not None], None)
    try:
        return read_shown(
            _source(listing),
            _shown(listing, token),
            token=token,
            limit=limit,
            is_all_shown=is_all_shown,
            clock=listing.session.rows.clock,
        )
    except ExpiredError as fault:
        raise expired_page_error(fault) from fault


def _source(listing: _Listing) -> Callable[[str | None, int], tuple[Sequence[ContentEntry], str | None]]:
    def read(token: str | None, limit: int) -> tuple[Sequence[ContentEntry], str | None]:
        page = listing.session.catalog.entries(
            listing.seen.commit_text, **listing.range.bounds, where=listing.where, limit=limit, page_token=token
        )
        return page.entries, page.next_token

    return read


def _shown(listing: _Listing, token: str | None) -> Callable[[Sequence[ContentEntry]], Sequence[ContentEntry | None]]:
    """What is shown of entries: what the caller may list; where keys are cut, the first of those that become the same."""
    depth = listing.depth
    if not depth:
        return lambda entries: filter_entries(listing.seen, entries)
    last = None if token is None else ContentKey.from_index(PageToken.from_text(token).last).elements[:depth]

    def show(entries: Sequence[ContentEntry]) -> list[ContentEntry | None]:
        nonlocal last
        shown: list[ContentEntry | None] = []
        for entry in filter_entries(listing.seen, entries):
            is_next = entry is not None and len(entry.key.elements) >= depth and entry.key.elements[:depth] != last
            shown.append(entry if is_next else None)
            if entry is not None and is_next:
                last = entry.key.elements[:depth]
        return shown

    return show


def _bodies(seen: SeenReference, entries: Sequence[ContentEntry], *, with_content: bool) -> list[EntryBody]:
    bodies = [EntryBody(content_type_name(entry.type), ContentKeyBody.of_key(entry.key), entry.content_id) for entry in entries]
    if not with_content:
        return bodies
    contents = read_shown_contents(seen, [(entry.key, entry.value) for entry in entries])
    return [
        body if content is None else EntryBody(body.type, body.name, body.content_id, content_body(entry.key, content))
        for body, entry, content in zip(bodies, entries, contents, strict=True)
    ]


def _body_v1(entry: ContentEntry, depth: int) -> EntryBodyV1:
    """An entry of version 1; one whose key is cut is a namespace."""
    if depth and len(entry.key.elements) > depth:
        return EntryBodyV1(ContentType.NAMESPACE.name, ContentKeyBody(list(entry.key.elements[:depth])))
    return EntryBodyV1(content_type_name(entry.type), ContentKeyBody.of_key(entry.key))
