"""Commits of content operations to a branch, as both versions of Nessie's API ask for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from msgspec import Struct

from headwater.access import ForbiddenError
from headwater.catalogs import (
    CommitMeta,
    Conflict,
    ConflictKind,
    ContentKey,
    ContentOperation,
    Delete,
    Put,
)
from headwater.commits import CommitResult
from headwater.errors import ConflictError, HeadwaterError, NotFoundError, RefusedError
from headwater.iceberg import is_within
from headwater.iceberg_catalog import IcebergCatalog
from headwater_server.call import Answer, Call
from headwater_server.nessie.api_paths import CHANGE_ERRORS, TREE, V1
from headwater_server.nessie.branch_targets import BranchTarget, authored, open_branch
from headwater_server.nessie.commit_meta_bodies import parse_commit_meta, with_headers
from headwater_server.nessie.nessie_errors import FileAtRiskError
from headwater_server.nessie.nessie_session import open_nessie
from headwater_server.nessie.operation_bodies import AddedContentBody, CommitRequest, added_content_bodies
from headwater_server.nessie.reference_paths import parse_reference_path, reference_from_query
from headwater_server.nessie.reference_shapes import ExpectedQueryV1, ReferenceBody
from headwater_server.nessie.repeated_commits import find_repeated, metadata_file
from headwater_server.route_table import HeaderField, Route

_NEEDS = (
    "what each operation does: TABLE_CREATE, TABLE_WRITE_DATA or TABLE_WRITE_PROPERTIES, TABLE_DROP, and the like for views and"
    " namespaces; to rename needs the right to read, too; REFERENCE_ASSIGN on the branch for a commit that changes nothing"
)
_META_HEADERS = (
    HeaderField("Nessie-Commit-Message", "The message, instead of that of the body"),
    HeaderField("Nessie-Commit-Authors", "Further authors"),
    HeaderField("Nessie-Commit-SignedOffBy", "Further sign-offs"),
)


class CommitBody(Struct, frozen=True, rename="camel"):
    """The branch after a commit, and what the commit created."""

    target_branch: ReferenceBody
    added_contents: list[AddedContentBody]


def commit_routes() -> list[Route]:
    """Make the routes of commits."""
    return [
        Route(
            method="POST",
            template=f"{TREE}/history/commit",
            handler=answer_commit,
            name="nessieCommit",
            needs=_NEEDS,
            summary="Apply operations to a branch in one commit, all or none.",
            writes=True,
            body=CommitRequest,
            headers=_META_HEADERS,
            answers={200: CommitBody},
            errors=CHANGE_ERRORS,
        ),
        Route(
            method="POST",
            template=f"{V1}/trees/branch/{{ref}}/commit",
            handler=answer_commit_v1,
            name="nessieCommitV1",
            needs=_NEEDS,
            summary="Apply operations to a branch in one commit, all or none.",
            writes=True,
            query=ExpectedQueryV1,
            body=CommitRequest,
            answers={200: ReferenceBody},
            errors=CHANGE_ERRORS,
        ),
    ]


def answer_commit(call: Call[None, CommitRequest]) -> Answer:
    """Apply operations to a branch in one commit."""
    target = open_branch(open_nessie(call), parse_reference_path(call.path["ref"]), is_hash_needed=True)
    meta = with_headers(parse_commit_meta(call.body.commit_meta), call.headers)
    done = _committed(call, target, meta)
    return Answer(body=CommitBody(target.body_at(done.commit_id), added_content_bodies(done.result)))


def answer_commit_v1(call: Call[ExpectedQueryV1, CommitRequest]) -> Answer:
    """Apply operations to a branch in one commit."""
    path = reference_from_query(call.path["ref"], call.query.expected_hash)
    target = open_branch(open_nessie(call), path, is_hash_needed=False)
    done = _committed(call, target, parse_commit_meta(call.body.commit_meta))
    return Answer(body=target.body_at(done.commit_id))


def _committed(call: Call[Any, CommitRequest], target: BranchTarget, meta: CommitMeta) -> CommitResult[dict[ContentKey, UUID]]:
    operations, lake = call.body.to_operations(), target.open_lake()
    references = target.session.references
    if references is not None and not any(isinstance(each, Put | Delete) for each in operations):
        references.check_assignment(target.name)  # nothing else is asked about: the branch moves, and nothing in it changes
    try:
        if target.is_before_all:
            _check_all_new(target, operations)
        return lake.commits.apply_operations(operations, expected=target.expected, meta=authored(meta, call), allow_empty=True)
    except (RefusedError, ConflictError, NotFoundError) as fault:
        if isinstance(fault, ConflictError) and (earlier := find_repeated(target, operations)) is not None:
            return earlier
        if not isinstance(fault, ForbiddenError) and _may_lose_a_file(fault, operations, lake):
            raise FileAtRiskError(str(fault)) from fault
        raise


def _may_lose_a_file(fault: HeadwaterError, operations: Sequence[ContentOperation], lake: IcebergCatalog) -> bool:
    """Whether the client, which deletes the metadata files that it named once a commit has failed, might delete one of somebody else.

    What it names for a table that it changes it has just written. What it names for a new one, too, or it is to register that: a file
    of another table, if it lies in a place that is taken; or one that is not of this catalog; or one that was refused for itself, and
    not for a name that is taken, of which the client wants to know.
    """
    named = {
        put.key: place
        for put in operations
        if isinstance(put, Put) and put.content.id is None and (place := metadata_file(put.content)) is not None
    }
    if not named:
        return False
    session, files = lake.session, list(named.values())
    places = session.catalog.definition.places
    if any(not any(is_within(file, place) for place in places) for file in files) or session.claims.find_holders(files):
        return True
    return isinstance(fault, RefusedError) and not session.state().find_many(list(named))


def _check_all_new(target: BranchTarget, operations: Sequence[ContentOperation]) -> None:
    """Check operations of a caller who has seen the branch before its first commit, when nothing was there to be changed.

    raises        ConflictError for all that do not create anything
    """
    unsound = [each.key for each in operations if not isinstance(each, Put) or each.content.id is not None]
    if unsound:
        text = f"was not there before the first commit of branch {target.name!r}, which the change was made from"
        conflicts = tuple(Conflict(ConflictKind.KEY_DOES_NOT_EXIST, key, text) for key in unsound)
        raise ConflictError(f"{unsound[0]} {text}", details=conflicts)
