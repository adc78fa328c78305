"""The three-way merge of two branches, and its conflicts; decided from key views alone, without a store.

For each key that the source changed there are three states: at the merge base, at the source, and at the target's head. A change that was
merged before, and that a restoration of the target took back, is judged in the same way. Nothing
is to be done where source and target are equal. A key that is empty on both sides can still be a conflict: one side deleted the
content and the other renamed it. It is a conflict where the target differs from the base; the mode of the key, or a resolved
content, says what to do then. The resulting state is judged as for every commit: no key without its namespaces, no content
under two keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from uuid import UUID

from headwater.catalogs.content import (
    Content,
    ContentKey,
    ContentType,
    ContentValue,
    IcebergTable,
    IcebergView,
    content_digest,
    content_fault,
    content_type_of,
    type_text,
    with_id,
)
from headwater.catalogs.content_operations import (
    Conflict,
    ConflictKind,
    ContentView,
    first_conflicts,
    namespace_conflicts,
    value_conflict,
)
from headwater.catalogs.history.content_diff import ContentChange, is_same_content
from headwater.catalogs.history.undone_merges import UndoneChange, UndoneChanges
from headwater.errors import RefusedError
from headwater.iceberg.metadata_json import MetadataParts
from headwater.store import ObjectId

_SHOWN = 50
"""Keys that a message names."""


class MergeMode(StrEnum):
    NORMAL = "NORMAL"
    """Take the source's, unless that conflicts."""
    FORCE = "FORCE"
    """Take the source's, whatever the target holds."""
    DROP = "DROP"
    """Leave the target's as it is."""


class MergeOutcome(StrEnum):
    """The outcome of a merge for one key."""

    PUT = "PUT"
    """The target has the source's content now."""
    REMOVED = "REMOVED"
    RESOLVED = "RESOLVED"
    """The target has the content that the caller gave."""
    SAME = "SAME"
    """Both held the same already."""
    KEPT = "KEPT"
    """Both have made this namespace: the target's stays."""
    DROPPED = "DROPPED"
    CONFLICT = "CONFLICT"


class MergeEffect(StrEnum):
    """What a merge would do to a key of the target."""

    PUT = "PUT"
    REMOVED = "REMOVED"
    CONFLICT = "CONFLICT"
    LEFT = "LEFT"
    """It stays as it is: the source did not change it, or in the same way."""

    @classmethod
    def of(cls, outcome: MergeOutcome) -> MergeEffect:
        return cls(outcome.value) if outcome.value in cls.__members__ else cls.LEFT


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyMerge:
    """The options of one key in a merge.

    expected      the content that the target must hold; its id is compared if it has one
    resolved      the content that the target gets instead of the source's, in mode NORMAL; without an id it keeps the target's, or else
                  the source's. Without ``expected`` the target must not have the key
    metadata      the document behind a resolved Iceberg table or view, to be stored with it
    raises        RefusedError for contradictory options
    """

    mode: MergeMode = MergeMode.NORMAL
    expected: Content | None = None
    resolved: Content | None = None
    metadata: MetadataParts | None = None

    def __post_init__(self) -> None:
        for content in (given for given in (self.expected, self.resolved) if given is not None):
            fault = content_fault(content)
            if fault:
                raise RefusedError(f"what a key is to hold {fault}")
        if self.resolved is not None and self.mode is not MergeMode.NORMAL:
            raise RefusedError(f"a resolved content goes with mode NORMAL, not with {self.mode}")
        if self.expected is not None and self.mode is MergeMode.DROP:
            raise RefusedError("mode DROP looks at nothing, and so expects no content")
        if self.metadata is not None and self.resolved is None:
            raise RefusedError("metadata belongs to a resolved content, and none is given")
        if self.metadata is not None and not isinstance(self.resolved, (IcebergTable, IcebergView)):
            raise RefusedError("metadata belongs to an Iceberg table or view, and the resolved content is neither")


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeOptions:
    """Options of a merge or transplant.

    mode              for all keys that are not in ``keys``
    keys              by key, how to merge a key that does not follow ``mode``; only keys that the source changed
    base              the commit that the source's changes are counted from; None: the nearest common ancestor. Not for transplants
    dry_run           report the result, and write nothing
    """

    mode: MergeMode = MergeMode.NORMAL
    keys: Mapping[ContentKey, KeyMerge] = field(default_factory=dict)
    base: ObjectId | None = None
    dry_run: bool = False

    def mode_of(self, key: ContentKey) -> KeyMerge:
        return self.keys.get(key) or KeyMerge(mode=self.mode)

    def check_used(self, touched: set[ContentKey]) -> None:
        """Check that the merge touches every named key.

        raises        RefusedError with the keys that it does not touch
        """
        unused = sorted(self.keys.keys() - touched)
        if unused:
            more = f" and {len(unused) - _SHOWN} more" if len(unused) > _SHOWN else ""
            shown = ", ".join(map(str, unused[:_SHOWN]))
            raise RefusedError(f"the source changes none of these keys, which were given a mode: {shown}{more}")


