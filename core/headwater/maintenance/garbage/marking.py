"""Mark: everything in a realm that must stay, each with the first reason that holds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from uuid import UUID

from headwater.catalogs import committed_ids, content_ids
from headwater.clock import Micros, as_text
from headwater.commits import PINS, Collection, Cut, CutLines, Head, cut_time, newest_move, reach, read_cuts
from headwater.errors import ExpiredError, RefusedError, UnreadableError
from headwater.maintenance.garbage.listing import Listed, Scope
from headwater.maintenance.garbage.retention import Line, Why, kept
from headwater.store import Move, ObjectId, Reference, id_text

__all__ = ["Marker", "Origin", "check_time"]

_BYTES_PER_MARK = 120
"""What an entry of the exact set costs: a boxed 64-bit integer and its place in a dictionary."""
_REASONS = (Why.HEAD, Why.GRACE, Why.RETENTION, Why.RECORD)


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a kept commit was found."""

    reference: str
    commit: ObjectId
    why: Why


@dataclass(slots=True, kw_only=True)
class Marker:
    """The exact set of one realm's marked objects.

    now, reader_cutoff, writer_cutoff   fixed once, at the start
    trace         remember what pointed to each object, for explanations
    content       ids of all content that kept commits hold: of the oldest of each line, and of what the later ones put
    """

    scope: Scope
    now: Micros
    reader_cutoff: Micros
    writer_cutoff: Micros
    previous: Collection | None
    trace: bool = False
    marks: dict[ObjectId, Why] = field(default_factory=dict)
    cuts: dict[str, Cut] = field(default_factory=dict)
    origins: dict[ObjectId, Origin] = field(default_factory=dict)
    parents: dict[ObjectId, ObjectId] = field(default_factory=dict)
    content: set[UUID] = field(default_factory=set)

    def mark(self, rows: Iterable[tuple[Listed, Reference]]) -> None:
        """Mark what the references keep. May be called again with what was read later: it adds.

        raises        UnreadableError: a reference dangles, or something that is kept cannot be walked ·
                      RefusedError: more objects than memory allows, or a time that lies too far in the future
        """
        found: dict[Why, list[ObjectId]] = {why: [] for why in _REASONS}
        cuts = read_cuts(self.scope.rows, self.previous)
        for listed, row in rows:
            for line in self._lines(listed, row, cuts):
                self._walk(line, listed, row, found)
        if self.previous is not None and self.previous.cuts is not None:
            found[Why.RECORD].append(self.previous.cuts)
        for why, roots in found.items():
            self._reach(roots, why)

    def chain(self, object_id: ObjectId) -> list[ObjectId]:
        """From an object up to the commit that keeps it; needs ``trace``."""
        steps = [object_id]
        while steps[-1] in self.parents:
            steps.append(self.parents[steps[-1]])
        return steps

    def _lines(self, listed: Listed, row: Reference, cuts: CutLines) -> list[Line]:
        """The reference's own line, if it is alive, and those that it left within the grace."""
        policy = self.scope.policy
        slack = round(self.scope.rows.settings.commit_timeout_seconds * 1_000_000)
        left = list(row.moves)
        if row.deleted is not None and row.pointer is not None:
            left.append(Move(row.pointer, row.deleted))
        age = policy.content_age_seconds if listed.is_content else 0.0
        # what a longer grace would keep is garbage since the last collection
        cutoff = max(self.reader_cutoff, self.previous.reader_cutoff if self.previous else 0)

        def line(pointer: ObjectId, time: Micros | None) -> Line:
            return Line(
                name=row.name if time is None else f"{row.name}@{id_text(pointer)}",
                pointer=pointer,
                left=time,
                reader_cutoff=Micros(cutoff - slack),
                commits=0 if row.name == PINS else policy.content_commits if listed.is_content else policy.reference_commits,
                since=Micros(self.now - round(age * 1_000_000)) if age else self.now,
                cut=cut_time(self.scope.rows, row, cuts) if time is None else Micros(0),
            )

        lines = [line(pointer, time) for pointer, time in left if time >= cutoff - slack]
        if row.deleted is None and row.pointer is not None:
            lines.insert(0, line(row.pointer, None))
        return lines

    def _walk(self, line: Line, listed: Listed, row: Reference, found: dict[Why, list[ObjectId]]) -> None:
        oldest: Head | None = None
        head_seq, newest, is_new = 0, Micros(0), False
        try:
            for commit, why in kept(self.scope.rows, line):
                check_time(commit.commit.time, self.now, self.scope, f"commit {id_text(commit.id)} of reference {line.name!r}")
                found[why].append(commit.id)
                is_new = commit.id not in self.origins
                if is_new:
                    self.origins[commit.id] = Origin(line.name, commit.id, why)
                    self.content.update(committed_ids(commit) if listed.is_content else ())
                head_seq, newest = max(head_seq, commit.commit.seq), max(newest, commit.commit.time)
                oldest = commit
        except ExpiredError as fault:
            raise UnreadableError(
                f"reference {line.name!r} of realm {self.scope.rows.realm!r} dangles: its commit {id_text(line.pointer)} is not there;"
                " nothing is deleted until that is mended (`headwater fsck` tells more)"
            ) from fault
        if oldest is not None:
            self.cuts[line.name] = Cut(oldest.commit.time, line.pointer, head_seq, newest_move(row), newest)
            if is_new and listed.is_content:  # what the later ones hold, it holds as well, or they put it
                self.content.update(content_ids(oldest))

    def _reach(self, roots: list[ObjectId], why: Why) -> None:
        limit = self.scope.rows.settings.mark_exact_bytes // _BYTES_PER_MARK

        def mark(object_id: ObjectId, parent: ObjectId | None) -> bool:
            if object_id in self.marks:
                return False
            if len(self.marks) >= limit:
                raise RefusedError(
                    f"realm {self.scope.rows.realm!r} keeps more than {limit} objects, all that the memory for exact marking holds;"
                    " nothing is deleted: set HEADWATER_MARK_EXACT_BYTES higher"
                )
            self.marks[object_id] = why
            if self.trace and parent is not None:
                self.parents[object_id] = parent
            return True

        reach(self.scope.rows, roots, mark)


def check_time(time: Micros, now: Micros, scope: Scope, what: str) -> None:
    """Refuse to judge what lies further in the future than clocks may differ: a wrong clock would make ages meaningless.

    now           a moment that has passed: what is later is compared with the clock, as it may have been written meanwhile
    """
    bound = scope.rows.settings.clock_bound_seconds
    if time <= now + bound * 1_000_000:
        return
    now = scope.rows.clock.now()
    if time > now + bound * 1_000_000:
        raise RefusedError(
            f"{what} in realm {scope.rows.realm!r} has the time {as_text(time)}, which is more than {bound:.0f} s ahead of this machine's"
            f" {as_text(now)}: set the clocks right; nothing is deleted until then"
        )
