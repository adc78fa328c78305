"""What two sides did to a content since their common ancestor, for a person who has to decide between them.

For each key: the commits of each side that changed it, newest first, with the snapshots that each brought; and how each side's
content differs from that at the ancestor. It reads what is stored, and no file of a table. It must not know where branches are
listed, nor how a merge decides.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypedDict, Unpack
from uuid import UUID

from headwater.catalogs.content import ContentKey, ContentValue, IcebergTable, IcebergView, Namespace, Udf
from headwater.catalogs.content_operations import (
    CONTENT,
    IDS,
    content_view,
    find_content_keys,
    index_at,
    stored_metadata_of,
)
from headwater.catalogs.history.catalog_log import KeyAction, key_step
from headwater.catalogs.history.commit_meta import CommitMeta
from headwater.catalogs.history.merge_base import MergeBaseFinder, commits_since
from headwater.catalogs.stored_metadata import IcebergMetadata, read_metadata
from headwater.clock import Micros
from headwater.commits import Head, LogEnd, Operation, read_commit
from headwater.errors import ExpiredError, NotFoundError
from headwater.iceberg.metadata_changes import (
    FacetChange,
    MetadataChanges,
    SnapshotFacts,
    metadata_changes,
    property_changes,
    snapshots_of,
)
from headwater.iceberg.metadata_json import MetadataParts
from headwater.store import ObjectId, RealmStore, StoredObject

_SHOWN_COMMITS = 10
_MOST_LOOKED_AT = 10_000
_AT_ONCE = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class SideCommit:
    """One commit of a side that changed the content.

    key           where the content stood afterwards; for a deleted one: before
    renamed_from  where it stood before, if that was elsewhere
    snapshots     those of an Iceberg table that came with it, oldest first; none where its metadata is not stored
    """

    id: ObjectId
    time: Micros
    meta: CommitMeta
    action: KeyAction
    key: ContentKey
    renamed_from: ContentKey | None = None
    snapshots: tuple[SnapshotFacts, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class KeySide:
    """One side of a key.

    key           where the content stands on this side; None: it is gone, or never was there
    value         what stands there
    commits       those that changed it since the ancestor, newest first, as many as were asked for
    commit_count  how many there are
    is_complete   False: there may be more, for history was cut, or longer than was to be looked at
    changes       how it differs from the content at the ancestor; where that is not known, from the other side's
    has_metadata  whether the Iceberg metadata is stored, so that snapshots and columns are known
    """

    key: ContentKey | None
    value: ContentValue | None
    commits: tuple[SideCommit, ...] = ()
    commit_count: int = 0
    is_complete: bool = True
    changes: MetadataChanges = field(default_factory=MetadataChanges)
    has_metadata: bool = False

    @property
    def is_changed(self) -> bool:
        return bool(self.commit_count)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyComparison:
    """One key of two sides.

    base          the content at the common ancestor; None: nothing
    into, source  the side that is merged into (the first one of a difference), and the other
    """

    key: ContentKey
    base: ContentValue | None
    into: KeySide
    source: KeySide


@dataclass(frozen=True, slots=True)
class ComparedSides:
    """Two sides. None for a commit: the side has none.

    base          the common ancestor; None: it is not known, or there is none
    """

    base: Head | None
    into: Head | None
    source: Head | None


def find_sides(rows: RealmStore, into: Head | None, source: Head | None) -> ComparedSides:
    """Two sides with their nearest common ancestor, which is one of them where the other one is on top of it."""
    base = None
    if into is not None and source is not None:
        with suppress(NotFoundError, ExpiredError):  # of these two nobody knows one
            found = MergeBaseFinder(rows, source).find_base(rows, into.id, into.commit).commit
            base = None if found is None else read_commit(rows, found)
    return ComparedSides(base=base, into=into, source=source)


class ComparisonLimits(TypedDict, total=False):
    """How much is looked at.

    commits       describe so many commits of each side of a key at most; default: 10
    within        look at so many commits of each side at most; default: 10,000
    """

    commits: int
    within: int


def compare_keys(
    rows: RealmStore, sides: ComparedSides, keys: Sequence[ContentKey], **limits: Unpack[ComparisonLimits]
) -> list[KeyComparison]:
    """Compare keys, in the order given.

    raises        ExpiredError when a commit was collected meanwhile; CorruptionError for damaged metadata
    """
    commits, within = limits.get("commits", _SHOWN_COMMITS), limits.get("within", _MOST_LOOKED_AT)
    base = None if sides.base is None else sides.base.id
    stories = {
        head.id: _SideStory(head, base, keys, within, commits).pass_commits()
        for head in (sides.into, sides.source)
        if head is not None
    }
    comparisons: list[KeyComparison] = []
    for start in range(0, len(keys), _AT_ONCE):
        comparisons += _compared(rows, sides, keys[start : start + _AT_ONCE], stories, commits)
    return comparisons


@dataclass(slots=True)
class _KeyStory:
    """The commits of one side that changed a content which stands under ``key``, followed backwards through renames."""

    key: ContentKey
    commits: list[SideCommit] = field(default_factory=list)
    values: list[ContentValue | None] = field(default_factory=list)
    count: int = 0


class _SideStory:
    """The commits of one side, passed once for all keys."""

    def __init__(self, head: Head, base: ObjectId | None, keys: Sequence[ContentKey], within: int, most: int) -> None:
        self.is_complete = True
        self.by_key = {key: _KeyStory(key) for key in keys}
        self._head, self._base, self._within, self._most = head, base, within, most
        self._tracked = {key.to_index(): [self.by_key[key]] for key in self.by_key}

    def pass_commits(self) -> _SideStory:
        log = commits_since(self._head, self._base, within=self._within)
        for head in log:
            for operation in [each for each in head.commit.operations if each.index == CONTENT and each.key in self._tracked]:
                self._note(head, operation)
        self.is_complete = log.end not in (LogEnd.CUT, LogEnd.BOUND)
        return self

    def _note(self, head: Head, operation: Operation) -> None:
        stories = self._tracked.get(operation.key, [])
        for story in stories:
            story.count += 1
        wanting = [
            story for story in stories if len(story.commits) <= self._most
        ]  # one more: it ends the snapshots of the last
        if not wanting:
            return
        step = key_step(head, operation)
        made = SideCommit(
            id=head.id,
            time=head.commit.time,
            meta=CommitMeta.from_commit(head.commit),
            action=step.action,
            key=step.key,
            renamed_from=step.renamed_from,
        )
        for story in wanting:
            story.commits.append(made)
            story.values.append(step.value)
        if step.renamed_from is not None and operation.value is not None:  # older commits changed it under its former key
            del self._tracked[operation.key]
            self._tracked.setdefault(step.renamed_from.to_index(), []).extend(stories)


class _Standing(NamedTuple):
    """What stands for a key on one side: where, its value, its object, and its metadata where that is stored."""

    key: ContentKey
    value: ContentValue
    content: StoredObject | None
    parts: MetadataParts | None


def _compared(
    rows: RealmStore,
    sides: ComparedSides,
    keys: Sequence[ContentKey],
    stories: Mapping[ObjectId, _SideStory],
    most: int,
) -> Iterator[KeyComparison]:
    """Compare some keys, whose contents and metadata are read together."""
    heads = (sides.base, sides.into, sides.source)
    views = [content_view(index_at(head, CONTENT), keys) for head in heads]
    ids = {key: value.content_id for view in views for key, value in view.items()}
    base, into, source = (_standings(rows, head, view, ids) for head, view in zip(heads, views, strict=True))
    for key in keys:
        at_base = base.get(key)
        before_into, before_source = (at_base, at_base) if sides.base is not None else (source.get(key), into.get(key))
        yield KeyComparison(
            key=key,
            base=None if at_base is None else at_base.value,
            into=_side(rows, key, sides.into, stories, into.get(key), before_into, most),
            source=_side(rows, key, sides.source, stories, source.get(key), before_source, most),
        )


def _standings(
    rows: RealmStore, head: Head | None, view: Mapping[ContentKey, ContentValue], ids: Mapping[ContentKey, UUID]
) -> dict[ContentKey, _Standing]:
    """What stands for each key: under the key, or where the content went from there."""
    index = index_at(head, IDS)
    moved = find_content_keys(index, {ids[key] for key in ids if key not in view})
    elsewhere = content_view(index_at(head, CONTENT), moved.values())
    places = {key: (key, value) for key, value in view.items()}
    for key, content_id in ids.items():
        if key not in view and content_id in moved and moved[content_id] in elsewhere:
            places[key] = (moved[content_id], elsewhere[moved[content_id]])
    contents = rows.read_many([value.object_id for _, value in places.values()], StoredObject)
    stored = {key: stored_metadata_of(index, value.content_id) for key, (_, value) in places.items() if value.has_metadata}
    rows.read_many([each for each in stored.values() if each is not None], IcebergMetadata)  # one bulk read, not one for each
    parts = {key: read_metadata(rows, metadata_id) for key, metadata_id in stored.items() if metadata_id is not None}
    return {
        key: _Standing(place, value, content, parts.get(key))
        for (key, (place, value)), content in zip(places.items(), contents, strict=True)
    }


def _side(
    rows: RealmStore,
    key: ContentKey,
    head: Head | None,
    stories: Mapping[ObjectId, _SideStory],
    now: _Standing | None,
    before: _Standing | None,
    most: int,
) -> KeySide:
    told = None if head is None else stories[head.id]
    story = _KeyStory(key) if told is None else told.by_key[key]
    commits = _with_snapshots(rows, story, now, before) if now is not None and now.parts is not None else story.commits
    return KeySide(
        key=None if now is None else now.key,
        value=None if now is None else now.value,
        commits=tuple(commits[:most]),
        commit_count=story.count,
        is_complete=told is None or told.is_complete,
        changes=_changes(before, now),
        has_metadata=now is not None and now.parts is not None,
    )


def _changes(before: _Standing | None, now: _Standing | None) -> MetadataChanges:
    """The differences of a content from what it was; of the document where both are stored, or else of the content itself."""
    if now is None or (before is not None and before.value.object_id == now.value.object_id):
        return MetadataChanges()
    if now.parts is not None and (before is None or before.parts is not None):
        return metadata_changes(None if before is None else before.parts, now.parts)
    return MetadataChanges(facets=tuple(_plain_changes(before, now)))


def _plain_changes(before: _Standing | None, now: _Standing) -> Iterator[FacetChange]:
    old, new = None if before is None else before.content, now.content
    if isinstance(new, Namespace):
        yield from property_changes(old.properties if isinstance(old, Namespace) else {}, new.properties)
    elif isinstance(new, IcebergTable | IcebergView | Udf):
        was = old.metadata_location if isinstance(old, IcebergTable | IcebergView | Udf) else None
        if was != new.metadata_location:
            yield FacetChange("metadata file", was, new.metadata_location)


def _with_snapshots(rows: RealmStore, story: _KeyStory, now: _Standing, before: _Standing | None) -> list[SideCommit]:
    """The commits with the snapshots that came with each: from its current one back to that of the commit before it."""
    known = {} if now.parts is None else snapshots_of(now.parts)
    older = {} if before is None or before.parts is None else snapshots_of(before.parts)
    current = _current_snapshots(rows, story.values)
    told = []
    for place, commit in enumerate(story.commits):
        ends = {*older, *(number for number in current[place + 1 :] if number is not None)}
        chain: list[SnapshotFacts] = []
        number = current[place]
        while number is not None and number in known and number not in ends:
            ends.add(number)
            chain.append(known[number])
            number = known[number].parent_id
        told.append(replace(commit, snapshots=tuple(reversed(chain))))
    return told


def _current_snapshots(rows: RealmStore, values: Sequence[ContentValue | None]) -> list[int | None]:
    """The current snapshot of each version of a table."""
    ids = [value.object_id for value in values if value is not None]
    stored = dict(zip(ids, rows.read_many(ids, StoredObject), strict=True))
    contents = [None if value is None else stored[value.object_id] for value in values]
    return [content.snapshot_id if isinstance(content, IcebergTable) else None for content in contents]
