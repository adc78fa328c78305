"""The nearest common ancestor of two commits: over parents, and over the heads that were merged before.

Both histories are walked at once, newest commit first, each commit colored by where it was reached from. A commit that both
reach is a common ancestor; all below it is common too, but not nearest. Times only choose the order: a commit that is reached
once more from elsewhere is walked once more, so clocks that differ cost reads, and give no wrong answer.

    main   A - B - C --- M - D        M has merged F: the nearest of D and G is F, not B
               |         |
    dev        `- E - F -+- G
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import NamedTuple

from headwater.catalogs.history.commit_meta import merged_heads
from headwater.clock import Micros
from headwater.commits import Commit, Head
from headwater.errors import ExpiredError, NotFoundError
from headwater.store import ObjectId, RealmReader, RealmStore, id_text

_INTO, _FROM, _COMMON = 1, 2, 4
_BOTH = _INTO | _FROM
_FOLLOWED = 1000
"""Commits that a target may have gained while a merge was prepared, before its base is looked for anew."""


@dataclass(frozen=True, slots=True)
class MergeBase:
    """The merge base of two commits.

    commit        None: before the first commit of all, when the target has none
    others        other merge bases (criss-cross merges), none an ancestor of another; the newest is used
    lost          collected commits beyond which neither history could be followed, where a nearer base may have been
    """

    commit: ObjectId | None
    others: tuple[ObjectId, ...] = ()
    lost: tuple[ObjectId, ...] = ()


class _Node(NamedTuple):
    time: Micros
    tail: tuple[ObjectId, ...]
    merged: tuple[ObjectId, ...]


class MergeBaseFinder:
    """Finds the merge base of one source and a target that may move on meanwhile."""

    def __init__(self, rows: RealmStore, source: Head) -> None:
        self._rows = rows
        self._source = source
        self._known: tuple[ObjectId, MergeBase, _AncestorSearch] | None = None

    def find_base(self, rows: RealmReader, head_id: ObjectId, head: Commit) -> MergeBase:
        """Find the base for a head of the target. A repeated call for a head on top of the earlier one costs little.

        rows          the rows that have the head and its ancestors, written or not
        raises        NotFoundError: the two have no commit in common · ExpiredError: or it was collected
        """
        if self._known is not None:
            known_id, base, search = self._known
            if known_id == head_id or _is_plainly_on(rows, head_id, head, known_id, search):
                return base
        search = _AncestorSearch(rows)
        base = search.find_nearest(head_id, self._source.id)
        self._known = head_id, base, search
        return base


def _is_plainly_on(rows: RealmReader, head_id: ObjectId, head: Commit, known: ObjectId, search: _AncestorSearch) -> bool:
    """True if a head is the known one with commits on top that merged nothing and are not the source's: its base is unchanged."""
    for _ in range(_FOLLOWED):
        if not head.tail or merged_heads(head) or search.is_of_source(head_id):
            return False
        head_id = head.tail[0]
        if head_id == known:
            return True
        parent = rows.find_object(head_id, Commit)
        if parent is None:
            return False
        head = parent
    return False


class _AncestorSearch:
    """One walk over two histories."""

    def __init__(self, rows: RealmReader) -> None:
        self._rows = rows
        self._nodes: dict[ObjectId, _Node | None] = {}
        self._colors: dict[ObjectId, int] = {}
        self._queue: list[tuple[int, ObjectId]] = []
        self._waiting: set[ObjectId] = set()
        self._open = 0
        """How many of those that wait are not known to be below a common ancestor."""
        self._found: dict[ObjectId, None] = {}

    def find_nearest(self, into: ObjectId, source: ObjectId) -> MergeBase:
        self._paint(into, _INTO, (into,))
        self._paint(source, _FROM, (source,))
        while self._open:
            self._step()
        if len(self._nearest()) > 1:
            self._settle()
        nearest = sorted(self._nearest(), key=self._time, reverse=True)
        lost = [
            commit_id for commit_id, color in self._colors.items() if self._nodes[commit_id] is None and not color & _COMMON
        ]
        if nearest:
            return MergeBase(nearest[0], tuple(nearest[1:]), tuple(lost))
        what = f"commits {id_text(source)} and {id_text(into)} of realm {self._rows.realm!r}"
        if lost:
            gone = ", ".join(map(id_text, lost))
            raise ExpiredError(
                f"the common ancestor of {what} is not known any more, for {gone} was collected:"
                " name the base of the merge yourself"
            )
        raise NotFoundError(f"{what} have no common ancestor: name the base of the merge yourself")

    def is_of_source(self, commit_id: ObjectId) -> bool:
        return bool(self._colors.get(commit_id, 0) & _FROM)

    def _step(self) -> None:
        """Walk the newest of the waiting commits."""
        _, commit_id = heappop(self._queue)
        self._waiting.remove(commit_id)
        color, node = self._colors[commit_id], self._nodes[commit_id]
        assert node is not None, "a collected commit does not wait"
        self._open -= not color & _COMMON
        if color & _BOTH == _BOTH:
            self._found[commit_id] = None
            color |= _COMMON
        if node.tail:
            self._paint(node.tail[0], color, node.tail)
        for merged in node.merged:
            self._paint(merged, color, (merged,))

    def _paint(self, commit_id: ObjectId, color: int, block: Sequence[ObjectId]) -> None:
        """Color a commit, and schedule its walk if it did not have that color yet.

        block         the commit itself, and commits that will be needed after it: read together
        """
        before = self._colors.get(commit_id, 0)
        after = before | color
        if after == before:
            return
        self._colors[commit_id] = after
        node = self._read(commit_id, block)
        if node is None:
            return
        if commit_id in self._waiting:
            self._open -= bool(not before & _COMMON and after & _COMMON)
            return
        heappush(self._queue, (-node.time, commit_id))
        self._waiting.add(commit_id)
        self._open += not after & _COMMON

    def _read(self, commit_id: ObjectId, block: Sequence[ObjectId]) -> _Node | None:
        if commit_id not in self._nodes:
            wanted = [wanted_id for wanted_id in block if wanted_id not in self._nodes]
            for wanted_id, commit in zip(wanted, self._rows.read_many(wanted, Commit), strict=True):
                self._nodes[wanted_id] = None if commit is None else _Node(commit.time, commit.tail, merged_heads(commit))
        return self._nodes[commit_id]

    def _time(self, commit_id: ObjectId) -> int:
        node = self._nodes[commit_id]
        return 0 if node is None else node.time

    def _nearest(self) -> list[ObjectId]:
        return [commit_id for commit_id in self._found if not self._colors[commit_id] & _COMMON]

    def _settle(self) -> None:
        """Walk on until no candidate can be an ancestor of another, although clocks may differ by two bounds."""
        bound = round(2_000_000 * self._rows.settings.clock_bound_seconds)
        oldest = min(map(self._time, self._nearest())) - bound
        while self._queue and -self._queue[0][0] >= oldest:
            self._step()
