"""Merges and transplants, as both versions of Nessie's API ask for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headwater.catalogs import MergeConflictError, MergeGuard, MergeResult
from headwater.catalogs.history.transplant import check_commit_count
from headwater.errors import RefusedError
from headwater.iceberg_catalog import IcebergCatalog
from headwater.store import ObjectId
from headwater_server.call import Answer, Call
from headwater_server.nessie.api_paths import CHANGE_ERRORS, TREE, V1
from headwater_server.nessie.branch_targets import BranchTarget, authored, open_branch
from headwater_server.nessie.commit_meta_bodies import with_headers
from headwater_server.nessie.merge_bodies import (
    MergeBody,
    MergeBodyV1,
    MergeRequest,
    MergeSwitches,
    TransplantRequest,
    merge_body,
    merge_body_v1,
)
from headwater_server.nessie.nessie_session import SeenReference, open_nessie
from headwater_server.nessie.reference_paths import ReferencePath, parse_reference_path, reference_from_query
from headwater_server.nessie.reference_shapes import ExpectedQueryV1
from headwater_server.route_table import Route

_NEEDS = (
    "for each key that it brings, the right to read it at the source, and to create, change or drop it at the target;"
    " REFERENCE_READ_HISTORY for a source that is not the head of a branch or tag"
)


def merge_routes() -> list[Route]:
    """Make the routes of merges and transplants."""
    return [
        Route(
            method="POST",
            template=f"{TREE}/history/merge",
            handler=answer_merge,
            name="nessieMerge",
            needs=_NEEDS,
            summary="Merge the changes of a source into a branch, in one commit.",
            writes=True,
            body=MergeRequest,
            answers={200: MergeBody},
            errors=CHANGE_ERRORS,
        ),
        Route(
            method="POST",
            template=f"{TREE}/history/transplant",
            handler=answer_transplant,
            name="nessieTransplant",
            needs=f"{_NEEDS}; REFERENCE_READ_HISTORY on the source",
            summary="Repeat commits of a source on a branch, all or none.",
            writes=True,
            body=TransplantRequest,
            answers={200: MergeBody},
            errors=CHANGE_ERRORS,
        ),
        Route(
            method="POST",
            template=f"{V1}/trees/branch/{{ref}}/merge",
            handler=answer_merge_v1,
            name="nessieMergeV1",
            needs=_NEEDS,
            summary="Merge the changes of a source into a branch, in one commit.",
            writes=True,
            query=ExpectedQueryV1,
            body=MergeRequest,
            answers={200: MergeBodyV1},
            errors=CHANGE_ERRORS,
        ),
        Route(
            method="POST",
            template=f"{V1}/trees/branch/{{ref}}/transplant",
            handler=answer_transplant_v1,
            name="nessieTransplantV1",
            needs=f"{_NEEDS}; REFERENCE_READ_HISTORY on the source",
            summary="Repeat commits of a source on a branch, all or none.",
            writes=True,
            query=ExpectedQueryV1,
            body=TransplantRequest,
            answers={200: MergeBodyV1},
            errors=CHANGE_ERRORS,
        ),
    ]


def answer_merge(call: Call[None, MergeRequest]) -> Answer:
    """Merge the changes of a source into a branch."""
    target = open_branch(open_nessie(call), parse_reference_path(call.path["ref"]), is_hash_needed=True)
    result = _merged(call, target)
    return Answer(body=merge_body(result, target.name, expected_hash=target.expected_hash, is_merge=True))


def answer_merge_v1(call: Call[ExpectedQueryV1, MergeRequest]) -> Answer:
    """Merge the changes of a source into a branch."""
    target = _target_v1(call)
    result = _merged(call, target)
    return Answer(body=merge_body_v1(result, target.name, expected_hash=target.expected_hash, is_merge=True))


def answer_transplant(call: Call[None, TransplantRequest]) -> Answer:
    """Repeat commits of a source on a branch."""
    target = open_branch(open_nessie(call), parse_reference_path(call.path["ref"]), is_hash_needed=True)
    result = _transplanted(call, target)
    return Answer(body=merge_body(result, target.name, expected_hash=target.expected_hash, is_merge=False))


def answer_transplant_v1(call: Call[ExpectedQueryV1, TransplantRequest]) -> Answer:
    """Repeat commits of a source on a branch."""
    target = _target_v1(call)
    result = _transplanted(call, target)
    return Answer(body=merge_body_v1(result, target.name, expected_hash=target.expected_hash, is_merge=False))


def _target_v1(call: Call[ExpectedQueryV1, Any]) -> BranchTarget:
    path = reference_from_query(call.path["ref"], call.query.expected_hash)
    return open_branch(open_nessie(call), path, is_hash_needed=False)


def _merged(call: Call[Any, MergeRequest], target: BranchTarget) -> MergeResult:
    source = call.body.to_source()
    seen = target.session.see_reference(source)
    meta = authored(with_headers(call.body.to_meta(), call.headers), call)
    lake, text = target.open_lake(), merge_source_text(seen)
    resolved = lake.commits.prepare_merge(call.body.to_options(), text, filter_readable=seen.filter_readable)
    fence = lake.session.hold_claims(resolved.claims, f"merge {source} into {target.name}")

    def merge() -> MergeResult:
        return target.session.catalog.merge(
            text,
            target.name,
            expected=target.expected,
            meta=meta,
            options=resolved.options,
            fence=fence,
            guard=merge_guard_of(target, seen),
        )

    return _told(merge, lake, call.body)


def _transplanted(call: Call[Any, TransplantRequest], target: BranchTarget) -> MergeResult:
    session, sources = target.session, call.body.to_sources()
    check_commit_count(len(sources))
    # commits that stand alone: the last of them has all of them in its history, or else they are no series
    seen = session.see_reference(sources[-1] if sources[0].name is None else ReferencePath(sources[0].name))
    if session.references is not None:
        session.references.check_read(seen.rights)
    commits = [_commit_of(target, source) for source in sources]
    override = call.body.to_override()
    meta = None if override is None else authored(override, call)
    lake, text = target.open_lake(), merge_source_text(seen)
    resolved = lake.commits.prepare_merge(call.body.to_options(), text, filter_readable=seen.filter_readable)
    fence = lake.session.hold_claims(resolved.claims, f"transplant onto {target.name}")

    def transplant() -> MergeResult:
        return session.catalog.transplant(
            text,
            commits,
            target.name,
            expected=target.expected,
            meta=meta,
            options=resolved.options,
            fence=fence,
            guard=merge_guard_of(target, seen),
        )

    return _told(transplant, lake, call.body)


def _commit_of(target: BranchTarget, source: ReferencePath) -> ObjectId:
    head = target.session.catalog.resolve(source.to_revspec(), exact=True)
    assert head is not None, "a hash is of a commit"
    return head.id


def merge_guard_of(target: BranchTarget, seen: SeenReference) -> MergeGuard | None:
    """What a merge of a source is asked about, for the caller; None: nobody has to prove who calls."""
    references = target.session.references
    return None if references is None else references.merge_guard(seen.rights, target.name)


def merge_source_text(seen: SeenReference) -> str:
    """The commit that is merged, with its branch or tag for the message."""
    if seen.commit_text is None:
        raise RefusedError(f"{seen.name!r} has no commit yet: there is nothing to take from it")
    return seen.commit_text if seen.name is None else f"{seen.name}@{seen.commit_text}"


def _told(change: Callable[[], MergeResult], lake: IcebergCatalog, asked: MergeSwitches) -> MergeResult:
    """The result of a merge; conflicts are one where the client wants to be told so."""
    try:
        return change()
    except MergeConflictError as fault:
        told = lake.commits.told_merge(fault)
        if asked.returns_conflicts:
            return told.result
        raise told from fault
