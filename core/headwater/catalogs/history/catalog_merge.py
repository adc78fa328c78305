"""A merge: the changes of a source since the merge base, as one commit on a branch. Transplants use the same parts.

``MergeBaseFinder`` finds the nearest common ancestor, ``content_diff`` the changes of the source since then, ``three_way``
decides key by key. This module makes the plan for a state and writes it: the source's contents are copied, because its objects
may be garbage tomorrow. Few contents are read ahead, held, and copied by the change itself. Where there are more of them than a
batch, their copies are staged: written batch by batch before the change, which then only points to them. It reads commits and
edits the content of a branch; it must not know where branches are listed, nor catalogs' definitions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from types import MappingProxyType
from typing import NamedTuple
from uuid import UUID

from headwater.catalogs.content import Content, ContentKey, ContentValue, content_digest, content_type_of, without_id
from headwater.catalogs.content_operations import (
    CONTENT,
    IDS,
    Conflict,
    ContentEditor,
    ContentView,
    EditableIndexes,
    conflicts_text,
    content_view,
    find_content_keys,
    index_at,
    non_namespaces,
    put_content,
    put_copy,
    survivors_below,
)
from headwater.catalogs.history.commit_meta import CommitMeta, check_expected
from headwater.catalogs.history.content_diff import ContentChange, changes_between, content_differences
from headwater.catalogs.history.merge_base import MergeBase, MergeBaseFinder
from headwater.catalogs.history.three_way import (
    MergedKey,
    MergeEffect,
    MergeOptions,
    MergePlan,
    decide_keys,
    given_up_contents,
    judge_merge,
)
from headwater.catalogs.history.undone_merges import UndoneChange, UndoneChanges, find_undone
from headwater.catalogs.place_releases import check_coming, find_lost_copies, take_back_copies, with_places_taken
from headwater.catalogs.stored_metadata import IcebergMetadata, metadata_bytes, read_metadata, store_metadata
from headwater.commits import Commit, Head, StagedObjects, Transaction, commit_change, read_commit, read_head
from headwater.errors import ConflictError, CorruptionError, ExpiredError, NotFoundError, RefusedError
from headwater.iceberg.metadata_json import MetadataParts
from headwater.index import Index, IndexEditor
from headwater.store import ObjectId, RealmReader, RealmStore, StoredObject, id_text, unknown_pointers_reason


@dataclass(frozen=True, slots=True)
class MergeSource:
    """The source of the changes: the text that named it, and the commit that it resolved to."""

    text: str
    head: Head


MergeGuard = Callable[[Sequence[ContentChange], ContentView], None]
"""Asked whether changes may be merged, with the very state that they are applied to; raises what the caller is told otherwise."""


@dataclass(frozen=True, slots=True)
class MergeTarget:
    """The branch that changes.

    reference     its name in the realm
    expected      a commit that has to be in its history; None: no matter
    fence         called before every run of the change
    guard         asked about the changes of the source, with the target's values of their keys, before anything is decided or told
    """

    rows: RealmStore
    catalog_id: str
    branch: str
    reference: str
    expected: Head | None = None
    fence: Callable[[], None] | None = None
    guard: MergeGuard | None = None

    def check_expected(self, rows: RealmReader, head_id: ObjectId | None, head: Commit | None) -> None:
        """Check that the expected commit is in the history of this head.

        raises        NotFoundError · ExpiredError: that is not known any more
        """
        if self.expected is not None:
            check_expected(rows, head_id, head, self.expected, f"branch {self.branch!r} of realm {rows.realm!r}")


@dataclass(frozen=True, slots=True)
class MergeStep:
    """One commit of the source, or all that a merge squashed under the source's head, with the outcome of each changed key.

    commit        what was made of it; None: nothing was left to do, or nothing was written
    """

    source: ObjectId
    commit: ObjectId | None
    keys: tuple[MergedKey, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeResult:
    """The result of a merge or transplant, done or simulated.

    onto          the target's head that the changes were applied to; None: it had no commit
    head          the target's head afterwards
    base          the merge base; None: before the first commit of all. For a transplant: the parent of its first commit
    other_bases   further merge bases of a criss-cross merge
    lost          collected commits beyond which history could not be followed; a nearer base may have been there
    conflicts     all conflicts; present only in a MergeConflictError, when nothing was written
    undone        keys whose changes were merged before, and that a restoration of the target took back
    undone_base   the base from which these count as new again; None: there are none, or from before the first commit of all
    """

    onto: ObjectId | None
    head: ObjectId | None
    base: ObjectId | None
    steps: tuple[MergeStep, ...]
    conflicts: tuple[Conflict, ...] = ()
    other_bases: tuple[ObjectId, ...] = ()
    lost: tuple[ObjectId, ...] = ()
    undone: tuple[ContentKey, ...] = ()
    undone_base: ObjectId | None = None

    @property
    def is_applied(self) -> bool:
        """True if a commit was made."""
        return bool(self.commits)

    @property
    def commits(self) -> tuple[ObjectId, ...]:
        """The commits that were made, oldest first."""
        return tuple(step.commit for step in self.steps if step.commit is not None)

    @property
    def merged_keys(self) -> tuple[MergedKey, ...]:
        return tuple(key for step in self.steps for key in step.keys)


class TooManyChangesError(RefusedError):
    """The source of a preview has more changes since the merge base than its caller looks at."""


class MergeConflictError(ConflictError):
    """A merge or transplant has conflicts, and nothing was written.

    what          the operation that failed
    result        the outcome that every key would have had; its ``conflicts`` are the error's ``details``
    """

    def __init__(self, what: str, result: MergeResult) -> None:
        super().__init__(f"{what}: {conflicts_text(result.conflicts)}", details=result.conflicts)
        self.what = what
        self.result = result

    def __reduce__(self) -> tuple[type[MergeConflictError], tuple[str, MergeResult]]:
        return type(self), (self.what, self.result)


def merge_commits(target: MergeTarget, source: MergeSource, meta: CommitMeta, options: MergeOptions) -> MergeResult:
    """Merge a source into a branch: one commit with its changes since the nearest common ancestor, which names the source's head.

    No commit is made where no change is left. Changes that the target's history shows as merged are not merged again; those of them
    that a restoration of the target has taken back since are conflicts, which FORCE merges again and DROP leaves.

    meta          of the commit; a default message names the source
    raises        MergeConflictError with all conflicts · RefusedError: a mode for a key that the source did not change, or
                  a resolved content that cannot be put · NotFoundError: no common ancestor · ExpiredError: the common ancestor or the
                  source was collected meanwhile · what ``commit`` raises
    """
    return _Merge(target, source, meta, options).carry_out()


def preview_effects(
    rows: RealmStore, catalog_id: str, into: Head | None, source: Head | None, *, most: int | None = None
) -> Mapping[ContentKey, MergeEffect] | None:
    """What a merge of a source into a state would do to each key that it looks at; other keys are ``LEFT``.

    most          look at this number of changes of the source; None: all
    returns       None where a base would have to be named: the two have nothing in common, or not any more
    raises        TooManyChangesError where the source has more changes
    """
    if source is None:
        return {}
    merge = _Merge(MergeTarget(rows, catalog_id, "", ""), MergeSource("", source), CommitMeta(), MergeOptions(dry_run=True))
    try:
        plan = merge.plan_onto(into, most=most)
    except (NotFoundError, ExpiredError):
        return None
    conflicts = {each.key for each in plan.conflicts if each.key is not None}
    conflicts |= find_lost_copies(rows, catalog_id, source, index_at(into, IDS), plan.contents())
    return {merged.key: MergeEffect.of(merged.outcome) for merged in plan.keys} | dict.fromkeys(conflicts, MergeEffect.CONFLICT)


class _Planned(NamedTuple):
    """The plan for one head, and the keys that are in it because they were merged and undone."""

    plan: MergePlan
    undone: tuple[ContentKey, ...]


class _Merge:
    def __init__(self, target: MergeTarget, source: MergeSource, meta: CommitMeta, options: MergeOptions) -> None:
        self._target = target
        self._source = source
        self._meta = replace(meta, merged=(source.head.id,))
        self._options = options
        self._bases = MergeBaseFinder(target.rows, source.head)
        self._changes: dict[ObjectId | None, list[ContentChange]] = {}
        self._copies = ContentCopies(source.head, target.rows)
        self._plans: dict[ObjectId | None, _Planned] = {}

    def carry_out(self) -> MergeResult:
        return with_places_taken(self._target.rows, self._attempt)

    def _attempt(self) -> MergeResult:
        """Plan on the published head first, so that the change itself, which blocks other committers, finds everything read."""
        target = self._target
        now = read_head(target.rows, target.reference, fresh=True)
        planned = self._look(now)
        if self._options.dry_run:
            return planned
        done = commit_change(
            target.rows,
            target.reference,
            self._change,
            message=self._meta.message,
            properties=self._meta.as_properties(target.catalog_id),
            fence=target.fence,
        )
        made = done.commit_id if done.changed else None
        steps = tuple(replace(step, commit=made) for step in done.result.steps)
        return replace(done.result, head=done.commit_id, steps=steps)

    def plan_onto(self, now: Head | None, *, most: int | None = None) -> MergePlan:
        """What would be done to a state, with its conflicts; the places of dropped tables are not looked at.

        raises        TooManyChangesError where the source has more than ``most`` changes
        """
        rows = self._target.rows
        head_id, commit_ = (None, None) if now is None else (now.id, now.commit)
        base = self._base(rows, head_id, commit_)
        if most is not None:
            self._check_changes(base.commit, most)
        return self._make_plan(rows, base, DryRunState(now)).plan

    def _look(self, now: Head | None) -> MergeResult:
        """Plan on a published head, and copy or read the contents that the plan needs."""
        rows = self._target.rows
        head_id, commit_ = (None, None) if now is None else (now.id, now.commit)
        self._target.check_expected(rows, head_id, commit_)
        base = self._base(rows, head_id, commit_)
        state = DryRunState(now)
        plan, undone = self._plan(rows, base, head_id, state)
        result = self._result(head_id, base, plan, undone)
        target, what = self._target, f"{self._name()} was not merged into {self._target.branch!r}"
        ids, dry_run = index_at(now, IDS), self._options.dry_run
        take_back_copies(rows, target.catalog_id, self._source.head, ids, plan.contents(), what, dry_run=dry_run)
        if not dry_run:
            self._copies.prepare(list(plan.copies.values()), ids)
        return result

    def _change(self, tx: Transaction) -> MergeResult:
        self._target.check_expected(tx.reader, tx.head_id, tx.head)
        base = self._base(tx.reader, tx.head_id, tx.head)
        plan, undone = self._plan(tx.reader, base, tx.head_id, tx)
        result = self._result(tx.head_id, base, plan, undone)
        check_coming(tx, self._target.catalog_id, plan.contents())
        write_merge(tx, plan, self._copies)
        if not self._meta.message:
            onto = "" if tx.head_id is None else f" at {id_text(tx.head_id)}"
            tx.set_message(f"Merge {self._name()} into {self._target.branch}{onto}")
        return result

    def _plan(self, rows: RealmReader, base: MergeBase, head_id: ObjectId | None, state: Transaction | DryRunState) -> _Planned:
        """Plan once for each head: a large merge is run again when it took too long to share a group with others."""
        known = self._plans.get(head_id)
        if known is None:
            known = self._make_plan(rows, base, state)
            self._plans = {head_id: known}
        return known

    def _make_plan(self, rows: RealmReader, base: MergeBase, state: Transaction | DryRunState) -> _Planned:
        changes = self._changes_since(base.commit)
        undone = self._undone(rows, base, changes, state.index(CONTENT))
        if undone:
            changes = sorted([*changes, *(each.change for each in undone.values())], key=lambda change: change.key)
        plan = plan_merge(state.index(CONTENT), state.index(IDS), changes, self._options, self._target.guard, undone)
        # behind the guard: which keys are changed is for those alone who may see all of them
        self._options.check_used({change.key for change in changes})
        return _Planned(plan, tuple(sorted(undone)))

    def _undone(
        self, rows: RealmReader, base: MergeBase, changes: Sequence[ContentChange], content: Index
    ) -> dict[ContentKey, UndoneChange]:
        """What was merged before, and is not there any more because of a restoration."""
        if not base.restorations:
            return {}
        since = {change.key for change in changes}
        merged = [change for change in self._changes_since(base.earlier) if change.key not in since]
        return find_undone(rows, base.restorations, merged, content)

    def _base(self, rows: RealmReader, head_id: ObjectId | None, commit_: Commit | None) -> MergeBase:
        if self._options.base is not None:
            return MergeBase(self._options.base)
        if head_id is None or commit_ is None:
            return MergeBase(None)
        return self._bases.find_base(rows, head_id, commit_)

    def _changes_since(self, base: ObjectId | None) -> list[ContentChange]:
        """The changes since a base, computed once for each base: neither it nor the source ever changes."""
        known = self._changes.get(base)
        if known is None:
            known = self._changes[base] = self._compare(base)
        return known

    def _check_changes(self, base: ObjectId | None, most: int) -> None:
        before = None if base is None else read_commit(self._target.rows, base)
        if len(list(islice(content_differences(before, self._source.head), most + 1))) > most:
            raise TooManyChangesError(f"{self._name()} has more than {most:,} changes since the merge base")

    def _compare(self, base: ObjectId | None) -> list[ContentChange]:
        source = self._source.head
        with expired_if_collected(source):
            if base is None:
                return changes_between(None, source)
            start = read_commit(self._target.rows, base)
            with expired_if_collected(start):
                return changes_between(start, source)

    def _result(self, onto: ObjectId | None, base: MergeBase, plan: MergePlan, undone: tuple[ContentKey, ...]) -> MergeResult:
        """Build the result; raises MergeConflictError if there are conflicts."""
        result = MergeResult(
            onto=onto,
            head=onto,
            base=base.commit,
            steps=(MergeStep(self._source.head.id, None, plan.keys),),
            conflicts=plan.conflicts,
            other_bases=base.others,
            lost=base.lost,
            undone=undone,
            undone_base=base.earlier if undone else None,
        )
        if result.conflicts:
            raise MergeConflictError(f"{self._name()} cannot be merged into {self._target.branch!r}", result)
        return result

    def _name(self) -> str:
        source, text = self._source, id_text(self._source.head.id)
        return text if source.text == text else f"{source.text} at {text}"


def plan_merge(
    content: Index,
    ids: Index,
    changes: Sequence[ContentChange],
    options: MergeOptions,
    guard: MergeGuard | None = None,
    undone: UndoneChanges = MappingProxyType({}),
) -> MergePlan:
    """Plan what the changes of a source do to a state.

    content, ids  the target's two indexes of content
    undone        those of the changes that were merged before, and that restorations of the target took back
    raises        RefusedError for a resolved content that cannot be put; what ``guard`` raises
    """
    head = content_view(content, (change.key for change in changes))
    if guard is not None:
        guard(changes, head)
    made = decide_keys(changes, head, options, find_content_keys(ids, given_up_contents(changes, head)), undone)
    types = made.types()
    head |= content_view(content, {above for key in types if key not in head for above in key.ancestors()})
    head |= survivors_below(content, head, non_namespaces(types, made.removals), made.removals)
    return judge_merge(made, head, find_content_keys(ids, made.ids().values()))


_CONTENT_BYTES = 500
"""What a content without its metadata takes, about."""


class _HeldContent(NamedTuple):
    """A content that was read, and not copied yet."""

    value: ContentValue
    content: Content
    metadata: MetadataParts | None

    @property
    def bytes(self) -> int:
        return _CONTENT_BYTES + (0 if self.metadata is None else metadata_bytes(self.metadata))


class _StagedContent(NamedTuple):
    """The copies of a content and its metadata; ``before`` is the target's metadata whose pieces the copy shares."""

    object_id: ObjectId
    metadata: ObjectId | None
    before: ObjectId | None


