"""Content operations of clients that write their metadata files themselves, as Nessie's do, through the rules of every other door.

    base, head   the state that the operations were made from, which may be an older commit of the branch, and the present one
    rights       asked about the operations as they came, before anything is read for them; about their documents before anything is told
    conflicts    found before any file is read; what the caller may not list is as if it were not there
    documents    read, checked and stored with the contents; places and uuids claimed
    commit       judged again against the head that it finds

No file is written, and none is ever removed: the client wrote them, and cleans up what was not committed.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from headwater.catalogs import (
    CommitMeta,
    Content,
    ContentKey,
    ContentOperation,
    Delete,
    MergeConflictError,
    MergeOptions,
    Put,
    TableClaim,
)
from headwater.catalogs.content import with_id
from headwater.catalogs.history.commit_meta import check_expected, checked_meta
from headwater.catalogs.history.three_way import KeyMerge
from headwater.commits import CommitResult
from headwater.errors import ConflictError, HeadwaterError, NotFoundError, RefusedError, UnknownOutcomeError
from headwater.iceberg_catalog.branch_session import BranchChange, BranchSession, BranchState
from headwater.iceberg_catalog.content_puts import ContentPuts, PutDraft, PutWish, completed_content
from headwater.iceberg_catalog.shown_conflicts import CommitStates, ConflictReport
from headwater.store import ObjectId, id_text

_LONGEST_WAIT = 0.25
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class ResolvedMerge:
    """The options of a merge whose resolved contents passed the door.

    options       with documents, uuids and ids
    claims        to be taken before the merge: ``BranchSession.hold_claims`` returns the merge's fence
    """

    options: MergeOptions
    claims: tuple[TableClaim, ...] = ()


def _all_of(contents: Mapping[ContentKey, Content]) -> Mapping[ContentKey, Content]:
    """What whoever opens the store may read: there is nobody to ask."""
    return contents


class LakeCommits:
    """Commits of content operations to one branch. Thread-safe."""

    def __init__(self, session: BranchSession, puts: ContentPuts) -> None:
        self._session = session
        self._puts = puts
        self._report = ConflictReport(session)

    def apply_operations(
        self,
        operations: Sequence[ContentOperation],
        *,
        expected: ObjectId | None = None,
        meta: CommitMeta | None = None,
        allow_empty: bool = False,
    ) -> CommitResult[dict[ContentKey, UUID]]:
        """Apply operations in one commit, all or none; returns as ``Catalog.commit`` does, with the content ids of the created keys.

        operations    tables and views without documents: they are read from their metadata files. A Delete and a Put without an id of one
                      key, of a file that has the same uuid, change what stands there
        expected      the commit that they were made from; None: the head at the time
        meta          without a committer, which is the session's
        allow_empty   as for ``Catalog.commit``
        raises        RefusedError for an unsound request, a place or file that is not allowed, missing, or not as its content says;
                      ForbiddenError; ConflictError with all conflicts as ``details``; NotFoundError for an expected commit that is not on
                      the branch; ExpiredError when that was collected; ReadOnlyReferenceError; what ``Catalog.commit`` raises
        """
        session, clean = self._session, _clean_meta(meta)
        session.check_writable()
        clock = session.rows.clock
        until = clock.monotonic() + session.rows.settings.commit_timeout_seconds
        fresh_ids: dict[ContentKey, UUID] = {}
        while True:
            states = self._states(expected)
            stored = states.base.find_many([each.key for each in operations])
            wanted = [_with_expected(each, stored) for each in operations]
            change = self._prepare(states, wanted, stored, fresh_ids)
            try:
                # an author who names no commit gets that of the decision: the rights were asked on it
                base = None if states.base.head is None else states.base.head.id
                return session.apply_change(change, expected=base, meta=clean, allow_empty=allow_empty)
            except UnknownOutcomeError:
                raise
            except HeadwaterError as fault:
                if clock.monotonic() >= until or not self._is_worth_another(fault, states):
                    raise self._told(fault, states, wanted) from None
            clock.sleep(random.uniform(0, _LONGEST_WAIT))

    def told_merge(self, fault: MergeConflictError) -> MergeConflictError:
        """The error for a merge into the branch that is in conflict, without the names of keys that the caller may not list."""
        return self._report.told_merge(fault)

    def prepare_merge(
        self,
        options: MergeOptions,
        source: str,
        *,
        filter_readable: Callable[[Mapping[ContentKey, Content]], Mapping[ContentKey, Content]] = _all_of,
    ) -> ResolvedMerge:
        """Pass the resolved contents of a merge or transplant through the door, and complete the expected ones.

        The rights are asked about the resolved contents alone; the merge's own guard asks about all that it brings.

        source            what is merged: a branch, a tag or a commit
        filter_readable   those of some contents of the source that the caller may read; the others are as if they were not there
        raises            RefusedError as ``apply_operations`` does, and for a resolved content that neither side has; ForbiddenError
                          and NoSuch…Error; NotFoundError for an unknown source
        """
        if not options.keys:
            return ResolvedMerge(options)
        target = self._session.state()
        origin = replace(target, head=self._session.catalog.resolve(source))
        asked = list(options.keys)
        theirs = filter_readable(origin.find_many(asked))
        ours = {key: held for key, held in target.find_many(asked).items() if self._session.may_list(target, key)}
        keys = {key: _completed(merge, ours.get(key)) for key, merge in options.keys.items()}
        wishes = [
            _resolution(key, merge.resolved, [(target, ours.get(key)), (origin, theirs.get(key))])
            for key, merge in keys.items()
            if merge.resolved is not None
        ]
        puts = [wish.put for wish in wishes]
        asked_for = BranchChange(operations=puts, message="merge", same_data=frozenset(put.key for put in puts))
        self._session.check_rights(target, asked_for)
        drafts = self._puts.draft_puts(wishes, head=target, fresh_ids={})
        change = _change(puts, drafts, ours, "merge")
        self._session.check_rights(target, change)
        _check_agreement(drafts)
        if change.claims:
            self._session.check_free(change.claims, "merge")
        for draft in drafts:
            put = draft.put
            keys[put.key] = replace(keys[put.key], resolved=put.content, metadata=put.metadata)
        return ResolvedMerge(replace(options, keys=keys), tuple(change.claims))

    def _states(self, expected: ObjectId | None) -> CommitStates:
        head = self._session.state()
        if expected is None or (head.head is not None and head.head.id == expected):
            return CommitStates(head, head, is_named=expected is not None)
        base = self._session.catalog.resolve(id_text(expected))
        where = f"branch {self._session.name!r} of {self._session.catalog.label}"
        if base is None:
            raise NotFoundError(f"expected commit {id_text(expected)} is not in the history of {where}")
        present = head.head
        if present is None:
            check_expected(head.rows, None, None, base, where)
        else:
            check_expected(head.rows, present.id, present.commit, base, where)
        return CommitStates(replace(head, head=base), head, is_named=True)

    def _prepare(
        self,
        states: CommitStates,
        operations: Sequence[ContentOperation],
        stored: Mapping[ContentKey, Content],
        fresh_ids: dict[ContentKey, UUID],
    ) -> BranchChange:
        """Judge operations, and complete them with documents; raises what ``apply_operations`` raises.

        stored        what stands at their keys in the base
        """
        what = _words(operations)
        puts = [each for each in operations if isinstance(each, Put)]
        # nothing is known of the documents yet: whoever may not even change properties has nothing read
        asked = BranchChange(operations=operations, message=what, same_data=frozenset(put.key for put in puts))
        self._report.check_rights(states, asked)
        self._report.check_conflicts(states, operations)
        deleted = {each.key for each in operations if isinstance(each, Delete)}
        moved = {stored[key].id: key for key in deleted if key in stored}
        wishes = [_wish(put, states.base, stored, moved) for put in puts]
        drafts = self._puts.draft_puts(wishes, head=states.head, fresh_ids=fresh_ids, removed=deleted)
        change = _change(operations, drafts, stored, what)
        self._report.check_rights(states, change)
        if states.head is not states.base:  # whose a uuid is depends on where its table stands now
            self._session.check_rights(states.head, replace(change, operations=()))
        _check_agreement(drafts)
        if change.claims:
            self._session.check_free(change.claims, what)
        return change

    def _is_worth_another(self, fault: HeadwaterError, states: CommitStates) -> bool:
        """True if the operations may be possible on a newer state; claims that became too old can always be taken again."""
        if states.is_named:
            return isinstance(fault, ConflictError) and not fault.details
        return self._session.is_beaten(fault, states.head)

    def _told(self, fault: HeadwaterError, states: CommitStates, operations: Sequence[ContentOperation]) -> HeadwaterError:
        if isinstance(fault, ConflictError) and fault.details:
            return self._report.told_late(fault, states, operations)
        return fault


def _with_expected(operation: ContentOperation, stored: Mapping[ContentKey, Content]) -> ContentOperation:
    """The operation with its expected content, if it has one, completed with what clients do not send."""
    if not isinstance(operation, Put) or operation.expected_content is None:
        return operation
    return replace(operation, expected_content=completed_content(operation.expected_content, stored.get(operation.key)))


def _wish(
    put: Put, base: BranchState, stored: Mapping[ContentKey, Content], moved: Mapping[UUID | None, ContentKey]
) -> PutWish:
    """A put with the content that it continues: that of its key, or a deleted one that it renames.

    moved         the keys that are deleted, by what stands there
    """
    given, present = put.content.id, stored.get(put.key)
    if given is None:
        return PutWish(put, base)
    key = put.key if present is not None and present.id == given else moved.get(given)
    return PutWish(put, base, None if key is None else stored[key], key)


def _change(
    operations: Sequence[ContentOperation],
    drafts: Sequence[PutDraft],
    stored: Mapping[ContentKey, Content],
    what: str,
) -> BranchChange:
    """The change with completed puts. What is deleted and put again as itself is only changed."""
    puts: dict[ContentKey, Put] = {}
    ids: dict[ContentKey, UUID] = {}
    same: set[ContentKey] = set()
    for draft in drafts:
        key, content_id = draft.put.key, draft.content_id
        present = stored.get(key)
        if content_id is not None and present is not None and present.id == content_id:
            puts[key] = replace(draft.put, content=with_id(draft.put.content, content_id))
            same.add(key)
            continue
        puts[key] = draft.put
        if content_id is not None:
            ids[key] = content_id
    kept = [each for each in operations if not isinstance(each, Put) and not (isinstance(each, Delete) and each.key in same)]
    return BranchChange(
        operations=[*kept, *puts.values()],
        message=what,
        ids=ids,
        claims=[draft.claim for draft in drafts if draft.claim is not None],
        same_data=frozenset(draft.put.key for draft in drafts if draft.same_data),
    )


def _completed(merge: KeyMerge, present: Content | None) -> KeyMerge:
    if merge.expected is None:
        return merge
    return replace(merge, expected=completed_content(merge.expected, present))


def _resolution(key: ContentKey, resolved: Content, sides: Sequence[tuple[BranchState, Content | None]]) -> PutWish:
    """A resolved content with the one that it continues, chosen as the merge does: the target's, or else the source's."""
    for state, content in sides:
        if content is not None and resolved.id in (None, content.id):
            if type(content) is not type(resolved) or content.id is None:
                break
            return PutWish(Put(key, with_id(resolved, content.id)), state, content, key, with_document=True)
    raise RefusedError(f"{key}: the resolved content is none that the target or the source has there: name its id and type")


def _check_agreement(drafts: Sequence[PutDraft]) -> None:
    """Check that contents say what their metadata files do; raises RefusedError that names all differences."""
    faults = [fault for draft in drafts for fault in draft.faults]
    if faults:
        raise RefusedError("commit refused: " + "; ".join(faults) + ": send what the metadata file has")


def _clean_meta(meta: CommitMeta | None) -> CommitMeta:
    """The metadata that a caller gives for a commit; raises RefusedError for a committer, and for merged heads."""
    clean = checked_meta(meta) or CommitMeta()
    if clean.committer:
        raise RefusedError("the committer of a commit is whoever makes it, and cannot be chosen: name authors instead")
    return clean


def _words(operations: Sequence[ContentOperation]) -> str:
    """What a commit does, for messages: the first of its keys."""
    names = ", ".join(str(each.key) for each in operations[:_SHOWN])
    return f"commit {names}" + (f" and {len(operations) - _SHOWN} more" if len(operations) > _SHOWN else "")