@dataclass(frozen=True, slots=True)
class MergedKey:
    """The effect of a merge on one key that the source changed."""

    key: ContentKey
    mode: MergeMode
    outcome: MergeOutcome


@dataclass(frozen=True, slots=True)
class ResolvedContent:
    """A resolved content from the caller, with its id."""

    content: Content
    content_id: UUID
    metadata: MetadataParts | None


@dataclass(slots=True)
class MergeDecisions:
    """The decision for each key by itself. Conflicting keys are among the writes and removals, as if forced."""

    removals: set[ContentKey] = field(default_factory=set)
    copies: dict[ContentKey, ContentValue] = field(default_factory=dict)
    resolved: dict[ContentKey, ResolvedContent] = field(default_factory=dict)
    keys: list[MergedKey] = field(default_factory=list)
    conflicts: list[Conflict] = field(default_factory=list)

    def types(self) -> dict[ContentKey, ContentType | int]:
        """The content type of every key that this plan writes."""
        given = {key: content_type_of(resolved.content) for key, resolved in self.resolved.items()}
        return {key: value.type for key, value in self.copies.items()} | given

    def ids(self) -> dict[ContentKey, UUID]:
        return {key: value.content_id for key, value in self.copies.items()} | {
            key: resolved.content_id for key, resolved in self.resolved.items()
        }


@dataclass(frozen=True, slots=True)
class MergePlan:
    """The writes and removals in key order, and the conflicts. With conflicts nothing may be written.

    copies        the source's index values of the contents to copy
    """

    removals: tuple[ContentKey, ...]
    copies: Mapping[ContentKey, ContentValue]
    resolved: Mapping[ContentKey, ResolvedContent]
    keys: tuple[MergedKey, ...]
    conflicts: tuple[Conflict, ...]

    def contents(self) -> dict[UUID, ContentKey]:
        """The contents that it puts, each with its key."""
        copied = {value.content_id: key for key, value in self.copies.items()}
        return copied | {each.content_id: key for key, each in self.resolved.items()}


def given_up_contents(changes: Sequence[ContentChange], head: ContentView) -> set[UUID]:
    """The contents of the base whose keys are empty on both sides."""
    return {
        change.before.content_id
        for change in changes
        if change.before is not None and change.after is None and change.key not in head
    }