class ContentCopies:
    """Copies contents of one commit, by their ids. Contents of equal value may be one object, each with metadata of its own.

    rows          where the copies go
    """

    def __init__(self, source: Head, rows: RealmStore) -> None:
        self._source = source
        self._rows = rows
        self._staging: StagedObjects | None = None
        self._held: dict[UUID, _HeldContent] = {}
        self._held_bytes = 0
        self._staged: dict[UUID, _StagedContent] = {}
        self._objects: dict[ObjectId, ObjectId] = {}

    def prepare(self, values: Sequence[ContentValue], ids: Index) -> None:
        """Read the contents that were not read yet; where they are more than a batch, write their copies, too.

        ids           of the target as it is now, whose metadata the copies share pieces with
        raises        ExpiredError when the source was collected meanwhile · what ``StagedObjects.write_batch`` raises
        """
        settings = self._rows.settings
        missing = [value for value in values if not self._has(value.content_id)]
        for part in _batches(missing, settings.copy_batch):
            for held in self._read(part):
                if self._held_bytes + held.bytes > settings.commit_group_bytes or len(self._held) >= settings.copy_batch:
                    self.stage_held(ids)
                self._hold(held)
        if self._staged:
            self.stage_held(ids)

    @property
    def held_bytes(self) -> int:
        """What the contents take that are read and not staged, about."""
        return self._held_bytes

    def put_contents(self, tx: Transaction, values: Mapping[ContentKey, ContentValue]) -> None:
        """Put contents under keys, as copies. What a key holds now does not matter.

        raises        ExpiredError when the source was collected before all of them were read
        """
        keys = [value.content_id.bytes for value in values.values()]
        tx.index(CONTENT).get_many(key.to_index() for key in values)  # one bulk read instead of one for each edit
        held = {content_id: value.object_id for content_id, value in tx.index(IDS).get_many(keys).items()}
        # Older copies may be gone before the swap. Then everything is read again, and added with the commit.
        is_staged = self._staging is not None and tx.take_staged(self._staging)
        loose = []
        for value in values.values():
            staged = self._staged.get(value.content_id)
            if not is_staged or staged is None or not _fits(staged, held.get(value.content_id.bytes)):
                loose.append(value)
        for copied in self._read([value for value in loose if value.content_id not in self._held]):
            self._hold(copied)
        apart = {value.content_id for value in loose}
        editor = ContentEditor(tx)
        for key, value in values.items():
            if value.content_id in apart:
                copied = self._held[value.content_id]
                put_copy(tx, key, copied.content, value, copied.metadata)
            else:
                staged = self._staged[value.content_id]
                is_with = staged.metadata is not None
                editor.put_key(key, replace(value, object_id=staged.object_id, has_metadata=is_with), staged.metadata)

    def _has(self, content_id: UUID) -> bool:
        return content_id in self._held or content_id in self._staged

    def _hold(self, held: _HeldContent) -> None:
        self._held[held.value.content_id] = held
        self._held_bytes += held.bytes

    def stage_held(self, ids: Index) -> None:
        """Write the copies of what is held, in one batch, and forget it. ``ids`` as for ``prepare``."""
        staging = self._staging = self._staging or StagedObjects(self._rows)
        before = ids.get_many(content_id.bytes for content_id, held in self._held.items() if held.metadata is not None)
        for content_id, held in self._held.items():
            entry = before.get(content_id.bytes)
            self._staged[content_id] = self._copy(staging, held, None if entry is None else entry.object_id)
        staging.write_batch()
        self._held, self._held_bytes = {}, 0

    def _copy(self, staging: StagedObjects, held: _HeldContent, before: ObjectId | None) -> _StagedContent:
        original = held.value.object_id
        if original not in self._objects:
            self._objects[original] = staging.add_object(without_id(held.content))
        metadata = None if held.metadata is None else store_metadata(staging, held.metadata, before=before)
        return _StagedContent(self._objects[original], metadata, before)

    def _read(self, values: Sequence[ContentValue]) -> Iterator[_HeldContent]:
        """Read contents, together, and the metadata of each when its turn has come."""
        rows = self._source.rows
        with expired_if_collected(self._source):
            stored = rows.read_many([value.object_id for value in values], StoredObject)
            entries = self._source.index(IDS).get_many(value.content_id.bytes for value in values if value.has_metadata)
            metadata = {key: entry.object_id for key, entry in entries.items() if entry.object_id is not None}
            rows.read_many(list(metadata.values()), IcebergMetadata)  # one bulk read instead of one for each
        for value, content in zip(values, stored, strict=True):
            with expired_if_collected(self._source):
                metadata_id = metadata.get(value.content_id.bytes)
                parts = None if metadata_id is None else read_metadata(rows, metadata_id)
                held = _HeldContent(value, self._checked(value, content), parts)
            yield held

    def _checked(self, value: ContentValue, stored: StoredObject | None) -> Content:
        where = f"object {id_text(value.object_id)} of commit {id_text(self._source.id)}"
        if stored is None:
            raise CorruptionError(f"{where} is not there: run `headwater fsck`")
        if not isinstance(stored, Content):
            raise CorruptionError(f"{where} has the type {stored.type_name!r}, which this release cannot copy")
        if why := unknown_pointers_reason(stored):
            raise CorruptionError(f"{where} {why}: it cannot be copied")
        return stored


