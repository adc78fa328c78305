"""The nearest common ancestor of two commits: over parents, and over the heads that were merged before.

Both histories are walked at once, newest commit first, each commit colored by where it was reached from. A commit that both
reach is a common ancestor; all below it is common too, but not nearest. Times only choose the order: a commit that is reached
once more from elsewhere is walked once more, so clocks that differ cost reads, and give no wrong answer.

    main   A - B - C --- M - D        M has merged F: the nearest of D and G is F, not B
               |         |
    dev        `- E - F -+- G

Commits are read in bulk: with the one that the walk has come to, those that the commits read so far name, newest first. Such
reading ahead changes no answer, for it never decides what is walked. Of what is read ahead no more waits unused than was walked
before, so a short walk reads next to nothing that it does not need, and a long one twice what it needs at most.

A restoration is a commit on top with an older state. If the target has one, the merge base may be among what it undid. A second walk
then finds the base as if the target had never had that: it goes from the restoration to the commit whose state it copied.

    main   A - B - M - R(B)   M has merged D, R undid it: the nearest of D and R is D, and B without what R undid
               |   |
    dev        `- D'
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from typing import NamedTuple

from headwater.catalogs.history.commit_meta import RestoredState, merged_heads, restored_state
from headwater.clock import Micros
from headwater.commits import Commit, CommitLog, Head, LogEnd, LogRange, read_log
from headwater.errors import ExpiredError, NotFoundError
from headwater.store import ObjectId, RealmReader, RealmStore, id_text

_INTO, _FROM, _COMMON = 1, 2, 4
_BOTH = _INTO | _FROM
_FOLLOWED = 1000
"""Commits that a target may have gained while a merge was prepared, before its base is looked for anew."""
_AHEAD = 500
"""Commits that are read ahead in one call, at most."""


@dataclass(frozen=True, slots=True)
class MergeBase:
    """The merge base of two commits.

    commit        None: before the first commit of all, when the target has none
    others        other merge bases (criss-cross merges), none an ancestor of another; the newest is used
    lost          collected commits beyond which neither history could be followed, where a nearer base may have been
    restorations  those that the target has had since, newest first, where ``earlier`` is another base
    earlier       the base that there would be without what these undid; None: before the first commit of all
    """

    commit: ObjectId | None
    others: tuple[ObjectId, ...] = ()
    lost: tuple[ObjectId, ...] = ()
    restorations: tuple[ObjectId, ...] = ()
    earlier: ObjectId | None = None


class _Node(NamedTuple):
    time: Micros
    tail: tuple[ObjectId, ...]
    merged: tuple[ObjectId, ...]
    restored: RestoredState | None


class MergeBaseFinder:
    """Finds the merge base of one source and a target that may move on meanwhile."""

    def __init__(self, rows: RealmStore, source: Head) -> None:
        self._rows = rows
        self._source = source
        self._known: _KnownBase | None = None

    def find_base(self, rows: RealmReader, head_id: ObjectId, head: Commit) -> MergeBase:
        """Find the base for a head of the target. A repeated call for a head on top of the earlier one costs little.

        rows          the rows that have the head and its ancestors, written or not
        raises        NotFoundError: the two have no commit in common · ExpiredError: or it was collected
        """
        known = self._known
        if known is not None and (known.head == head_id or _is_plainly_on(rows, head_id, head, known)):
            return known.base
        search = _AncestorSearch(rows)
        base = _without_undone(rows, search.find_nearest(head_id, self._source.id), search, head_id, self._source.id)
        self._known = _KnownBase(head_id, head.seq, base, search)
        return base


def _without_undone(rows: RealmReader, base: MergeBase, search: _AncestorSearch, into: ObjectId, source: ObjectId) -> MergeBase:
    """Add to a base what restorations of the target make of it. Unknown where a restored state was collected: then nothing."""
    restorations = search.restorations_of_target()
    if not restorations:
        return base
    try:
        earlier = _AncestorSearch(rows, restorations).find_nearest(into, source).commit
    except ExpiredError:
        return base
    except NotFoundError:  # what was restored is older than all that the two have in common
        earlier = None
    if earlier == base.commit:
        return base
    return replace(base, restorations=restorations, earlier=earlier)


def commits_since(head: Head, base: ObjectId | None, *, within: int) -> CommitLog:
    """The commits of one history that are not in that of a base, newest first, without those that merges brought.

    base          None: all of the history
    within        at most so many; then ``end`` of the log is ``BOUND``, and ``CUT`` where the history was cut
    """
    log = read_log(head.rows, head.id, stretch=LogRange(within=within))
    if base is None:
        return log
    search = _AncestorSearch(head.rows)
    with suppress(NotFoundError, ExpiredError):  # nothing in common: then all of it is told apart
        search.find_nearest(head.id, base)
    return _LogSince(log, search)


class _LogSince(CommitLog):
    """A log down to the first commit that a search found elsewhere, too."""

    def __init__(self, log: CommitLog, search: _AncestorSearch) -> None:
        super().__init__(self._taken(log, search), None)

    def _taken(self, log: CommitLog, search: _AncestorSearch) -> Iterator[Head]:
        for commit in log:
            if not search.is_of_target_alone(commit.id):
                self.end = LogEnd.UNTIL
                return
            yield commit
        self.end = log.end


class _KnownBase(NamedTuple):
    """The base that was found for a head of the target, and the search that found it."""

    head: ObjectId
    seq: int
    base: MergeBase
    search: _AncestorSearch


def _is_plainly_on(rows: RealmReader, head_id: ObjectId, head: Commit, known: _KnownBase) -> bool:
    """True if a head is the known one with commits on top that merged nothing and are not the source's: its base is unchanged."""
    if head.seq - known.seq > _FOLLOWED:
        return False
    while head.seq > known.seq and head.tail:
        distance = head.seq - known.seq
        if distance <= len(head.tail) and head.tail[distance - 1] != known.head:
            return False
        above = head.tail[: distance - 1]
        commits = [(head_id, head), *zip(above, rows.read_many(above, Commit), strict=True)]
        if not all(_is_plain(commit_id, commit, known.search) for commit_id, commit in commits):
            return False
        if distance <= len(head.tail):
            return True
        head_id, last = commits[-1]
        assert last is not None, "a commit that is not there is not plain"
        head = last
    return False


