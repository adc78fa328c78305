"""How a branch or tag stands to another one, and filters of branches and tags.

What counts is the line of first parents, on which a commit's ``seq`` is its distance from the first commit: how far two lines go
together, and how many commits each has since. A commit names its last 20 ancestors, so one in twenty is read. Merges are no
part of it: a branch is still ahead by its own commits when they were merged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headwater.catalogs.filter_program import FilterExpression
from headwater.catalogs.filter_text import SCALAR
from headwater.catalogs.history.commit_meta import LogEntry
from headwater.catalogs.history.log_expression import COMMIT_FIELDS, EMPTY_COMMIT, commit_variables
from headwater.catalogs.registry import NamedRef, RefKind
from headwater.clock import Micros
from headwater.commits import Commit, Head
from headwater.store import ObjectId, id_text


@dataclass(frozen=True, slots=True)
class RefRelation:
    """How the history of a reference stands to that of its base.

    ahead             its commits that are not on the base's line
    behind            the base's commits that are not on its line
    common_ancestor   the newest commit on both lines; None: there is none, or it was collected
    total             the commits of its history, with collected ones
    is_apart          the two are known to share nothing but the beginning, before the first commit
    """

    ahead: int
    behind: int
    common_ancestor: ObjectId | None
    total: int
    is_apart: bool = False


def relate_heads(head: Head | None, base: Head | None) -> RefRelation:
    """Compare the histories of two commits; None: nothing was committed there."""
    total, base_total = (0 if commit is None else commit.commit.seq for commit in (head, base))
    if head is None or base is None:
        return RefRelation(total, base_total, None, total, is_apart=True)
    common = _common_ancestor(head, base)
    if common is None or isinstance(common, _Apart):
        return RefRelation(total, base_total, None, total, is_apart=common is not None)
    commit_id, seq = common
    return RefRelation(total - seq, base_total - seq, commit_id, total)


class _Line:
    """The known part of a line of first parents, from its head downwards."""

    def __init__(self, head: Head) -> None:
        self.lowest = head.commit.seq
        self.ids = {head.commit.seq: head.id}
        self.extend(head.commit)

    def extend(self, commit: Commit | None) -> None:
        """Add the ancestors that the lowest commit names. Without any the line ends, as it does where it was collected."""
        tail = () if commit is None else commit.tail
        self.ids.update({self.lowest - distance: commit_id for distance, commit_id in enumerate(tail, 1)})
        self.is_ended = not tail
        self.lowest -= len(tail)

    @property
    def lowest_id(self) -> ObjectId:
        return self.ids[self.lowest]


class _Apart:
    """Two lines that were followed to their first commits, and have none in common."""


def _common_ancestor(head: Head, base: Head) -> tuple[ObjectId, int] | _Apart | None:
    """The newest commit on both lines, with its seq. Where two lines meet they stay together, so the lowest known one decides.

    returns       None where a line was cut before they could meet
    """
    lines = (_Line(head), _Line(base))
    while True:
        meeting = max(line.lowest for line in lines)
        if lines[0].ids.get(meeting) is not None and lines[0].ids.get(meeting) == lines[1].ids.get(meeting):
            seq = max(seq for seq, commit_id in lines[0].ids.items() if lines[1].ids.get(seq) == commit_id)
            return lines[0].ids[seq], seq
        deeper = min(line.lowest for line in lines)
        behind = [line for line in lines if not line.is_ended and (line.lowest > deeper or meeting == deeper)]
        if not behind:
            return _Apart() if all(line.lowest == 1 for line in lines) else None
        commits = head.rows.read_many([line.lowest_id for line in behind], Commit)
        for line, commit in zip(behind, commits, strict=True):
            line.extend(commit)


@dataclass(frozen=True)
class ReferenceExpression(FilterExpression[NamedRef]):
    """A filter of branches and tags."""

    VARIABLES = {
        "ref": {"name": SCALAR, "hash": SCALAR, "type": SCALAR},
        "refType": SCALAR,
        "refMeta": {
            "numCommitsAhead": SCALAR,
            "numCommitsBehind": SCALAR,
            "commonAncestorHash": SCALAR,
            "numTotalCommits": SCALAR,
            "commitMetaOfHEAD": COMMIT_FIELDS,
        },
        "commit": COMMIT_FIELDS,
    }
    SAMPLE = NamedRef(RefKind.BRANCH, "main", None, Micros(0))

    def variables_of(self, ref: NamedRef, /) -> dict[str, Any]:
        return _variables(ref, None, None)

    @property
    def asks_commit(self) -> bool:
        """True if ``chooses`` needs the commit of a reference."""
        return self.program.names("commit") or self.program.names("refMeta")

    @property
    def asks_relation(self) -> bool:
        """True if ``chooses`` needs how a reference stands to the default branch."""
        return self.program.names("refMeta")

    def chooses(self, ref: NamedRef, /, commit: LogEntry | None = None, relation: RefRelation | None = None) -> bool:
        """True if the filter is true for a branch or tag; False also where it cannot be evaluated.

        commit        that it is at; None: it has none, or nobody asks for it
        relation      to the default branch; None: as above
        """
        return self.program.is_true(_variables(ref, commit, relation))


def _variables(ref: NamedRef, commit: LogEntry | None, relation: RefRelation | None) -> dict[str, Any]:
    at = EMPTY_COMMIT if commit is None else commit_variables(commit)
    kind, known = ref.kind.upper(), relation or RefRelation(0, 0, None, 0)
    common = known.common_ancestor
    meta = {
        "numCommitsAhead": known.ahead,
        "numCommitsBehind": known.behind,
        "commonAncestorHash": "" if common is None else id_text(common),
        "numTotalCommits": known.total,
        "commitMetaOfHEAD": at,
    }
    named = {"name": ref.name, "hash": ref.hash or "", "type": kind}
    return {"ref": named, "refType": kind, "refMeta": meta, "commit": at}