def decide_keys(
    changes: Sequence[ContentChange],
    head: ContentView,
    options: MergeOptions,
    moved: Mapping[UUID, ContentKey],
    undone: UndoneChanges = MappingProxyType({}),
) -> MergeDecisions:
    """Decide each key by itself.

    changes       the source's changes since the base, and those that were undone
    head          the target's values of those keys
    moved         the target's present keys of the ``given_up_contents``, where they exist
    undone        those of the changes that were merged before, and that restorations of the target took back
    raises        RefusedError that names every resolved content which cannot be put
    """
    made = MergeDecisions()
    born = _born(changes)
    fates = _Fates.from_changes(changes, options, moved)
    faults: list[str] = []
    for change in changes:
        now, asked = head.get(change.key), options.mode_of(change.key)
        try:
            if asked.mode is MergeMode.NORMAL and asked.resolved is None and change.key in undone:
                outcome = _decide_undone(made, undone[change.key], now)
            else:
                outcome = _decide_key(made, change, now, asked, fates, is_new=change.key in born)
        except RefusedError as fault:
            faults.append(str(fault))
        else:
            made.keys.append(MergedKey(change.key, asked.mode, outcome))
    if faults:
        raise RefusedError("merge refused: " + "; ".join(faults))
    return made


def judge_merge(made: MergeDecisions, head: ContentView, owners: Mapping[UUID, ContentKey]) -> MergePlan:
    """Judge all keys together: each needs a namespace above it, and each content stands under one key.

    head          as ``namespace_conflicts`` needs it
    owners        the target's present keys of the contents to write, where they exist
    """
    on_namespaces = namespace_conflicts(head, made.types(), made.removals)
    return MergePlan(
        removals=tuple(sorted(made.removals)),
        copies=dict(sorted(made.copies.items())),
        resolved=dict(sorted(made.resolved.items())),
        keys=tuple(made.keys),
        conflicts=first_conflicts(made.conflicts, on_namespaces, _doubles(made, owners)),
    )


def _born(changes: Sequence[ContentChange]) -> set[ContentKey]:
    """The keys whose content the source created, rather than renamed."""
    old = {change.before.content_id for change in changes if change.before is not None}
    return {change.key for change in changes if change.after is not None and change.after.content_id not in old}


@dataclass(frozen=True, slots=True)
class _Fates:
    """The present keys, in the source and in the target, of contents whose old keys are empty now."""

    source: Mapping[UUID, ContentKey]
    target: Mapping[UUID, ContentKey]

    @classmethod
    def from_changes(cls, changes: Sequence[ContentChange], options: MergeOptions, moved: Mapping[UUID, ContentKey]) -> _Fates:
        taken = (change for change in changes if options.mode_of(change.key).mode is not MergeMode.DROP)
        return cls({change.after.content_id: change.key for change in taken if change.after is not None}, moved)

    def conflict(self, change: ContentChange) -> Conflict | None:
        """The conflict of a delete with a rename. For two renames, the keys that they led to decide."""
        if change.before is None or change.after is not None:
            return None
        theirs, ours = self.source.get(change.before.content_id), self.target.get(change.before.content_id)
        if (theirs is None) == (ours is None):
            return None
        text = (
            f"was deleted by the source, and the target has moved it to {ours}"
            if theirs is None
            else f"was moved to {theirs} by the source, and is gone from the target"
        )
        return Conflict(ConflictKind.KEY_DOES_NOT_EXIST, change.key, text, others=() if ours is None else (ours,))


def _decide_key(
    made: MergeDecisions, change: ContentChange, now: ContentValue | None, asked: KeyMerge, fates: _Fates, *, is_new: bool
) -> MergeOutcome:
    if asked.mode is MergeMode.DROP:
        return MergeOutcome.DROPPED
    if asked.resolved is not None:
        made.resolved[change.key] = _resolution(change, now, asked.resolved, asked.metadata)
        return _noted(made, _against_expected(change.key, asked, now), MergeOutcome.RESOLVED)
    expectation = None if asked.expected is None else _against_expected(change.key, asked, now)
    if expectation is None and is_same_content(now, change.after):
        return _noted(made, fates.conflict(change) if asked.mode is MergeMode.NORMAL else None, MergeOutcome.SAME)
    is_twin = is_new and change.before is None and now is not None and asked.mode is MergeMode.NORMAL
    if is_twin and expectation is None:
        twins = _of_twins(change.after, now)
        if twins is not None:
            return twins
    if change.after is None:
        if now is not None:
            made.removals.add(change.key)
    else:
        made.copies[change.key] = change.after
    if asked.mode is MergeMode.NORMAL:
        expectation = expectation or _moved_on(change.key, change.before, now)
    return _noted(made, expectation, MergeOutcome.REMOVED if change.after is None else MergeOutcome.PUT)


