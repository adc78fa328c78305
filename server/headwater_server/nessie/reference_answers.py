"""References as both versions of Nessie's API answer them: one, all, created, moved and deleted."""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from headwater.catalogs import NamedRef, RefKind
from headwater.errors import RefusedError
from headwater_server.call import Answer, Call
from headwater_server.nessie.api_paths import CHANGE_ERRORS, READ_ERRORS, TREE, TREES, V1
from headwater_server.nessie.content_bodies import ApiVersion
from headwater_server.nessie.nessie_session import SeenReference, open_nessie
from headwater_server.nessie.reference_changes import create_named_ref, delete_named_ref, move_named_ref
from headwater_server.nessie.reference_metadata import metadata_body, read_facts
from headwater_server.nessie.reference_paths import (
    DETACHED,
    ReferencePath,
    hash_text,
    parse_reference_path,
    reference_from_query,
)
from headwater_server.nessie.reference_shapes import (
    CreationQuery,
    ExpectedQueryV1,
    GivenReference,
    KindQuery,
    ReferenceAnswer,
    ReferenceBody,
    ReferenceMetadata,
    ReferenceQuery,
    SourceQueryV1,
)
from headwater_server.route_table import Route

_TREE_V1 = f"{V1}/trees/tree"
_NAMED_V1 = f"{V1}/trees/{{type}}/{{ref}}"


def reference_routes() -> list[Route]:
    """Make the routes of references."""
    return [*_routes_v2(), *_routes_v1()]


def _routes_v2() -> list[Route]:
    return [
        Route(
            method="POST",
            template=TREES,
            handler=answer_creation,
            name="nessieCreateReference",
            needs="REFERENCE_CREATE on the new name; REFERENCE_ASSIGN, too, if it would show more than its source does",
            summary="Create a branch or tag at a commit.",
            writes=True,
            query=CreationQuery,
            body=GivenReference,
            answers={200: ReferenceAnswer},
            errors=CHANGE_ERRORS,
        ),
        Route(
            method="GET",
            template=TREE,
            handler=answer_reference,
            name="nessieGetReference",
            needs="any right that holds on the reference; REFERENCE_READ_HISTORY for how it stands to the default branch",
            summary="Say where a branch or tag is.",
            query=ReferenceQuery,
            answers={200: ReferenceAnswer},
            errors=READ_ERRORS,
        ),
        Route(
            method="PUT",
            template=TREE,
            handler=answer_assignment,
            name="nessieAssignReference",
            needs="REFERENCE_ASSIGN on the reference",
            summary="Move a branch or tag to another commit.",
            writes=True,
            query=KindQuery,
            body=GivenReference,
            answers={200: ReferenceAnswer},
            errors=CHANGE_ERRORS,
        ),
        Route(
            method="DELETE",
            template=TREE,
            handler=answer_deletion,
            name="nessieDeleteReference",
            needs="REFERENCE_DROP on the reference",
            summary="Delete a branch or tag.",
            writes=True,
            query=KindQuery,
            answers={200: ReferenceAnswer},
            errors=CHANGE_ERRORS,
        ),
    ]


def _routes_v1() -> list[Route]:
    return [
        Route(
            method="GET",
            template=_TREE_V1,
            handler=answer_default_branch,
            name="nessieGetDefaultBranchV1",
            needs="any right that holds on the default branch",
            summary="Say where the default branch is.",
            answers={200: ReferenceBody},
            errors=READ_ERRORS,
        ),
        Route(
            method="POST",
            template=_TREE_V1,
            handler=answer_creation_v1,
            name="nessieCreateReferenceV1",
            needs="REFERENCE_CREATE on the new name; REFERENCE_ASSIGN, too, if it would show more than its source does",
            summary="Create a branch or tag at a commit.",
            writes=True,
            query=SourceQueryV1,
            body=GivenReference,
            answers={200: ReferenceBody},
            errors=CHANGE_ERRORS,
        ),
        Route(
            method="GET",
            template=f"{_TREE_V1}/{{ref}}",
            handler=answer_reference_v1,
            name="nessieGetReferenceV1",
            needs="any right that holds on the reference",
            summary="Say where a branch or tag is.",
            query=ReferenceQuery,
            answers={200: ReferenceBody},
            errors=READ_ERRORS,
        ),
        Route(
            method="PUT",
            template=_NAMED_V1,
            handler=answer_assignment_v1,
            name="nessieAssignReferenceV1",
            needs="REFERENCE_ASSIGN on the reference",
            summary="Move a branch or tag to another commit.",
            writes=True,
            query=ExpectedQueryV1,
            body=GivenReference,
            answers={204: None},
            errors=CHANGE_ERRORS,
        ),
        Route(
            method="DELETE",
            template=_NAMED_V1,
            handler=answer_deletion_v1,
            name="nessieDeleteReferenceV1",
            needs="REFERENCE_DROP on the reference",
            summary="Delete a branch or tag.",
            writes=True,
            query=ExpectedQueryV1,
            answers={204: None},
            errors=CHANGE_ERRORS,
        ),
    ]


