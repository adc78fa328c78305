"""A merge: what a source did since it parted from a branch, as one commit on that branch. Transplants use the same parts.

``merge_base`` finds the nearest common ancestor, ``content_diff`` what the source changed since, ``three_way`` decides key by
key, and here the plan is made on a state and written: what the source holds is copied, because its objects may be garbage
tomorrow. Reads commits and edits the content of a branch; must not know where branches are listed, nor catalogs' definitions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from uuid import UUID

from headwater.catalogs.content.content_index import (
    CONTENT,
    IDS,
    ContentEditor,
    EditableIndexes,
    content_view,
    put_content,
    put_copy,
    surviving_key_below,
)
from headwater.catalogs.content.content_keys import ContentKey
from headwater.catalogs.content.content_operations import Conflict, non_namespaces
from headwater.catalogs.content.content_types import Content, ContentType, ContentValue, content_digest, content_type_of
from headwater.catalogs.history.commit_meta import CommitMeta, is_in_history
from headwater.catalogs.history.content_diff import ContentChange, changes_between
from headwater.catalogs.history.merge_base import MergeBase, MergeBaseFinder
from headwater.catalogs.history.three_way import (
    KeyMerge,
    MergedKey,
    MergeMode,
    MergeModes,
    MergePlan,
    decide_keys,
    given_up_contents,
    judge_merge,
)
from headwater.catalogs.stored_metadata import read_metadata
from headwater.commits import Commit, Head, Transaction, commit_change, read_commit, read_head
from headwater.errors import ConflictError, CorruptionError, ExpiredError, NotFoundError
from headwater.iceberg.metadata_json import MetadataParts
from headwater.index import Index, IndexEditor
from headwater.store import ObjectId, RealmReader, RealmStore, StoredObject, id_text


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeOptions:
    """How to merge, or transplant.

    mode              of all keys that are not in ``keys``
    keys              by key, how to merge what does not go by the mode; only keys that the source changed
    base              the commit that the source's changes are counted from; None: the nearest common ancestor. Not for transplants
    dry_run           tell what would happen, and write nothing
    """

    mode: MergeMode = MergeMode.NORMAL
    keys: Mapping[ContentKey, KeyMerge] = field(default_factory=dict)
    base: ObjectId | None = None
    dry_run: bool = False

    @property
    def modes(self) -> MergeModes:
        return MergeModes(self.mode, self.keys)


@dataclass(frozen=True, slots=True)
class MergeSource:
    """Where the changes come from: the text that named it, and the commit that it meant."""

    text: str
    head: Head


@dataclass(frozen=True, slots=True)
class MergeTarget:
    """The branch that changes.

    reference     its name in the realm
    expected      a commit that has to be in its history; None: no matter
    fence         called before every run of the change
    """

    rows: RealmStore
    catalog_id: str
    branch: str
    reference: str
    expected: Head | None = None
    fence: Callable[[], None] | None = None

    def check_expected(self, rows: RealmReader, head_id: ObjectId | None, head: Commit | None) -> None:
        """The expected commit is in the history of this head.

        raises        NotFoundError · ExpiredError: it cannot be told any more
        """
        if self.expected is None:
            return
        if head is None or head_id is None or not is_in_history(rows, head_id, head, self.expected):
            raise NotFoundError(
                f"expected commit {id_text(self.expected.id)} is not in the history of branch {self.branch!r} of realm {rows.realm!r}"
            )


@dataclass(frozen=True, slots=True)
class MergeStep:
    """One commit of the source, or all that a merge squashed under the source's head, and what became of each key that it changed.

    commit        what was made of it; None: nothing was left to do, or nothing was written
    """

    source: ObjectId
    commit: ObjectId | None
    keys: tuple[MergedKey, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeResult:
    """What a merge or transplant did, or would do.

    onto          the target's head that it was done on; None: it had no commit
    head          the target's head afterwards
    base          where the two parted; None: before the first commit of all. Of a transplant what its first commit stands on
    other_bases   of merges back and forth: common ancestors as near as the base
    lost          collected commits beyond which history could not be followed; a nearer base may have been there
    conflicts     all of them; only in a MergeConflictError, and nothing was written
    """

    onto: ObjectId | None
    head: ObjectId | None
    base: ObjectId | None
    steps: tuple[MergeStep, ...]
    conflicts: tuple[Conflict, ...] = ()
    other_bases: tuple[ObjectId, ...] = ()
    lost: tuple[ObjectId, ...] = ()

    @property
    def is_applied(self) -> bool:
        """Whether a commit was made."""
        return bool(self.commits)

    @property
    def commits(self) -> tuple[ObjectId, ...]:
        """What was made, oldest first."""
        return tuple(step.commit for step in self.steps if step.commit is not None)

    @property
    def merged_keys(self) -> tuple[MergedKey, ...]:
        return tuple(key for step in self.steps for key in step.keys)


class MergeConflictError(ConflictError):
    """Conflicts stand against a merge or transplant, and nothing was written.

    what          what could not be done
    result        what would have happened to every key; its ``conflicts`` are the error's ``details``
    """

    def __init__(self, what: str, result: MergeResult) -> None:
        noun = "conflict" if len(result.conflicts) == 1 else "conflicts"
        text = f"{what}: {len(result.conflicts)} {noun}: " + "; ".join(map(str, result.conflicts))
        super().__init__(text, details=result.conflicts)
        self.what = what
        self.result = result

    def __reduce__(self) -> tuple[type[MergeConflictError], tuple[str, MergeResult]]:
        return type(self), (self.what, self.result)


def merge_commits(target: MergeTarget, source: MergeSource, meta: CommitMeta, options: MergeOptions) -> MergeResult:
    """Put on a branch what the source changed since the nearest common ancestor, in one commit that names the source's head.

    No commit is made where nothing is left to do. What the target's own history shows as merged is not merged again.

    meta          of the commit; without a message it says what was merged
    raises        MergeConflictError with all conflicts · RefusedError: a mode for a key that the source did not change, or
                  a resolved content that cannot be put · NotFoundError: no common ancestor · ExpiredError: it was collected, or the
                  source was, meanwhile · what ``commit`` raises
    """
    return _Merge(target, source, meta, options).carry_out()


class _Merge:
    def __init__(self, target: MergeTarget, source: MergeSource, meta: CommitMeta, options: MergeOptions) -> None:
        self._target = target
        self._source = source
        self._meta = replace(meta, merged=(source.head.id,))
        self._options = options
        self._bases = MergeBaseFinder(target.rows, source.head)
        self._changes: dict[ObjectId | None, list[ContentChange]] = {}
        self._contents = SourceContents(source.head)
        self._plans: dict[ObjectId | None, MergePlan] = {}

    def carry_out(self) -> MergeResult:
        """Looks before it begins, so that the change, for which others wait, finds everything read."""
        target = self._target
        now = read_head(target.rows, target.reference, fresh=True)
        seen = self._look(now)
        if self._options.dry_run:
            return seen
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

    def _look(self, now: Head | None) -> MergeResult:
        """What would happen on a head that is published; and the contents for it are read."""
        rows = self._target.rows
        head_id, commit_ = (None, None) if now is None else (now.id, now.commit)
        self._target.check_expected(rows, head_id, commit_)
        base = self._base(rows, head_id, commit_)
        state = DryRunState(now)
        plan = self._plan(base, head_id, state)
        result = self._result(head_id, base, plan)
        if not self._options.dry_run:
            self._contents.read_contents(plan.copies.values())
        return result

    def _change(self, tx: Transaction) -> MergeResult:
        self._target.check_expected(tx.reader, tx.head_id, tx.head)
        base = self._base(tx.reader, tx.head_id, tx.head)
        plan = self._plan(base, tx.head_id, tx)
        result = self._result(tx.head_id, base, plan)
        write_merge(tx, plan, self._contents)
        if not self._meta.message:
            onto = "" if tx.head_id is None else f" at {id_text(tx.head_id)}"
            tx.set_message(f"Merge {self._name()} into {self._target.branch}{onto}")
        return result

    def _plan(self, base: MergeBase, head_id: ObjectId | None, state: Transaction | DryRunState) -> MergePlan:
        """Worked out once for each head: a large merge is run again when it took too long to share a group with others."""
        known = self._plans.get(head_id)
        if known is None:
            changes = self._changes_since(base)
            self._options.modes.check_used({change.key for change in changes})
            known = plan_merge(state.index(CONTENT), state.index(IDS), changes, self._options.modes)
            self._plans = {head_id: known}
        return known

    def _base(self, rows: RealmReader, head_id: ObjectId | None, commit_: Commit | None) -> MergeBase:
        if self._options.base is not None:
            return MergeBase(self._options.base)
        if head_id is None or commit_ is None:
            return MergeBase(None)
        return self._bases.find_base(rows, head_id, commit_)

    def _changes_since(self, base: MergeBase) -> list[ContentChange]:
        """Worked out once for each base: neither it nor the source ever changes."""
        known = self._changes.get(base.commit)
        if known is None:
            known = self._changes[base.commit] = self._compare(base.commit)
        return known

    def _compare(self, base: ObjectId | None) -> list[ContentChange]:
        source = self._source.head
        with expired_if_collected(source):
            if base is None:
                return changes_between(None, source)
            start = read_commit(self._target.rows, base)
            with expired_if_collected(start):
                return changes_between(start, source)

    def _result(self, onto: ObjectId | None, base: MergeBase, plan: MergePlan) -> MergeResult:
        """raises MergeConflictError when something stands against it"""
        result = MergeResult(
            onto=onto,
            head=onto,
            base=base.commit,
            steps=(MergeStep(self._source.head.id, None, plan.keys),),
            conflicts=plan.conflicts,
            other_bases=base.others,
            lost=base.lost,
        )
        if result.conflicts:
            raise MergeConflictError(f"{self._name()} cannot be merged into {self._target.branch!r}", result)
        return result

    def _name(self) -> str:
        source, text = self._source, id_text(self._source.head.id)
        return text if source.text == text else f"{source.text} at {text}"


_READ_AT_ONCE = 500


def plan_merge(content: Index, ids: Index, changes: Sequence[ContentChange], modes: MergeModes) -> MergePlan:
    """What the changes of a source would do to a state.

    content, ids  the target's two indexes of content
    raises        RefusedError for a resolved content that cannot be put
    """
    head = content_view(content, (change.key for change in changes))
    made = decide_keys(changes, head, modes, _keys_of(ids, given_up_contents(changes, head)))
    types = made.types()
    head |= content_view(content, {above for key in types if key not in head for above in key.ancestors()})
    removed = {key.to_index() for key in made.removals}
    for key in non_namespaces(types, made.removals):
        if key in head and head[key].type == ContentType.NAMESPACE:
            found = surviving_key_below(content, key, removed)
            if found is not None:
                head[found[0]] = found[1]
    return judge_merge(made, head, _keys_of(ids, made.ids().values()))


def _keys_of(ids: Index, content_ids: Iterable[UUID]) -> dict[UUID, ContentKey]:
    """Where contents stand, as far as they do."""
    by_id = {content_id.bytes: content_id for content_id in content_ids}
    return {by_id[key]: ContentKey.from_index(bytes(value.data)) for key, value in ids.get_many(by_id).items()}


class SourceContents:
    """The contents of a source's commit by their ids, read before they are written: a change must be quick.

    Contents of equal value may be one object, each with metadata of its own.
    """

    def __init__(self, source: Head) -> None:
        self._source = source
        self._objects: dict[UUID, Content] = {}
        self._metadata: dict[UUID, MetadataParts] = {}

    def read_contents(self, values: Iterable[ContentValue]) -> None:
        """Read those that were not read yet.

        raises        ExpiredError when the source was collected meanwhile
        """
        missing = [value for value in values if value.content_id not in self._objects]
        rows = self._source.rows
        with expired_if_collected(self._source):
            for start in range(0, len(missing), _READ_AT_ONCE):
                some = missing[start : start + _READ_AT_ONCE]
                for value, found in zip(some, rows.read_many([value.object_id for value in some], StoredObject), strict=True):
                    self._objects[value.content_id] = self._content(value, found)
            with_metadata = {value.content_id.bytes: value.content_id for value in missing if value.has_metadata}
            for content_id, held in self._source.index(IDS).get_many(with_metadata).items():
                if held.object_id is not None:
                    self._metadata[with_metadata[content_id]] = read_metadata(rows, held.object_id)

    def copy_content(self, tx: Transaction, key: ContentKey, value: ContentValue) -> None:
        put_copy(tx, key, self._objects[value.content_id], value, self._metadata.get(value.content_id))

    def _content(self, value: ContentValue, found: StoredObject | None) -> Content:
        where = f"object {id_text(value.object_id)} of commit {id_text(self._source.id)}"
        if found is None:
            raise CorruptionError(f"{where} is not there: run `headwater fsck`")
        if not isinstance(found, Content):
            raise CorruptionError(f"{where} has the type {found.type_name!r}, which this release cannot copy")
        return found


@contextmanager
def expired_if_collected(source: Head) -> Iterator[None]:
    """What is missing of a commit that was collected since it was read is expired, and no damage."""
    try:
        yield
    except (CorruptionError, NotFoundError) as fault:
        if not isinstance(fault, ExpiredError) and source.is_collected():
            raise ExpiredError(
                f"commit {id_text(source.id)} of realm {source.rows.realm!r} was collected while it was merged: begin again"
            ) from fault
        raise


def write_merge(tx: Transaction, plan: MergePlan, contents: SourceContents) -> None:
    """Carry out a plan without conflicts. What is put goes first: a moved content then shares the metadata that it had."""
    contents.read_contents(plan.copies.values())
    tx.index(CONTENT).get_many(key.to_index() for key in plan.copies)  # together, what the edits would look up one by one
    tx.index(IDS).get_many(value.content_id.bytes for value in plan.copies.values())
    for key, value in plan.copies.items():
        contents.copy_content(tx, key, value)
    for key, one in plan.resolved.items():
        put_content(tx, key, one.content, one.content_id, one.metadata)
    editor = ContentEditor(tx)
    for key in plan.removals:
        editor.remove_key(key)


class DryRunState:
    """What a branch would hold, without a commit."""

    def __init__(self, head: Head | None) -> None:
        self._editors = {name: IndexEditor(Index() if head is None else head.index(name)) for name in (CONTENT, IDS)}

    def index(self, name: str) -> IndexEditor:
        return self._editors[name]


def preview_merge(edited: EditableIndexes, plan: MergePlan) -> None:
    """Edit as ``write_merge`` does, but with the objects of the source: for looking only. Conflicts are taken as if they were forced."""
    editor = ContentEditor(edited)
    for key, value in plan.copies.items():
        editor.put_key(key, ContentValue(value.type, value.content_id, value.digest, value.object_id))
    for key, one in plan.resolved.items():
        editor.put_key(
            key, ContentValue(content_type_of(one.content), one.content_id, content_digest(one.content), ObjectId(0))
        )
    for key in plan.removals:
        editor.remove_key(key)