def _decide_undone(made: MergeDecisions, undone: UndoneChange, now: ContentValue | None) -> MergeOutcome:
    """Note a conflict with the restoration, and write as if forced."""
    change = undone.change
    if change.after is not None:
        made.copies[change.key] = change.after
    elif now is not None:
        made.removals.add(change.key)
    return _noted(made, undone.conflict(now), MergeOutcome.SAME)


def _noted(made: MergeDecisions, conflict: Conflict | None, outcome: MergeOutcome) -> MergeOutcome:
    if conflict is None:
        return outcome
    made.conflicts.append(conflict)
    return MergeOutcome.CONFLICT


def _of_twins(theirs: ContentValue | None, ours: ContentValue | None) -> MergeOutcome | None:
    """The conflict of two contents that both sides created under one key."""
    if theirs is None or ours is None or theirs.type != ours.type:
        return None
    if theirs.digest == ours.digest:
        return MergeOutcome.SAME
    return MergeOutcome.KEPT if ours.type == ContentType.NAMESPACE else None


def _moved_on(key: ContentKey, base: ContentValue | None, now: ContentValue | None) -> Conflict | None:
    """The conflict of a target that differs from the base."""
    if base is None:
        if now is None:
            return None
        return Conflict(ConflictKind.KEY_EXISTS, key, f"was created on both sides: the target has {_text(now)}")
    if now is None:
        return Conflict(ConflictKind.KEY_DOES_NOT_EXIST, key, "was changed by the source, and is gone from the target")
    return value_conflict(key, now, base, "the target has {now}; at the common ancestor it was {wanted}")


def _against_expected(key: ContentKey, asked: KeyMerge, now: ContentValue | None) -> Conflict | None:
    """The conflict of a target that differs from what the caller expects."""
    expected = asked.expected
    if expected is None:
        if now is None:
            return None
        return Conflict(ConflictKind.KEY_EXISTS, key, f"was expected to be absent, and the target has {_text(now)}")
    if now is None:
        return Conflict(ConflictKind.KEY_DOES_NOT_EXIST, key, "was expected to hold a content, and is gone from the target")
    wanted = ContentValue(content_type_of(expected), expected.id or now.content_id, content_digest(expected), now.object_id)
    return value_conflict(key, now, wanted, "the target has {now}; expected was {wanted}")


def _text(value: ContentValue) -> str:
    return f"{type_text(value.type)} {value.content_id}"


def _resolution(
    change: ContentChange, now: ContentValue | None, content: Content, metadata: MetadataParts | None
) -> ResolvedContent:
    """The content to put for a resolution: the target's or the source's, with another value."""
    sides = [side for side in (now, change.after, change.before) if side is not None]
    of = next((side for side in sides if content.id in (None, side.content_id)), None)
    if of is None:
        raise RefusedError(f"{change.key}: the resolved content has the id {content.id}, which neither side has there")
    kind = content_type_of(content)
    if of.type != kind:
        raise RefusedError(
            f"{change.key}: the resolved content is {type_text(kind)}, and content {of.content_id} is {_text(of)}"
        )
    return ResolvedContent(with_id(content, of.content_id), of.content_id, metadata)


def _doubles(made: MergeDecisions, owners: Mapping[UUID, ContentKey]) -> Iterator[Conflict]:
    """The conflicts of contents that would stand under two keys."""
    written = made.ids()
    first: dict[UUID, ContentKey] = {}
    for key, content_id in written.items():
        other = first.setdefault(content_id, key)
        owner = owners.get(content_id)
        if other == key and owner is not None and owner not in made.removals and owner not in written:
            other = owner
        if other != key:
            text = f"would hold content {content_id}, which stands at {other}"
            yield Conflict(ConflictKind.KEY_CONFLICT, key, text, others=(other,))