def _is_plain(commit_id: ObjectId, commit: Commit | None, search: _AncestorSearch) -> bool:
    """True if a commit is there, has a parent, merged and restored nothing, and was not reached from the source."""
    if commit is None or not commit.tail or merged_heads(commit) or restored_state(commit) is not None:
        return False
    return not search.is_of_source(commit_id)


class _AncestorSearch:
    """One walk over two histories.

    undoing       restorations that the walk leaves for the commit whose state they copied, not for their parent
    """

    def __init__(self, rows: RealmReader, undoing: Sequence[ObjectId] = ()) -> None:
        self._rows = rows
        self._undoing = frozenset(undoing)
        self._nodes: dict[ObjectId, _Node | None] = {}
        self._colors: dict[ObjectId, int] = {}
        self._queue: list[tuple[int, ObjectId]] = []
        self._waiting: set[ObjectId] = set()
        self._open = 0
        """How many of those that wait are not known to be below a common ancestor."""
        self._found: dict[ObjectId, None] = {}
        self._named: list[tuple[int, ObjectId, tuple[ObjectId, ...]]] = []
        """What the commits read so far name beneath them, perhaps read by now; that of the newest first."""

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

    def is_of_target_alone(self, commit_id: ObjectId) -> bool:
        return self._colors.get(commit_id, 0) == _INTO

    def restorations_of_target(self) -> tuple[ObjectId, ...]:
        """The restorations that only the target has, newest first."""
        nodes = ((commit_id, node) for commit_id, node in self._nodes.items() if self.is_of_target_alone(commit_id))
        return tuple(sorted((each for each, node in nodes if node is not None and node.restored), key=self._time, reverse=True))

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
            wanted = dict.fromkeys(wanted_id for wanted_id in block if wanted_id not in self._nodes)
            self._add_named(wanted)
            for wanted_id, commit in zip(wanted, self._rows.read_many(list(wanted), Commit), strict=True):
                self._note(wanted_id, commit)
        return self._nodes[commit_id]

    def _note(self, commit_id: ObjectId, commit: Commit | None) -> None:
        if commit is None:
            self._nodes[commit_id] = None
            return
        restored, tail = restored_state(commit), commit.tail
        if restored is not None and commit_id in self._undoing:
            tail = () if restored.commit is None else (restored.commit,)
        node = self._nodes[commit_id] = _Node(commit.time, tail, merged_heads(commit), restored)
        for block in (node.tail, *((merged,) for merged in node.merged)):
            if block and block[0] not in self._nodes:
                heappush(self._named, (-node.time, block[0], block))

    def _add_named(self, wanted: dict[ObjectId, None]) -> None:
        """Add the blocks that read commits name, as long as what was read and not reached is no more than what was reached."""
        # Commits are reached one after the other, and counted by their colors; what is wanted now is about to be.
        reached = len(self._colors)
        room = min(_AHEAD, 2 * reached - len(self._nodes) - len(wanted))
        while self._named and room > 0:
            block = [named for named in heappop(self._named)[2] if named not in self._nodes and named not in wanted]
            wanted.update(dict.fromkeys(block))
            room -= len(block)

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
