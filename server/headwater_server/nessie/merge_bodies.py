"""Merges and transplants in the JSON of Nessie's API: what is asked for, and how it went."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Literal

from msgspec import Meta, Struct

from headwater.catalogs import CommitMeta, Conflict, ContentKey, KeyMerge, MergeMode, MergeOptions, MergeResult
from headwater.errors import RefusedError
from headwater_server.nessie.commit_meta_bodies import CommitMetaRequest, parse_commit_meta
from headwater_server.nessie.conflict_bodies import ConflictBody
from headwater_server.nessie.content_bodies import ContentBody, ContentKeyBody
from headwater_server.nessie.operation_bodies import LogEntryBodyV1
from headwater_server.nessie.reference_paths import ReferencePath, hash_text, reference_from_query

_Hash = Annotated[str, Meta(description="8 to 64 hex digits")]
_OtherName = Annotated[bool | None, Meta(description="By the name that Nessie's Java client uses")]
_KeepIndividual = Annotated[bool | None, Meta(description="Version 1; a merge makes one commit, a transplant one for each")]


class KeyMergeBody(Struct, frozen=True, rename="camel"):
    """How a merge treats one key. A resolved content replaces that of the source, where the target holds the expected one."""

    key: ContentKeyBody
    merge_behavior: MergeMode = MergeMode.NORMAL
    expected_target_content: ContentBody | None = None
    resolved_content: ContentBody | None = None

    def to_key_merge(self, key: ContentKey) -> KeyMerge:
        """raises RefusedError for options that contradict each other"""
        if self.resolved_content is not None and self.expected_target_content is None:
            raise RefusedError(f"{key} has a resolvedContent: give the expectedTargetContent that it replaces, too")
        expected, resolved = (
            None if body is None else body.to_content(key) for body in (self.expected_target_content, self.resolved_content)
        )
        return KeyMerge(mode=self.merge_behavior, expected=expected, resolved=resolved)


class MergeSwitches(Struct, frozen=True, rename="camel", kw_only=True):
    """What merges and transplants have in common.

    Nessie's documents call a switch ``dryRun`` and its Java client ``isDryRun``: a simulation that is taken for a merge does harm, so both
    names count.
    """

    from_ref_name: Annotated[str, Meta(min_length=1)]
    message: Annotated[str | None, Meta(description="Counts where commitMeta has none")] = None
    commit_meta: CommitMetaRequest | None = None
    default_key_merge_mode: MergeMode | None = None
    key_merge_modes: list[KeyMergeBody] | None = None
    dry_run: bool | None = None
    is_dry_run: _OtherName = None
    return_conflict_as_result: Annotated[bool | None, Meta(description="Answer conflicts with 200 instead of 409")] = None
    is_return_conflict_as_result: _OtherName = None
    fetch_additional_info: Annotated[bool | None, Meta(description="Ignored: what there is, is always told")] = None
    is_fetch_additional_info: _OtherName = None
    keep_individual_commits: _KeepIndividual = None

    @property
    def is_simulation(self) -> bool:
        """True if nothing is to be written."""
        return bool(self.dry_run or self.is_dry_run)

    @property
    def returns_conflicts(self) -> bool:
        """True if conflicts are a result like others, and no error."""
        return bool(self.return_conflict_as_result or self.is_return_conflict_as_result)

    def to_options(self) -> MergeOptions:
        """raises RefusedError for options that contradict each other, and a key that is named twice"""
        keys: dict[ContentKey, KeyMerge] = {}
        for body in self.key_merge_modes or ():
            key = body.key.to_key()
            if key in keys:
                raise RefusedError(f"{key} stands twice in keyMergeModes: leave one of them out")
            keys[key] = body.to_key_merge(key)
        return MergeOptions(mode=self.default_key_merge_mode or MergeMode.NORMAL, keys=keys, dry_run=self.is_simulation)

    def to_meta(self) -> CommitMeta:
        """The metadata of the commit to be made. An empty message asks for the default one."""
        if self.commit_meta is None:
            return CommitMeta(message=self.message or "")
        meta = parse_commit_meta(self.commit_meta, is_message_needed=False)
        return meta if meta.message or not self.message else replace(meta, message=self.message)


class MergeRequest(MergeSwitches, frozen=True, rename="camel", kw_only=True):
    """A merge to be made."""

    from_hash: _Hash

    def to_source(self) -> ReferencePath:
        """What is merged.

        raises        RefusedError for a malformed reference, one without a hash, and individual commits
        """
        if self.keep_individual_commits:
            raise RefusedError("a merge makes one commit: leave keepIndividualCommits out, or transplant")
        return _exact_source(self.from_ref_name, self.from_hash, "fromHash")


class TransplantRequest(MergeSwitches, frozen=True, rename="camel", kw_only=True):
    """A transplant to be made."""

    hashes_to_transplant: list[_Hash]

    def to_sources(self) -> list[ReferencePath]:
        """What is transplanted, oldest first.

        raises        RefusedError for no commits, a malformed reference, one without a hash, and commits made into one
        """
        if self.keep_individual_commits is False:
            raise RefusedError("a transplant makes one commit for each: leave keepIndividualCommits out, or merge")
        if not self.hashes_to_transplant:
            raise RefusedError("hashesToTransplant is empty: say which commits, oldest first")
        return [_exact_source(self.from_ref_name, commit, "hashesToTransplant") for commit in self.hashes_to_transplant]

    def to_override(self) -> CommitMeta | None:
        """What replaces the metadata of the one commit; None for several, which keep their own, and where nothing is given."""
        is_given = self.commit_meta is not None or bool(self.message)
        return self.to_meta() if is_given and len(self.hashes_to_transplant) == 1 else None


class MergedKeyBody(Struct, frozen=True, rename="camel", omit_defaults=True):
    """How it went for one key, in version 2."""

    key: ContentKeyBody
    merge_behavior: MergeMode
    conflict: ConflictBody | None = None


class MergedKeyBodyV1(Struct, frozen=True, rename="camel"):
    """How it went for one key, in version 1."""

    key: ContentKeyBody
    merge_behavior: MergeMode
    conflict_type: Literal["NONE", "UNRESOLVABLE"]
    source_commits: Annotated[list[str], Meta(description="Always empty")] = []
    target_commits: Annotated[list[str], Meta(description="Always empty")] = []


class MergeBody(Struct, frozen=True, rename="camel", kw_only=True):
    """How a merge or transplant went. ``commonAncestor`` is null for a transplant."""

    was_applied: bool
    was_successful: bool
    resultant_target_hash: str
    common_ancestor: str | None
    target_branch: str
    effective_target_hash: Annotated[str, Meta(description="The head that the changes were applied to")]
    expected_hash: str | None
    details: list[MergedKeyBody]


class MergeBodyV1(Struct, frozen=True, rename="camel", kw_only=True):
    """How a merge or transplant went, in version 1."""

    was_applied: bool
    was_successful: bool
    resultant_target_hash: str
    common_ancestor: str | None
    target_branch: str
    effective_target_hash: str
    expected_hash: str | None
    details: list[MergedKeyBodyV1]
    source_commits: Annotated[list[LogEntryBodyV1], Meta(description="Always empty")] = []
    target_commits: Annotated[list[LogEntryBodyV1], Meta(description="Always empty")] = []


def merge_body(result: MergeResult, branch: str, *, expected_hash: str | None, is_merge: bool) -> MergeBody:
    """Write the result of a merge or transplant, done, simulated or in conflict.

    branch        the target
    expected_hash as the caller gave it
    """
    return MergeBody(
        was_applied=result.is_applied,
        was_successful=not result.conflicts,
        resultant_target_hash=hash_text(result.head),
        common_ancestor=hash_text(result.base) if is_merge else None,
        target_branch=branch,
        effective_target_hash=hash_text(result.onto),
        expected_hash=expected_hash,
        details=_details(result),
    )


def merge_body_v1(result: MergeResult, branch: str, *, expected_hash: str | None, is_merge: bool) -> MergeBodyV1:
    """Write the result of a merge or transplant as version 1 does, which tells conflicts without their kinds.

    branch        the target
    expected_hash as the caller gave it
    """
    body = merge_body(result, branch, expected_hash=expected_hash, is_merge=is_merge)
    return MergeBodyV1(
        was_applied=body.was_applied,
        was_successful=body.was_successful,
        resultant_target_hash=body.resultant_target_hash,
        common_ancestor=body.common_ancestor,
        target_branch=body.target_branch,
        effective_target_hash=body.effective_target_hash,
        expected_hash=body.expected_hash,
        details=[_detail_v1(detail) for detail in body.details],
    )


def _details(result: MergeResult) -> list[MergedKeyBody]:
    """One for each key, with its first conflict; keys that only stand in a conflict come last."""
    conflicts = _first_by_key(result.conflicts)
    modes = {merged.key: merged.mode for merged in result.merged_keys}
    modes |= {key: MergeMode.NORMAL for key in conflicts if key not in modes}
    return [MergedKeyBody(ContentKeyBody.of_key(key), mode, conflicts.get(key)) for key, mode in modes.items()]


def _first_by_key(conflicts: Sequence[Conflict]) -> dict[ContentKey, ConflictBody]:
    first: dict[ContentKey, ConflictBody] = {}
    for conflict in conflicts:
        if conflict.key is not None:
            first.setdefault(conflict.key, ConflictBody.of_conflict(conflict))
    return first


def _detail_v1(detail: MergedKeyBody) -> MergedKeyBodyV1:
    return MergedKeyBodyV1(detail.key, detail.merge_behavior, "NONE" if detail.conflict is None else "UNRESOLVABLE")


def _exact_source(name: str, commit: str, field: str) -> ReferencePath:
    source = reference_from_query(name, commit)
    if source.hash is None:
        raise RefusedError(f"{field} {commit!r} does not say from which commit: give its hash")
    return source
