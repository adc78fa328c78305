"""A merge: what a source did since it parted from a branch, as one commit on that branch."""

from __future__ import annotations

from dataclasses import replace

from headwater.catalogs.content.indexes import CONTENT, IDS
from headwater.catalogs.history.comparing import Change
from headwater.catalogs.history.merging.bases import Base, Bases
from headwater.catalogs.history.merging.differing import changes_between
from headwater.catalogs.history.merging.planning import MergePlan
from headwater.catalogs.history.merging.requests import (
    MergeConflictError,
    MergeOptions,
    MergeResult,
    MergeStep,
    Source,
    Target,
)
from headwater.catalogs.history.merging.writing import Contents, Pretence, plan_on, reading, write
from headwater.catalogs.history.meta import CommitMeta
from headwater.commits import Commit, Head, Transaction, commit_change, read_commit, read_head
from headwater.store import ObjectId, RealmReader, id_text

__all__ = ["merge"]


def merge(target: Target, source: Source, meta: CommitMeta, options: MergeOptions) -> MergeResult:
    """Put on a branch what the source changed since the nearest common ancestor, in one commit that names the source's head.

    No commit is made where nothing is left to do. What the target's own history shows as merged is not merged again.

    meta          of the commit; without a message it says what was merged
    raises        MergeConflictError with all conflicts · RefusedError: a mode for a key that the source did not change, or
                  a resolved content that cannot be put · MissingError: no common ancestor · ExpiredError: it was collected, or the
                  source was, meanwhile · what ``commit`` raises
    """
    return _Merge(target, source, meta, options).run()


class _Merge:
    def __init__(self, target: Target, source: Source, meta: CommitMeta, options: MergeOptions) -> None:
        self._target = target
        self._source = source
        self._meta = replace(meta, merged=(source.head.id,))
        self._options = options
        self._bases = Bases(target.rows, source.head)
        self._changes: dict[ObjectId | None, list[Change]] = {}
        self._contents = Contents(source.head)
        self._plans: dict[ObjectId | None, MergePlan] = {}

    def run(self) -> MergeResult:
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
        self._target.check(rows, head_id, commit_)
        base = self._base(rows, head_id, commit_)
        state = Pretence(now)
        plan = self._plan(base, head_id, state)
        result = self._result(head_id, base, plan)
        if not self._options.dry_run:
            self._contents.read(plan.copies.values())
        return result

    def _change(self, tx: Transaction) -> MergeResult:
        self._target.check(tx.reader, tx.head_id, tx.head)
        base = self._base(tx.reader, tx.head_id, tx.head)
        plan = self._plan(base, tx.head_id, tx)
        result = self._result(tx.head_id, base, plan)
        write(tx, plan, self._contents)
        if not self._meta.message:
            onto = "" if tx.head_id is None else f" at {id_text(tx.head_id)}"
            tx.set_message(f"Merge {self._name()} into {self._target.branch}{onto}")
        return result

    def _plan(self, base: Base, head_id: ObjectId | None, state: Transaction | Pretence) -> MergePlan:
        """Worked out once for each head: a large merge is run again when it took too long to share a group with others."""
        known = self._plans.get(head_id)
        if known is None:
            changes = self._changes_since(base)
            self._options.modes.check_used({change.key for change in changes})
            known = plan_on(state.index(CONTENT), state.index(IDS), changes, self._options.modes)
            self._plans = {head_id: known}
        return known

    def _base(self, rows: RealmReader, head_id: ObjectId | None, commit_: Commit | None) -> Base:
        if self._options.base is not None:
            return Base(self._options.base)
        if head_id is None or commit_ is None:
            return Base(None)
        return self._bases.find(rows, head_id, commit_)

    def _changes_since(self, base: Base) -> list[Change]:
        """Worked out once for each base: neither it nor the source ever changes."""
        known = self._changes.get(base.commit)
        if known is None:
            known = self._changes[base.commit] = self._compare(base.commit)
        return known

    def _compare(self, base: ObjectId | None) -> list[Change]:
        source = self._source.head
        with reading(source):
            if base is None:
                return changes_between(None, source)
            start = read_commit(self._target.rows, base)
            with reading(start):
                return changes_between(start, source)

    def _result(self, onto: ObjectId | None, base: Base, plan: MergePlan) -> MergeResult:
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
