"""A transplant (cherry-pick): commits of one branch made again on another, each by itself, all of them or none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from headwater.catalogs.content import ContentKey
from headwater.catalogs.content_operations import CONTENT, IDS, Conflict, index_at
from headwater.catalogs.history.catalog_merge import (
    ContentCopies,
    DryRunState,
    MergeConflictError,
    MergeResult,
    MergeSource,
    MergeStep,
    MergeTarget,
    expired_if_collected,
    plan_merge,
    preview_merge,
    take_back_places_of,
    write_merge,
)
from headwater.catalogs.history.commit_meta import CommitMeta, is_in_history
from headwater.catalogs.history.content_diff import ContentChange, changed_by
from headwater.catalogs.history.three_way import MergedKey, MergeOptions, MergePlan
from headwater.commits import Commit, Head, SeriesPart, Transaction, commit_series, read_head
from headwater.errors import ExpiredError, NotFoundError, RefusedError
from headwater.index import Index
from headwater.store import ObjectId, RealmReader, RealmStore, id_text

TRANSPLANTED_LIMIT = 1000
"""Commits of one transplant: they are published together, and one in the middle is read through all that stand before it."""


def check_commit_count(count: int) -> None:
    """Check how many commits are to be transplanted, before any of them is looked up; raises RefusedError for too many."""
    if count > TRANSPLANTED_LIMIT:
        raise RefusedError(
            f"{count} commits are to be transplanted, and {TRANSPLANTED_LIMIT} can be at once: give the first of them,"
            " and the others when these are done"
        )


def transplant_commits(
    target: MergeTarget, source: MergeSource, commits: Sequence[ObjectId], options: MergeOptions, meta: CommitMeta | None = None
) -> MergeResult:
    """Make commits of the source again on a branch, each with its own message, authors, properties and author time.

    A commit without any effect is left out. All are published together: a reader of the branch sees all of them or none.

    commits       oldest first, each the parent of the next, all in the history of the source
    meta          overrides the commit's own, when there is one commit
    raises        RefusedError: no commits, gaps, the wrong order, too many, a key's mode that no commit needs, resolved or expected
                  contents · NotFoundError: one is not in the history of the source · MergeConflictError with all conflicts
                  · ExpiredError: a commit, or the one before the first, was collected · what ``commit_series`` raises
    """
    _check_options(commits, options, meta)
    picked = _read(target.rows, source, commits, meta)
    return _Transplant(target, picked, options, source).carry_out()


@dataclass(frozen=True, slots=True)
class _PickedCommit:
    """A commit to be made again."""

    head: Head
    meta: CommitMeta
    changes: list[ContentChange]
    copies: ContentCopies


class _Transplant:
    def __init__(
        self, target: MergeTarget, picked: Sequence[_PickedCommit], options: MergeOptions, source: MergeSource
    ) -> None:
        self._target = target
        self._picked = picked
        self._options = options
        self._source = source
        self._onto: ObjectId | None = None

    def carry_out(self) -> MergeResult:
        now = read_head(self._target.rows, self._target.reference, fresh=True)
        planned = self._look(now)
        if self._options.dry_run:
            return planned
        self._prepare(index_at(now, IDS))
        done = commit_series(self._target.rows, self._target.reference, self._parts, fence=self._target.fence)
        steps = tuple(
            MergeStep(pick.head.id, made.commit_id if made.changed else None, made.result)
            for pick, made in zip(self._picked, done, strict=True)
        )
        return replace(planned, onto=self._onto, head=done[-1].commit_id, steps=steps)

    def _prepare(self, ids: Index) -> None:
        """Read what is to be copied; where all commits together have more than a batch, write the copies ahead."""
        rows, held = self._target.rows, list[ContentCopies]()
        for pick in self._picked:
            pick.copies.prepare([change.after for change in pick.changes if change.after is not None], ids)
            held.append(pick.copies)
            if sum(copies.held_bytes for copies in held) > rows.settings.commit_group_bytes:
                for copies in held:
                    copies.stage_held(ids)
                held = []

    def _look(self, now: Head | None) -> MergeResult:
        """Plan the commits one after another.

        raises        MergeConflictError with the first conflict of each key: later ones follow from it
        """
        head_id = None if now is None else now.id
        self._target.check_expected(self._target.rows, head_id, None if now is None else now.commit)
        state = DryRunState(now)
        steps: list[MergeStep] = []
        plans: list[MergePlan] = []
        conflicts: dict[ContentKey | None, Conflict] = {}
        for pick in self._picked:
            plan = self._plan(pick, state)
            plans.append(plan)
            preview_merge(state, plan)
            for conflict in plan.conflicts:
                conflicts.setdefault(conflict.key, conflict)
            steps.append(MergeStep(pick.head.id, None, plan.keys))
        # behind the guard: which keys are changed is for those alone who may see all of them
        self._options.check_used({change.key for pick in self._picked for change in pick.changes})
        first = self._picked[0].head.commit.tail
        result = MergeResult(
            onto=head_id,
            head=head_id,
            base=first[0] if first else None,
            steps=tuple(steps),
            conflicts=tuple(conflicts.values()),
        )
        if conflicts:
            what = f"{len(self._picked)} commits of {self._source.text} cannot be transplanted to {self._target.branch!r}"
            raise MergeConflictError(what, result)
        for pick, plan in zip(self._picked, plans, strict=True):
            what = f"commit {id_text(pick.head.id)} was not transplanted to {self._target.branch!r}"
            take_back_places_of(self._target, pick.head, plan, what, dry_run=self._options.dry_run)
        return result

    def _parts(self, now: Head | None) -> list[SeriesPart[tuple[MergedKey, ...]]]:
        self._onto = self._look(now).onto
        return [
            SeriesPart(self._change(pick), pick.meta.message, pick.meta.as_properties(self._target.catalog_id))
            for pick in self._picked
        ]

    def _change(self, pick: _PickedCommit) -> Callable[[Transaction], tuple[MergedKey, ...]]:
        def change(tx: Transaction) -> tuple[MergedKey, ...]:
            plan = self._plan(pick, tx)
            write_merge(tx, plan, pick.copies)
            return plan.keys

        return change

    def _plan(self, pick: _PickedCommit, state: Transaction | DryRunState) -> MergePlan:
        return plan_merge(state.index(CONTENT), state.index(IDS), pick.changes, self._options, self._target.guard)


def _check_options(commits: Sequence[ObjectId], options: MergeOptions, meta: CommitMeta | None) -> None:
    if not commits:
        raise RefusedError("a transplant needs at least one commit")
    check_commit_count(len(commits))
    if meta is not None and replace(meta, committer="") != CommitMeta() and len(commits) > 1:
        raise RefusedError(
            f"each of {len(commits)} transplanted commits keeps its own message and authors: give new ones to one commit"
        )
    if options.base is not None:
        raise RefusedError("a transplanted commit is compared with the one before it: name no base")
    if any(key_options.resolved is not None or key_options.expected is not None for key_options in options.keys.values()):
        raise RefusedError(
            "transplanted commits take no resolved or expected contents: merge, or give keys the mode FORCE or DROP"
        )


def _read(rows: RealmStore, source: MergeSource, commits: Sequence[ObjectId], meta: CommitMeta | None) -> list[_PickedCommit]:
    heads = [
        _found(rows, commit_id, commit) for commit_id, commit in zip(commits, rows.read_many(commits, Commit), strict=True)
    ]
    for before, after in pairwise(heads):
        if after.commit.tail[:1] != (before.id,):
            raise RefusedError(
                f"commit {id_text(after.id)} of realm {rows.realm!r} does not stand on commit {id_text(before.id)}:"
                " transplant commits without gaps, oldest first"
            )
    if not is_in_history(rows, source.head.id, source.head.commit, heads[-1]):
        raise NotFoundError(f"commit {id_text(heads[-1].id)} is not in the history of {source.text!r} of realm {rows.realm!r}")
    return [_picked(rows, commit, meta) for commit in heads]


def _found(rows: RealmReader, commit_id: ObjectId, commit: Commit | None) -> Head:
    if commit is None:
        raise ExpiredError(f"commit {id_text(commit_id)} is not in realm {rows.realm!r}: it was collected, or never was")
    return Head(commit_id, commit, rows)


def _picked(rows: RealmStore, head: Head, meta: CommitMeta | None) -> _PickedCommit:
    own, given = CommitMeta.from_commit(head.commit), meta or CommitMeta()
    combined = CommitMeta(
        message=given.message or own.message,
        committer=given.committer,
        authors=given.authors or own.authors,
        signed_off_by=given.signed_off_by or own.signed_off_by,
        properties=given.properties or own.properties,
        author_time=head.commit.time if own.author_time is None else own.author_time,
    )
    with expired_if_collected(head):
        return _PickedCommit(head, combined, changed_by(rows, head), ContentCopies(head, rows))
