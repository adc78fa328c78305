"""What differs between two references, as a resource. Pages are pinned to the two commits that the first one compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from headwater.catalogs import Content, ContentChange, ContentKey, MergeEffect
from headwater.catalogs.history.catalog_merge import TooManyChangesError, preview_effects
from headwater.catalogs.history.content_diff import ChangeToken, compare_commits
from headwater.commits import Head
from headwater.errors import ExpiredError
from headwater.store import ObjectId
from headwater_server.call import Answer, Call
from headwater_server.management.contents.content_shapes import (
    MOST_PREVIEWED_CHANGES,
    DifferenceList,
    DifferencesQuery,
    MergeGap,
    ShownDifference,
)
from headwater_server.management.contents.contents_reader import ContentsReader, open_reader
from headwater_server.management.contents.shown_entries import entry_body
from headwater_server.management.route_parts import CATALOG_PATH, READ_ERRORS
from headwater_server.nessie.shown_contents import read_shown_contents
from headwater_server.nessie.shown_pages import PageTokens, expired_page_error, read_shown
from headwater_server.route_table import Route

_NEEDS: Final = (
    "REFERENCE_READ_HISTORY on the reference, of both. A difference is left out where the caller may not list what stands on either side;"
    " details are added where they may be read, and what a merge would do where all contents of both may be listed"
)


def difference_routes() -> list[Route]:
    """Make the route of differences."""
    return [
        Route(
            method="GET",
            template=f"{CATALOG_PATH}/diff",
            handler=answer_differences,
            name="listDifferences",
            needs=_NEEDS,
            summary="List the keys whose contents differ between two references.",
            query=DifferencesQuery,
            answers={200: DifferenceList},
            errors=READ_ERRORS,
        )
    ]


def answer_differences(call: Call[DifferencesQuery, None]) -> Answer:
    """List what differs between two references, by key."""
    query = call.query
    before, after = open_reader(call, ref=query.before), open_reader(call, ref=query.after)
    for side in (before, after):
        side.session.check_history(side.seen.rights)
    tokens = PageTokens.of_listing(before.session, "management diff", before.seen, after.seen)
    token = tokens.from_client(query.page_token)
    place = ChangeToken(_id_of(before.seen.head), _id_of(after.seen.head), None, None)
    if token is not None:
        place = ChangeToken.from_text(token)
        before, after = (_pinned(side, commit) for side, commit in ((before, place.before), (after, place.after)))
    try:
        page = read_shown(
            _source(before, after, place),
            lambda changes: _listed(before, after, changes),
            token=None if token is None else token,
            limit=query.page_size,
            is_all_shown=before.shows_all and after.shows_all,
            clock=before.session.rows.clock,
        )
    except ExpiredError as fault:
        raise expired_page_error(fault) from fault
    effects, gap = _merge_effects(before, after) if query.merge else (None, "NOT_REQUESTED")
    return Answer(
        body=DifferenceList(
            before=before.ref,
            before_commit=before.commit,
            after=after.ref,
            after_commit=after.commit,
            differences=_bodies(before, after, page.shown, effects, with_details=query.details),
            merge_gap=gap,
            next_page_token=tokens.to_client(page.token),
        )
    )


def _pinned(side: ContentsReader, commit_id: ObjectId | None) -> ContentsReader:
    if commit_id is not None:
        return side.at_commit(commit_id)
    return replace(side, seen=replace(side.seen, state=replace(side.seen.state, head=None)))


def _id_of(head: Head | None) -> ObjectId | None:
    return None if head is None else head.id


def _source(before: ContentsReader, after: ContentsReader, beginning: ChangeToken) -> Any:
    def read(token: str | None, limit: int) -> tuple[Sequence[ContentChange], str | None]:
        place = beginning if token is None else ChangeToken.from_text(token)
        page = compare_commits(before.seen.head, after.seen.head, place, limit=limit)
        return page.changes, page.next_token

    return read


def _listed(before: ContentsReader, after: ContentsReader, changes: Sequence[ContentChange]) -> Sequence[ContentChange | None]:
    """The differences of which the caller may list both sides, without the names of what it may not."""
    references = before.session.references
    if references is None:
        return changes
    shown = {each.key: each for each in references.filter_changes(changes, before.seen.rights, after.seen.rights)}
    return [shown.get(change.key) for change in changes]


def _merge_effects(
    before: ContentsReader, after: ContentsReader
) -> tuple[Mapping[ContentKey, MergeEffect] | None, MergeGap | None]:
    """What merging ``after`` into ``before`` would do, or why that is not reported. A hidden key can cause a conflict at another one."""
    if not (before.shows_all and after.shows_all):
        return None, "HIDDEN_CONTENTS"
    session = before.session
    try:
        effects = preview_effects(
            session.rows, session.definition.id, before.seen.head, after.seen.head, most=MOST_PREVIEWED_CHANGES
        )
    except TooManyChangesError:
        return None, "TOO_MANY_CHANGES"
    return effects, None if effects is not None else "NO_COMMON_ANCESTOR"


def _bodies(
    before: ContentsReader,
    after: ContentsReader,
    changes: Sequence[ContentChange],
    effects: Mapping[ContentKey, MergeEffect] | None,
    *,
    with_details: bool,
) -> list[ShownDifference]:
    """``effects`` of a merge; None: they are not reported."""
    olds: dict[ContentKey, Content | None] = {}
    news: dict[ContentKey, Content | None] = {}
    if with_details:
        first = [(each.key, each.before) for each in changes if each.before is not None]
        second = [(each.key, each.after) for each in changes if each.after is not None]
        olds = dict(zip([key for key, _ in first], read_shown_contents(before.seen, first), strict=True))
        news = dict(zip([key for key, _ in second], read_shown_contents(after.seen, second), strict=True))
    return [
        ShownDifference(
            key=list(change.key.elements),
            name=str(change.key),
            change="ADDED" if change.before is None else "REMOVED" if change.after is None else "CHANGED",
            before=None if change.before is None else entry_body(change.key, change.before, olds.get(change.key)),
            after=None if change.after is None else entry_body(change.key, change.after, news.get(change.key)),
            renamed_to=None if change.renamed_to is None else str(change.renamed_to),
            renamed_from=None if change.renamed_from is None else str(change.renamed_from),
            merge=None if effects is None else effects.get(change.key, MergeEffect.LEFT).value,
        )
        for change in changes
    ]
