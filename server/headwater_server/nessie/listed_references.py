"""The branches and tags of a catalog, as both versions of Nessie's API list them.

A page is read from the list as it is then: what is created or deleted between two pages may be in the listing or not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from headwater.catalogs import NamedRef, ReferenceExpression
from headwater_server.call import Answer, Call
from headwater_server.nessie.api_paths import READ_ERRORS, TREES, V1
from headwater_server.nessie.content_bodies import ApiVersion
from headwater_server.nessie.nessie_session import NessieSession, open_nessie
from headwater_server.nessie.reference_answers import reference_body
from headwater_server.nessie.reference_metadata import metadata_body, read_facts
from headwater_server.nessie.reference_shapes import ReferenceBody, ReferencesPage, ReferencesQuery, ReferencesQueryV1
from headwater_server.nessie.shown_pages import PageTokens, page_limit, read_shown
from headwater_server.route_table import Route

_NEEDS: Final = (
    "REFERENCE_LIST on each reference; others are left out. REFERENCE_READ_HISTORY for its last commit, and for how it stands to the"
    " default branch"
)
_MOST: Final = 10_000
"""References of a page."""
_MOST_WITH_METADATA: Final = 1_000


def listed_references_routes() -> list[Route]:
    """Make the routes of listings of references."""
    return [
        Route(
            method="GET",
            template=TREES,
            handler=answer_references,
            name="nessieListReferences",
            needs=_NEEDS,
            summary="List branches and tags by name.",
            query=ReferencesQuery,
            answers={200: ReferencesPage},
            errors=READ_ERRORS,
        ),
        Route(
            method="GET",
            template=f"{V1}/trees",
            handler=answer_references_v1,
            name="nessieListReferencesV1",
            needs=_NEEDS,
            summary="List branches and tags by name.",
            query=ReferencesQueryV1,
            answers={200: ReferencesPage},
            errors=READ_ERRORS,
        ),
    ]


def answer_references(call: Call[ReferencesQuery, None]) -> Answer:
    """List branches and tags by name."""
    return _answer(call, 2)


def answer_references_v1(call: Call[ReferencesQueryV1, None]) -> Answer:
    """List branches and tags by name."""
    return _answer(call, 1)


def _answer(call: Call[ReferencesQuery, None] | Call[ReferencesQueryV1, None], version: ApiVersion) -> Answer:
    query, is_all = call.query, call.query.fetch == "ALL"
    where = ReferenceExpression.parse(query.filter) if query.filter else None
    session = open_nessie(call)
    tokens = PageTokens.of_listing(session, "references")

    def read(token: str | None, limit: int) -> tuple[Sequence[NamedRef], str | None]:
        page = session.catalog.refs.list_page(limit=limit, page_token=token)
        return page.refs, page.next_token

    page = read_shown(
        read,
        _shown(session, where),
        token=tokens.from_client(query.page_token),
        limit=page_limit(query.max_records, _MOST_WITH_METADATA if is_all else _MOST),
        is_all_shown=session.references is None and where is None,
        clock=session.rows.clock,
    )
    bodies = _bodies_with_metadata(session, page.shown, version) if is_all else [reference_body(ref) for ref in page.shown]
    return Answer(body=ReferencesPage(page.token is not None, tokens.to_client(page.token), bodies))


def _shown(
    session: NessieSession, where: ReferenceExpression | None
) -> Callable[[Sequence[NamedRef]], Sequence[NamedRef | None]]:
    """What is shown of references: what the caller may list, and the filter chooses by what the caller may know."""

    def show(refs: Sequence[NamedRef]) -> list[NamedRef | None]:
        names = {ref.name for ref in refs}
        if session.references is not None:
            names = set(session.references.filter_listed(sorted(names)))
        chosen = set(_chosen(session, [ref for ref in refs if ref.name in names], where))
        return [ref if ref in chosen else None for ref in refs]

    return show


def _chosen(session: NessieSession, refs: Sequence[NamedRef], where: ReferenceExpression | None) -> Sequence[NamedRef]:
    if where is None:
        return refs
    facts = read_facts(session, refs, with_relation=where.asks_relation) if where.asks_commit else {}
    return [
        ref for ref in refs if (where.chooses(ref, facts[ref].entry, facts[ref].judged) if ref in facts else where.chooses(ref))
    ]


def _bodies_with_metadata(session: NessieSession, refs: Sequence[NamedRef], version: ApiVersion) -> list[ReferenceBody]:
    facts = read_facts(session, refs, with_relation=True)
    return [
        reference_body(ref, metadata_body(session, ref, facts[ref], version)) if ref in facts else reference_body(ref)
        for ref in refs
    ]