def _fits(staged: _StagedContent, held: ObjectId | None) -> bool:
    """Whether a copy shares pieces with nothing but what the commit's parent holds."""
    return staged.before is None or staged.before == held


def _batches(values: Sequence[ContentValue], size: int) -> Iterator[Sequence[ContentValue]]:
    return (values[start : start + size] for start in range(0, len(values), size))


@contextmanager
def expired_if_collected(source: Head) -> Iterator[None]:
    """Raise ExpiredError instead of a damage report if the commit was collected since it was read."""
    try:
        yield
    except (CorruptionError, NotFoundError) as fault:
        if not isinstance(fault, ExpiredError) and source.is_collected():
            raise ExpiredError(
                f"commit {id_text(source.id)} of realm {source.rows.realm!r} was collected while it was copied: begin again"
            ) from fault
        raise


def write_merge(tx: Transaction, plan: MergePlan, copies: ContentCopies) -> None:
    """Write a plan without conflicts. Puts go before removals: a renamed content then shares the metadata that it had."""
    copies.put_contents(tx, plan.copies)
    for key, resolved in plan.resolved.items():
        put_content(tx, key, resolved.content, resolved.content_id, resolved.metadata)
    editor = ContentEditor(tx)
    for key in plan.removals:
        editor.remove_key(key)


class DryRunState:
    """The state that a branch would have, without a commit."""

    def __init__(self, head: Head | None) -> None:
        self._editors = {name: IndexEditor(index_at(head, name)) for name in (CONTENT, IDS)}

    def index(self, name: str) -> IndexEditor:
        return self._editors[name]


def preview_merge(edited: EditableIndexes, plan: MergePlan) -> None:
    """Edit as ``write_merge`` does, but with the objects of the source, for looking only. Conflicts are treated as if forced."""
    editor = ContentEditor(edited)
    for key, value in plan.copies.items():
        editor.put_key(key, ContentValue(value.type, value.content_id, value.digest, value.object_id))
    for key, resolved in plan.resolved.items():
        editor.put_key(
            key,
            ContentValue(content_type_of(resolved.content), resolved.content_id, content_digest(resolved.content), ObjectId(0)),
        )
    for key in plan.removals:
        editor.remove_key(key)
