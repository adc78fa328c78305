"""Merges and transplants, done or simulated. Conflicts are an answer like others, with what stands on both sides of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Final

from headwater.catalogs import (
    CommitMeta,
    Conflict,
    ContentKey,
    KeyMerge,
    MergeConflictError,
    MergeMode,
    MergeOptions,
    MergeOutcome,
    MergeResult,
)
from headwater.catalogs.history.transplant import check_commit_count
from headwater.store import ObjectId, id_text
from headwater_server.call import Answer, Call
from headwater_server.management.contents.contents_reader import (
    ContentsReader,
    bare_name,
    open_contents,
    parse_commit,
)
from headwater_server.management.contents.merge_shapes import (
    ConflictOfKey,
    ConflictSide,
    MergeAnswer,
    MergeStatus,
    MergeWish,
    OutcomeOfKey,
    TransplantWish,
)
from headwater_server.management.contents.merge_sides import SIDES_TOLD, read_sides
from headwater_server.management.route_parts import CHANGE_ERRORS, REFERENCE_PATH
from headwater_server.nessie.branch_merges import merge_guard_of, merge_source_text
from headwater_server.nessie.branch_targets import BranchTarget, authored, open_branch
from headwater_server.nessie.nessie_session import NessieSession, SeenReference
from headwater_server.nessie.reference_paths import ReferencePath, parse_reference_path
from headwater_server.route_table import Route

_NEEDS: Final = (
    "for each key that it brings, the right to read it at the source, and to create, change or drop it at the target;"
    " REFERENCE_READ_HISTORY for a source that is not the head of a branch or tag"
)
_CHANGING: Final = frozenset({MergeOutcome.PUT, MergeOutcome.REMOVED, MergeOutcome.RESOLVED})


def branch_merge_routes() -> list[Route]:
    """Make the routes of merges and transplants."""
    return [
        Route(
            method="POST",
            template=f"{REFERENCE_PATH}/merge",
            handler=answer_branch_merge,
            name="mergeIntoBranch",
            needs=_NEEDS,
            summary="Merge a source into a branch, or tell what that would do.",
            writes=True,
            body=MergeWish,
            answers={200: MergeAnswer},
            errors=CHANGE_ERRORS,
        ),
        Route(
            method="POST",
            template=f"{REFERENCE_PATH}/transplant",
            handler=answer_branch_transplant,
            name="transplantOntoBranch",
            needs=f"{_NEEDS}; REFERENCE_READ_HISTORY on the source",
            summary="Repeat commits of a source on a branch, all or none, or tell what that would do.",
            writes=True,
            body=TransplantWish,
            answers={200: MergeAnswer},
            errors=CHANGE_ERRORS,
        ),
    ]


def answer_branch_merge(call: Call[None, MergeWish]) -> Answer:
    """Merge a source into a branch."""
    session, wish, target = _target_of(call)
    seen = session.see_reference(parse_reference_path(wish.source))
    meta = authored(CommitMeta(message=wish.message), call)
    merge = partial(session.catalog.merge, merge_source_text(seen), meta=meta)
    return _answer(call, target, seen, merge)


def answer_branch_transplant(call: Call[None, TransplantWish]) -> Answer:
    """Repeat commits of a source on a branch."""
    session, wish, target = _target_of(call)
    check_commit_count(len(call.body.commits))
    seen = session.see_reference(parse_reference_path(wish.source))
    session.check_history(seen.rights)
    commits = [_commit_of(seen, text) for text in call.body.commits]
    is_renamed = bool(wish.message) and len(commits) == 1
    meta = authored(CommitMeta(message=wish.message), call) if is_renamed else None
    transplant = partial(session.catalog.transplant, merge_source_text(seen), commits, meta=meta)
    return _answer(call, target, seen, transplant)


def _target_of(call: Call[None, Any]) -> tuple[NessieSession, MergeWish, BranchTarget]:
    session, wish = open_contents(call), call.body
    target = open_branch(session, ReferencePath(bare_name(session, call.path["ref"])), is_hash_needed=False)
    if wish.expected is not None:
        target = replace(target, expected=parse_commit("expected", wish.expected))
    return session, wish, target


def _commit_of(seen: SeenReference, text: str) -> ObjectId:
    """A commit that is to be repeated; raises NotFoundError for one that is not in the history of the source."""
    path = ReferencePath(seen.name, id_text(parse_commit("commits", text)))
    head = seen.state.catalog.resolve(path.to_revspec(), exact=True)
    assert head is not None, "a hash is of a commit"
    return head.id


def _answer(call: Call[None, Any], target: BranchTarget, seen: SeenReference, change: Callable[..., MergeResult]) -> Answer:
    wish, lake = call.body, target.open_lake()
    options = MergeOptions(
        mode=MergeMode(wish.default_mode),
        keys={ContentKey.parse(text): KeyMerge(mode=MergeMode(mode)) for text, mode in wish.keys.items()},
        dry_run=wish.dry_run,
    )
    resolved = lake.commits.prepare_merge(options, merge_source_text(seen), filter_readable=seen.filter_readable)
    fence = lake.session.hold_claims(resolved.claims, f"merge into {target.name}")
    try:
        result = change(
            into=target.name,
            expected=target.expected,
            options=resolved.options,
            fence=fence,
            guard=merge_guard_of(target, seen),
        )
    except MergeConflictError as fault:
        result = lake.commits.told_merge(fault).result
    return Answer(body=_body(target, seen, result, is_dry=wish.dry_run))


def _body(target: BranchTarget, seen: SeenReference, result: MergeResult, *, is_dry: bool) -> MergeAnswer:
    ours, theirs = (ContentsReader(target.session, each) for each in (target.seen, seen))
    return MergeAnswer(
        status=_status(result, is_dry=is_dry),
        branch=target.name,
        source=theirs.ref,
        onto=_hash(result.onto),
        head=_hash(result.head),
        base=_hash(result.base),
        commits=list(map(id_text, result.commits)),
        keys=[
            OutcomeOfKey(list(merged.key.elements), str(merged.key), merged.mode.value, merged.outcome.value)
            for merged in result.merged_keys
        ],
        conflicts=_conflicts(result, ours, theirs),
    )


def _status(result: MergeResult, *, is_dry: bool) -> MergeStatus:
    if result.conflicts:
        return "CONFLICTS"
    if result.is_applied:
        return "MERGED"
    changes = any(merged.outcome in _CHANGING for merged in result.merged_keys)
    return "WOULD_MERGE" if is_dry and changes else "UP_TO_DATE"


def _conflicts(result: MergeResult, ours: ContentsReader, theirs: ContentsReader) -> list[ConflictOfKey]:
    conflicts, told = result.conflicts, result.conflicts[:SIDES_TOLD]
    sides = read_sides(result, list(dict.fromkeys(each.key for each in told if each.key is not None)), ours, theirs)
    undone = set(result.undone)
    return [_conflict(each, *sides.get(each.key, (None, None)), is_undone=each.key in undone) for each in conflicts]


def _conflict(conflict: Conflict, ours: ConflictSide | None, theirs: ConflictSide | None, *, is_undone: bool) -> ConflictOfKey:
    key = conflict.key
    return ConflictOfKey(
        kind=conflict.kind.value,
        key=None if key is None else list(key.elements),
        name=None if key is None else str(key),
        message=conflict.message,
        undone=is_undone,
        ours=ours,
        theirs=theirs,
    )


def _hash(commit_id: ObjectId | None) -> str | None:
    return None if commit_id is None else id_text(commit_id)
