"""What differs between two references, as both versions of Nessie's API compare them.

Pages are pinned to the two commits that the first one compared, which the effective references name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from msgspec import Struct

from headwater.catalogs import ContentChange, ContentKey, ContentValue, DiffExpression
from headwater.catalogs.content import index_bounds
from headwater.catalogs.history.content_diff import ChangeToken, changed_keys, compare_commits
from headwater.commits import Head
from headwater.errors import ExpiredError, RefusedError
from headwater.iceberg_catalog.branch_session import BranchState
from headwater.store import ObjectId, id_text
from headwater_server.call import Answer, Call
from headwater_server.nessie.api_paths import READ_ERRORS, TREE, V1
from headwater_server.nessie.content_bodies import ApiVersion, ContentKeyBody, DiffEntryBody, content_body
from headwater_server.nessie.entry_shapes import ListedKey, MaxKey, MinKey, PrefixKey
from headwater_server.nessie.key_ranges import ContentKeyRange
from headwater_server.nessie.nessie_session import NessieSession, SeenReference, open_nessie
from headwater_server.nessie.reference_answers import seen_body
from headwater_server.nessie.reference_paths import ReferencePath, parse_diff_path, parse_reference_path
from headwater_server.nessie.reference_shapes import FilterText, MaxRecords, PageText, ReferenceBody
from headwater_server.nessie.shown_contents import read_shown_contents
from headwater_server.nessie.shown_pages import PageTokens, ShownPage, expired_page_error, page_limit, read_shown
from headwater_server.route_table import Route

_NEEDS: Final = (
    "REFERENCE_READ_HISTORY on both references. A difference is left out where the caller may not read what stands there,"
    " on either side"
)
_MOST: Final = 1_000
"""Differences of a page."""
_MOST_V1: Final = 20_000
"""Old clients do not ask for a second page."""


class DiffQuery(Struct, frozen=True, rename="kebab"):
    """Which keys are compared."""

    max_records: MaxRecords | None = None
    page_token: PageText | None = None
    min_key: MinKey | None = None
    max_key: MaxKey | None = None
    prefix_key: PrefixKey | None = None
    key: list[ListedKey] = []
    filter: FilterText | None = None


class DiffQueryV1(Struct, frozen=True, rename="camel"):
    """Which page of a comparison."""

    max_records: MaxRecords | None = None
    page_token: PageText | None = None


class DiffAnswer(Struct, frozen=True, rename="camel"):
    """A page of a comparison, and the commits that were compared."""

    has_more: bool
    token: str | None
    diffs: list[DiffEntryBody]
    effective_from_reference: ReferenceBody
    effective_to_reference: ReferenceBody


class DiffAnswerV1(Struct, frozen=True, rename="camel"):
    """A page of a comparison, in version 1."""

    has_more: bool
    token: str | None
    diffs: list[DiffEntryBody]


@dataclass(frozen=True, slots=True)
class _Comparison:
    """Two references, and which keys of them are compared."""

    session: NessieSession
    before: SeenReference
    after: SeenReference
    range: ContentKeyRange
    where: DiffExpression | None
    version: ApiVersion


def diff_routes() -> list[Route]:
    """Make the routes of comparisons."""
    return [
        Route(
            method="GET",
            template=f"{TREE}/diff/{{to}}",
            handler=answer_diff,
            name="nessieCompare",
            needs=_NEEDS,
            summary="List the keys whose contents differ between two references, with both contents.",
            query=DiffQuery,
            answers={200: DiffAnswer},
            errors=READ_ERRORS,
        ),
        Route(
            method="GET",
            template=f"{V1}/diffs/{{references}}",
            handler=answer_diff_v1,
            name="nessieCompareV1",
            needs=_NEEDS,
            summary="List the keys whose contents differ between two references, with both contents.",
            query=DiffQueryV1,
            answers={200: DiffAnswerV1},
            errors=READ_ERRORS,
        ),
    ]


def answer_diff(call: Call[DiffQuery, None]) -> Answer:
    """List what differs between two references."""
    query = call.query
    paths = parse_reference_path(call.path["ref"]), parse_reference_path(call.path["to"])
    chosen = ContentKeyRange.of_query(query.min_key, query.max_key, query.prefix_key, query.key)
    where = DiffExpression.parse(query.filter) if query.filter else None
    comparison = _compared(open_nessie(call), paths, chosen, where, 2)
    tokens, token, comparison = _pinned(comparison, query.page_token)
    page = _read_page(comparison, token, page_limit(query.max_records, _MOST))
    return Answer(
        body=DiffAnswer(
            has_more=page.token is not None,
            token=tokens.to_client(page.token),
            diffs=page.shown,
            effective_from_reference=seen_body(comparison.before),
            effective_to_reference=seen_body(comparison.after),
        )
    )


def answer_diff_v1(call: Call[DiffQueryV1, None]) -> Answer:
    """List what differs between two references."""
    paths = parse_diff_path(call.path["references"])
    comparison = _compared(open_nessie(call), paths, ContentKeyRange(), None, 1)
    tokens, token, comparison = _pinned(comparison, call.query.page_token)
    page = _read_page(comparison, token, page_limit(call.query.max_records, _MOST_V1))
    return Answer(body=DiffAnswerV1(page.token is not None, tokens.to_client(page.token), page.shown))


def _compared(
    session: NessieSession,
    paths: tuple[ReferencePath, ReferencePath],
    chosen: ContentKeyRange,
    where: DiffExpression | None,
    version: ApiVersion,
) -> _Comparison:
    """raises NotFoundError; ForbiddenError without the right to read the history of both references"""
    before, after = (session.see_reference(path) for path in paths)
    session.check_history(before.rights)
    session.check_history(after.rights)
    return _Comparison(session, before, after, chosen, where, version)


def _pinned(comparison: _Comparison, page_token: str | None) -> tuple[PageTokens, ChangeToken, _Comparison]:
    """The tokens of a comparison, the place where it begins or goes on, and the comparison of the commits that this pins.

    raises        RefusedError for a token that is none, belongs to another comparison, or has expired
    """
    session, before, after = comparison.session, comparison.before, comparison.after
    tokens = PageTokens.of_listing(session, "diff", before, after)
    start, end = index_bounds(**comparison.range.bounds)
    where = "" if comparison.where is None else comparison.where.text
    beginning = ChangeToken(_id_of(before.head), _id_of(after.head), start, end, where=where)
    text = tokens.from_client(page_token)
    if text is None:
        return tokens, beginning, comparison
    place = ChangeToken.from_text(text)
    if (place.start, place.end, place.where, place.of) != (start, end, where, beginning.of):
        raise RefusedError(
            "the page token belongs to another comparison than the one that is asked for: start again without it"
        )
    first, second = _pinned_at(session, before, place.before), _pinned_at(session, after, place.after)
    return tokens, place, replace(comparison, before=first, after=second)


def _pinned_at(session: NessieSession, seen: SeenReference, commit_id: ObjectId | None) -> SeenReference:
    try:
        head = None if commit_id is None else session.catalog.resolve(id_text(commit_id))
    except ExpiredError as fault:
        raise expired_page_error(fault) from fault
    return replace(seen, state=BranchState(session.catalog, session.rows, head))


def _read_page(comparison: _Comparison, place: ChangeToken, limit: int) -> ShownPage[DiffEntryBody]:
    if comparison.range.keys:
        bodies = _bodies(comparison, _changes_of_keys(comparison))
        return ShownPage([body for body in bodies if body is not None], None)
    try:
        return read_shown(
            _source(comparison, place),
            lambda changes: _bodies(comparison, changes),
            token=place.to_text(),
            limit=limit,
            is_all_shown=comparison.session.references is None,
            clock=comparison.session.rows.clock,
        )
    except ExpiredError as fault:
        raise expired_page_error(fault) from fault


def _source(
    comparison: _Comparison, beginning: ChangeToken
) -> Callable[[str | None, int], tuple[Sequence[ContentChange], str | None]]:
    heads = comparison.before.head, comparison.after.head

    def read(token: str | None, limit: int) -> tuple[Sequence[ContentChange], str | None]:
        place = beginning if token is None else ChangeToken.from_text(token)
        page = compare_commits(*heads, place, limit=limit, expression=comparison.where)
        return page.changes, page.next_token

    return read


def _changes_of_keys(comparison: _Comparison) -> list[ContentChange]:
    keys = sorted({key.to_index() for key in comparison.range.keys_within})
    changes = changed_keys(comparison.before.head, comparison.after.head, keys)
    return [change for change in changes if comparison.where is None or comparison.where.chooses(change)]


def _bodies(comparison: _Comparison, changes: Sequence[ContentChange]) -> list[DiffEntryBody | None]:
    """The differences as clients read them; None for one of which the caller may not read a side."""
    before, after, references = comparison.before, comparison.after, comparison.session.references
    listed = changes if references is None else references.filter_changes(changes, before.rights, after.rights)
    firsts = iter(read_shown_contents(before, [(each.key, each.before) for each in listed if each.before is not None]))
    seconds = iter(read_shown_contents(after, [(each.key, each.after) for each in listed if each.after is not None]))
    shown: dict[ContentKey, DiffEntryBody] = {}
    for change in listed:
        first = None if change.before is None else next(firsts)
        second = None if change.after is None else next(seconds)
        if _is_whole(change.before, first) and _is_whole(change.after, second):
            bodies = (
                None if content is None else content_body(change.key, content, version=comparison.version)
                for content in (first, second)
            )
            shown[change.key] = DiffEntryBody(ContentKeyBody.of_key(change.key), *bodies)
    return [shown.get(change.key) for change in changes]


def _is_whole(value: ContentValue | None, content: object) -> bool:
    """Whether a side is shown as it is: where something stands, it is there."""
    return (value is None) == (content is None)


def _id_of(head: Head | None) -> ObjectId | None:
    return None if head is None else head.id