def answer_reference(call: Call[ReferenceQuery, None]) -> Answer:
    """Say where a branch or tag is."""
    return Answer(body=ReferenceAnswer(_read_reference(call, parse_bare_path(call.path["ref"]))))


def answer_reference_v1(call: Call[ReferenceQuery, None]) -> Answer:
    """Say where a branch or tag is."""
    return Answer(body=_read_reference(call, reference_from_query(call.path["ref"]), 1))


def answer_default_branch(call: Call[None, None]) -> Answer:
    """Say where the default branch is."""
    return Answer(body=_read_reference(call, reference_from_query(None), 1))


def answer_creation(call: Call[CreationQuery, GivenReference]) -> Answer:
    """Create a branch or tag at the commit that the body names."""
    source, kind = given_path(call.body), RefKind(call.query.type.lower())
    return Answer(body=ReferenceAnswer(reference_body(create_named_ref(open_nessie(call), kind, call.query.name, source))))


def answer_creation_v1(call: Call[SourceQueryV1, GivenReference]) -> Answer:
    """Create the branch or tag that the body describes."""
    if not call.body.name:
        raise RefusedError("the body gives the new reference no name")
    source = reference_from_query(call.query.source_ref_name, call.body.hash)
    return Answer(
        body=reference_body(create_named_ref(open_nessie(call), parse_ref_kind(call.body.type), call.body.name, source))
    )


def answer_assignment(call: Call[KindQuery, GivenReference]) -> Answer:
    """Move a branch or tag to the commit that the body names."""
    path, kind = parse_reference_path(call.path["ref"]), _kind_or_none(call.query.type)
    now = move_named_ref(open_nessie(call), path, kind, given_path(call.body))
    return Answer(body=ReferenceAnswer(reference_body(now)))


def answer_assignment_v1(call: Call[ExpectedQueryV1, GivenReference]) -> Answer:
    """Move a branch or tag to the commit that the body names."""
    path = reference_from_query(call.path["ref"], call.query.expected_hash)
    move_named_ref(open_nessie(call), path, parse_ref_kind(call.path["type"]), given_path(call.body))
    return Answer(204)


def answer_deletion(call: Call[KindQuery, None]) -> Answer:
    """Delete a branch or tag."""
    path, kind = parse_reference_path(call.path["ref"]), _kind_or_none(call.query.type)
    return Answer(body=ReferenceAnswer(reference_body(delete_named_ref(open_nessie(call), path, kind))))


def answer_deletion_v1(call: Call[ExpectedQueryV1, None]) -> Answer:
    """Delete a branch or tag."""
    path = reference_from_query(call.path["ref"], call.query.expected_hash)
    delete_named_ref(open_nessie(call), path, parse_ref_kind(call.path["type"]))
    return Answer(204)


def reference_body(ref: NamedRef, metadata: ReferenceMetadata | UnsetType = UNSET) -> ReferenceBody:
    """A branch or tag as it is now."""
    return ReferenceBody("BRANCH" if ref.kind is RefKind.BRANCH else "TAG", ref.name, hash_text(ref.head), metadata)


def seen_body(seen: SeenReference) -> ReferenceBody:
    """A reference at the commit that was read."""
    if seen.kind is None or seen.name is None:
        return ReferenceBody("DETACHED", DETACHED, seen.hash)
    return ReferenceBody("BRANCH" if seen.kind is RefKind.BRANCH else "TAG", seen.name, seen.hash)


def given_path(given: GivenReference) -> ReferencePath:
    """The commit that a body names; raises RefusedError."""
    if given.type.upper() not in ("BRANCH", "TAG", DETACHED):
        raise RefusedError(f"a reference is a BRANCH, a TAG or {DETACHED}, and not {given.type[:80]!r}")
    is_detached = given.type.upper() == DETACHED or not given.name
    return reference_from_query(DETACHED if is_detached else given.name, given.hash)


def parse_bare_path(text: str) -> ReferencePath:
    """Parse the name of a branch or tag; raises RefusedError for anything that names a commit."""
    path = parse_reference_path(text)
    if not path.is_bare:
        raise RefusedError(f"{text!r} names a commit: ask for a branch or tag by its name alone")
    return path


def parse_ref_kind(text: str) -> RefKind:
    """The kind that a text names; raises RefusedError."""
    try:
        return RefKind(text.lower())
    except ValueError:
        raise RefusedError(f"a reference is a branch or a tag, and not {text[:80]!r}") from None


def _kind_or_none(text: str | None) -> RefKind | None:
    return None if text is None else parse_ref_kind(text)


def _read_reference(
    call: Call[ReferenceQuery, None] | Call[None, None], path: ReferencePath, version: ApiVersion = 2
) -> ReferenceBody:
    session = open_nessie(call)
    seen = session.see_reference(path)
    is_all = call.query is not None and call.query.fetch == "ALL"
    if not is_all or seen.kind is None or seen.name is None:
        return seen_body(seen)
    ref = session.catalog.refs.read_ref(seen.kind, seen.name)
    facts = read_facts(session, [ref], with_relation=True).get(ref)
    return reference_body(ref) if facts is None else reference_body(ref, metadata_body(session, ref, facts, version))
