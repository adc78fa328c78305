"""Branches and tags as resources: listed, created, moved, deleted and undeleted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headwater.access import ForbiddenError
from headwater.catalogs import NamedRef, RefKind
from headwater.clock import Micros, as_text
from headwater.errors import NotFoundError
from headwater.store import id_text
from headwater_server.call import Answer, Call
from headwater_server.management.contents.content_shapes import (
    CatalogReference,
    CatalogReferenceList,
    ReferenceAssignment,
    ReferenceCreation,
    ReferenceDeletionQuery,
    ReferencesListQuery,
    ReferenceUndeletionQuery,
)
from headwater_server.management.contents.contents_reader import bare_name, open_contents, parse_commit
from headwater_server.management.contents.shown_commits import commit_body
from headwater_server.management.listed_pages import page_by_name
from headwater_server.management.route_parts import CHANGE_ERRORS, READ_ERRORS, REFERENCE_PATH, REFERENCES_PATH
from headwater_server.nessie.nessie_session import NessieSession
from headwater_server.nessie.reference_metadata import RefFacts, read_facts
from headwater_server.nessie.reference_paths import parse_reference_path
from headwater_server.nessie.shown_pages import PageTokens, read_shown
from headwater_server.route_table import Route

_HISTORY = "REFERENCE_READ_HISTORY for its last commit, and for how it stands to the default branch"


def catalog_reference_routes() -> list[Route]:
    """Make the routes of branches and tags."""
    return [
        Route(
            method="GET",
            template=REFERENCES_PATH,
            handler=answer_reference_list,
            name="listReferences",
            needs=f"REFERENCE_LIST on each reference, others are left out; {_HISTORY}; REFERENCE_DROP for a deleted one",
            summary="List branches and tags by name, or the deleted ones that the caller may undelete.",
            query=ReferencesListQuery,
            answers={200: CatalogReferenceList},
            errors=READ_ERRORS,
        ),
        Route(
            method="POST",
            template=REFERENCES_PATH,
            handler=answer_reference_creation,
            name="createReference",
            needs="REFERENCE_CREATE on the new name; REFERENCE_ASSIGN, too, if it would show more than its source does",
            summary="Create a branch or tag.",
            writes=True,
            body=ReferenceCreation,
            answers={201: CatalogReference},
            errors=CHANGE_ERRORS,
        ),
        Route(
            method="GET",
            template=REFERENCE_PATH,
            handler=answer_catalog_reference,
            name="getReference",
            needs=f"any right that holds on the reference; {_HISTORY}",
            summary="Say where a branch or tag is.",
            answers={200: CatalogReference},
            errors=READ_ERRORS,
        ),
        Route(
            method="PUT",
            template=REFERENCE_PATH,
            handler=answer_reference_assignment,
            name="assignReference",
            needs="REFERENCE_ASSIGN on the reference",
            summary="Put a branch or tag at another commit.",
            writes=True,
            body=ReferenceAssignment,
            answers={200: CatalogReference},
            errors=CHANGE_ERRORS,
        ),
        Route(
            method="DELETE",
            template=REFERENCE_PATH,
            handler=answer_reference_deletion,
            name="deleteReference",
            needs="REFERENCE_DROP on the reference",
            summary="Delete a branch or tag; until the grace is over it can be undeleted.",
            writes=True,
            query=ReferenceDeletionQuery,
            answers={200: CatalogReference},
            errors=CHANGE_ERRORS,
        ),
        Route(
            method="POST",
            template=f"{REFERENCE_PATH}/undelete",
            handler=answer_reference_undeletion,
            name="undeleteReference",
            needs="REFERENCE_DROP on the reference",
            summary="Undelete a branch or tag.",
            writes=True,
            query=ReferenceUndeletionQuery,
            answers={200: CatalogReference},
            errors=CHANGE_ERRORS,
        ),
    ]


def answer_reference_list(call: Call[ReferencesListQuery, None]) -> Answer:
    """List branches and tags by name."""
    session, query = open_contents(call), call.query
    kind = None if query.kind is None else RefKind(query.kind)
    if query.deleted:
        listed = sorted(_deleted(session, kind), key=_deleted_name)
        page, token = page_by_name(listed, query, name=_deleted_name)
        bodies = _bodies(session, [ref for ref, _ in page], dict(page))
        return Answer(body=CatalogReferenceList(bodies, token))
    tokens = PageTokens.of_listing(session, f"management references {kind}")

    def read(token: str | None, limit: int) -> tuple[Sequence[NamedRef], str | None]:
        refs = session.catalog.refs.list_page(kind=kind, limit=limit, page_token=token)
        return refs.refs, refs.next_token

    shown = read_shown(
        read,
        lambda refs: _listed(session, refs),
        token=tokens.from_client(query.page_token),
        limit=query.page_size,
        is_all_shown=session.references is None,
        clock=session.rows.clock,
    )
    return Answer(body=CatalogReferenceList(_bodies(session, shown.shown), tokens.to_client(shown.token)))


def answer_catalog_reference(call: Call[None, None]) -> Answer:
    """Say where a branch or tag is."""
    session = open_contents(call)
    name = bare_name(session, call.path["ref"])
    seen = session.see_reference(parse_reference_path(name))
    assert seen.kind is not None, "a name is no hash"
    return _answer(session, session.catalog.refs.read_ref(seen.kind, name))


def answer_reference_creation(call: Call[None, ReferenceCreation]) -> Answer:
    """Create a branch or tag at the commit that its source is at now; raises ConflictError for a name that is taken."""
    session, wish = open_contents(call), call.body
    kind, seen = RefKind(wish.kind), session.see_reference(parse_reference_path(wish.source))
    if session.references is not None:
        session.references.check_creation(wish.name, seen.rights)
    refs = session.catalog.refs
    if seen.head is None:
        made = refs.create_empty_ref(kind, wish.name)
    else:
        made = refs.create_ref(kind, wish.name, source=seen.name, at=seen.head.id)
    return _answer(session, made, status=201)


def answer_reference_assignment(call: Call[None, ReferenceAssignment]) -> Answer:
    """Put a branch or tag at another commit; raises ConflictError where it is not at the expected one."""
    session, wish = open_contents(call), call.body
    name = bare_name(session, call.path["ref"])
    if session.references is not None:
        session.references.check_assignment(name)
    expected = None if wish.expected is None else parse_commit("expected", wish.expected)
    before = _read_named(session, name)
    head = session.see_reference(parse_reference_path(wish.target)).head
    if head is None:
        raise NotFoundError(f"target: {wish.target[:200]!r} has no commit yet, so nothing can be put there")
    return _answer(session, session.catalog.refs.assign_ref(before.kind, name, head.id, expected=expected))


def answer_reference_deletion(call: Call[ReferenceDeletionQuery, None]) -> Answer:
    """Delete a branch or tag; raises ConflictError where it is not at the expected commit, RefusedError for the default branch."""
    session, query = open_contents(call), call.query
    name = bare_name(session, call.path["ref"])
    if session.references is not None:
        session.references.check_drop(name)
    expected = None if query.expected is None else parse_commit("expected", query.expected)
    kind = _read_named(session, name).kind
    return _answer(session, session.catalog.refs.delete_ref(kind, name, expected=expected))


def answer_reference_undeletion(call: Call[ReferenceUndeletionQuery, None]) -> Answer:
    """Undelete a branch or tag at its last commit; raises ConflictError for a name that is taken."""
    session = open_contents(call)
    name = bare_name(session, call.path["ref"])
    if session.references is not None:
        session.references.check_drop(name)
    return _answer(session, session.catalog.refs.undelete_ref(RefKind(call.query.kind), name))


def _listed(session: NessieSession, refs: Sequence[NamedRef]) -> list[NamedRef | None]:
    if session.references is None:
        return list(refs)
    names = set(session.references.filter_listed(sorted({ref.name for ref in refs})))
    return [ref if ref.name in names else None for ref in refs]


def _deleted(session: NessieSession, kind: RefKind | None) -> list[tuple[NamedRef, Micros]]:
    """The deleted branches and tags that the caller may undelete, with the times of their deletions."""
    kinds = list(RefKind) if kind is None else [kind]
    deleted = [pair for each in kinds for pair in session.catalog.refs.list_deleted(each)]
    return [(ref, at) for ref, at in deleted if _may_drop(session, ref.name)]


def _may_drop(session: NessieSession, name: str) -> bool:
    if session.references is None:
        return True
    try:
        session.references.check_drop(name)
    except (ForbiddenError, NotFoundError):
        return False
    return True


def _deleted_name(pair: tuple[NamedRef, Micros]) -> str:
    return f"{pair[0].name} {pair[0].kind}"


def _read_named(session: NessieSession, name: str) -> NamedRef:
    named = session.catalog.refs.find_named(name)
    if named is None:
        raise NotFoundError(f"catalog {session.definition.name!r} has no reference {name!r}")
    return named


def _answer(session: NessieSession, ref: NamedRef, *, status: int = 200) -> Answer:
    [body] = _bodies(session, [ref])
    return Answer(status, body)


def _bodies(
    session: NessieSession, refs: Sequence[NamedRef], deleted: Mapping[NamedRef, Micros] | None = None
) -> list[CatalogReference]:
    facts = read_facts(session, refs, with_relation=True)
    return [_body(session, ref, facts.get(ref), (deleted or {}).get(ref)) for ref in refs]


def _body(session: NessieSession, ref: NamedRef, facts: RefFacts | None, deleted: Micros | None) -> CatalogReference:
    is_default = ref.kind is RefKind.BRANCH and ref.name == session.definition.default_branch
    relation = None if facts is None or is_default or ref.kind is RefKind.TAG else facts.relation
    stands: dict[str, Any] = {"ahead": None, "behind": None, "common_ancestor": None}
    if relation is not None:
        common = relation.common_ancestor
        stands = {
            "ahead": relation.ahead,
            "behind": relation.behind,
            "common_ancestor": None if common is None else id_text(common),
        }
    return CatalogReference(
        name=ref.name,
        kind=ref.kind.value,
        is_default=is_default,
        head=ref.hash,
        commits=None if facts is None else facts.total,
        last_commit=None if facts is None or facts.entry is None else commit_body(facts.entry, is_hidden=facts.is_hidden),
        deleted_at=None if deleted is None else as_text(deleted),
        **stands,
    )
