"""What is asked of a merge or transplant, and what is told of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from headwater.catalogs.content.keys import ContentKey
from headwater.catalogs.content.operations import Conflict
from headwater.catalogs.history.log import is_in_history
from headwater.catalogs.history.merging.planning import KeyMerge, MergedKey, MergeMode, Modes
from headwater.commits import Commit, Head
from headwater.errors import ConflictError, MissingError
from headwater.store import ObjectId, RealmReader, RealmStore, id_text

__all__ = ["MergeConflictError", "MergeOptions", "MergeResult", "MergeStep", "Source", "Target"]


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
    def modes(self) -> Modes:
        return Modes(self.mode, self.keys)


@dataclass(frozen=True, slots=True)
class Source:
    """Where the changes come from: the text that named it, and the commit that it meant."""

    text: str
    head: Head


@dataclass(frozen=True, slots=True)
class Target:
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

    def check(self, rows: RealmReader, head_id: ObjectId | None, head: Commit | None) -> None:
        """The expected commit is in the history of this head.

        raises        MissingError · ExpiredError: it cannot be told any more
        """
        if self.expected is None:
            return
        if head is None or head_id is None or not is_in_history(rows, head_id, head, self.expected):
            raise MissingError(
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
    def keys(self) -> tuple[MergedKey, ...]:
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
