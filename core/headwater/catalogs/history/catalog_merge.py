"""A merge: the changes of a source since the merge base, as one commit on a branch. Transplants use the same parts.

``MergeBaseFinder`` finds the nearest common ancestor, ``content_diff`` the changes of the source since then, ``three_way`` decides
key by key. This module makes the plan for a state and writes it: the source's contents are copied, because its objects may be
garbage tomorrow. It reads commits and edits the content of a branch; it must not know where branches are listed, nor catalogs'
definitions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from headwater.catalogs.content import ContentValue, content_digest, content_type_of
from headwater.catalogs.content_copies import ContentCopies, expired_if_collected
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
    survivors_below,
)
from headwater.catalogs.history.commit_meta import CommitMeta, check_expected
from headwater.catalogs.history.content_diff import ContentChange, changes_between
from headwater.catalogs.history.merge_base import MergeBase, MergeBaseFinder
from headwater.catalogs.history.three_way import (
    MergedKey,
    MergeOptions,
    MergePlan,
    decide_keys,
    given_up_contents,
    judge_merge,
)
from headwater.commits import Commit, Head, StagedObjects, Transaction, commit_change, read_commit, read_head
from headwater.errors import ConflictError
from headwater.index import Index, IndexEditor
from headwater.store import ObjectId, RealmReader, RealmStore, id_text


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
        """True if a commit was made."""
        return bool(self.commits)

    @property
    def commits(self) -> tuple[ObjectId, ...]:
        """The commits that were made, oldest first."""
        return tuple(step.commit for step in self.steps if step.commit is not None)

    @property
    def merged_keys(self) -> tuple[MergedKey, ...]:
        return tuple(key for step in self.steps for key in step.keys)


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

    No commit is made where no change is left. Changes that the target's history shows as merged are not merged again.

    meta          of the commit; a default message names the source
    raises        MergeConflictError with all conflicts · RefusedError: a mode for a key that the source did not change, or
                  a resolved content that cannot be put · NotFoundError: no common ancestor · ExpiredError: the common ancestor or the
                  source was collected meanwhile · what ``commit`` raises
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
        self._copies = ContentCopies(source.head, StagedObjects(target.rows))
        self._plans: dict[ObjectId | None, MergePlan] = {}

    def carry_out(self) -> MergeResult:
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

    def _look(self, now: Head | None) -> MergeResult:
        """Plan on a published head, and copy or read the contents that the plan needs."""
        rows = self._target.rows
        head_id, commit_ = (None, None) if now is None else (now.id, now.commit)
        self._target.check_expected(rows, head_id, commit_)
        base = self._base(rows, head_id, commit_)
        state = DryRunState(now)
        plan = self._plan(base, head_id, state)
        result = self._result(head_id, base, plan)
        if not self._options.dry_run:
            self._copies.prepare(rows, list(plan.copies.values()), index_at(now, IDS))
        return result

    def _change(self, tx: Transaction) -> MergeResult:
        self._target.check_expected(tx.reader, tx.head_id, tx.head)
        base = self._base(tx.reader, tx.head_id, tx.head)
        plan = self._plan(base, tx.head_id, tx)
        result = self._result(tx.head_id, base, plan)
        write_merge(tx, plan, self._copies)
        if not self._meta.message:
            onto = "" if tx.head_id is None else f" at {id_text(tx.head_id)}"
            tx.set_message(f"Merge {self._name()} into {self._target.branch}{onto}")
        return result

    def _plan(self, base: MergeBase, head_id: ObjectId | None, state: Transaction | DryRunState) -> MergePlan:
        """Plan once for each head: a large merge is run again when it took too long to share a group with others."""
        known = self._plans.get(head_id)
        if known is None:
            changes = self._changes_since(base)
            known = plan_merge(state.index(CONTENT), state.index(IDS), changes, self._options, self._target.guard)
            # behind the guard: which keys are changed is for those alone who may see all of them
            self._options.check_used({change.key for change in changes})
            self._plans = {head_id: known}
        return known

    def _base(self, rows: RealmReader, head_id: ObjectId | None, commit_: Commit | None) -> MergeBase:
        if self._options.base is not None:
            return MergeBase(self._options.base)
        if head_id is None or commit_ is None:
            return MergeBase(None)
        return self._bases.find_base(rows, head_id, commit_)

    def _changes_since(self, base: MergeBase) -> list[ContentChange]:
        """The changes since a base, computed once for each base: neither it nor the source ever changes."""
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
        """Build the result; raises MergeConflictError if there are conflicts."""
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


def plan_merge(
    content: Index, ids: Index, changes: Sequence[ContentChange], options: MergeOptions, guard: MergeGuard | None = None
) -> MergePlan:
    """Plan what the changes of a source do to a state.

    content, ids  the target's two indexes of content
    raises        RefusedError for a resolved content that cannot be put; what ``guard`` raises
    """
    head = content_view(content, (change.key for change in changes))
    if guard is not None:
        guard(changes, head)
    made = decide_keys(changes, head, options, find_content_keys(ids, given_up_contents(changes, head)))
    types = made.types()
    head |= content_view(content, {above for key in types if key not in head for above in key.ancestors()})
    head |= survivors_below(content, head, non_namespaces(types, made.removals), made.removals)
    return judge_merge(made, head, find_content_keys(ids, made.ids().values()))


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
