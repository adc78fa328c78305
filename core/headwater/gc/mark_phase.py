"""The mark phase: mark every object of a realm that must stay, each with the first reason that holds.

Commits are marked in the order of the reasons: heads, then the readers' grace, then retention. Branches share most of their history,
so some commits of each line remember which line walked them, and the next line continues where that one ended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from headwater.catalogs import ContentVisit
from headwater.clock import Micros, as_text
from headwater.commits import (
    COLLECTION_ID,
    UNCUT,
    CollectionRecord,
    Commit,
    CutLines,
    Head,
    HistoryCut,
    ReachabilityWalk,
    find_cut_point,
    is_note_collected,
    left_line_name,
    newest_move,
    read_commit,
    read_cuts,
)
from headwater.errors import CorruptionError, ExpiredError, RefusedError
from headwater.gc.live_set import ContentIdSet, LiveSet
from headwater.gc.retention import (
    CollectionScope,
    HistoryLine,
    KeepReason,
    LinePosition,
    ReferenceOrigin,
    ScopeEntry,
    kept_commits,
)
from headwater.store import ObjectId, Reference, ReferenceMove, StoredObject, id_text, is_note, unknown_pointers_reason

_REASONS = (KeepReason.HEAD, KeepReason.GRACE, KeepReason.RETENTION)
"""The order of marking: each object gets the first reason that holds."""
_NEVER = Micros(0)
_WAITING = 5000
"""How many ids wait before they are walked, so that commits of a line are walked in blocks."""
_LANDMARK = 16
"""One in so many commits of a line remembers which line walked it."""
_RECENT = 50_000
"""How many leaves are remembered exactly beyond the budget: neighbouring commits point to the same leaves."""


@dataclass(frozen=True, slots=True)
class CommitOrigin:
    """Where a kept commit was found."""

    reference: str
    commit: ObjectId
    why: KeepReason


_KeptState = tuple[ObjectId | None, Micros | None, tuple[ReferenceMove, ...]]


def _kept_state(row: Reference) -> _KeptState:
    """Everything of a reference that says what it keeps."""
    # Not its version: the second marking follows a raise of every version, and walks only what else has changed.
    return row.pointer, row.deleted, tuple(row.moves)


@dataclass(slots=True)
class _Stretch:
    """A history line, and how far down it was walked.

    place         the next commit to look at; None once all that stay were walked
    oldest        the place of the oldest commit that stays so far, with its sound time and seq
    is_oldest_new whether no other line had that commit before
    """

    line: HistoryLine
    listed: ScopeEntry
    row: Reference
    place: LinePosition | None
    oldest: LinePosition | None = None
    oldest_time: Micros = _NEVER
    oldest_seq: int = 0
    is_oldest_new: bool = False
    head_seq: int = 0
    newest: Micros = _NEVER

    def keeps_what(self, other: _Stretch, why: KeepReason) -> bool:
        """Whether this line keeps, for that reason, everything that the other one keeps of a history that they share."""
        mine, its = self.line, other.line
        if why is KeepReason.GRACE:
            return mine.reader_cutoff <= its.reader_cutoff
        is_as_long = self.head_seq - mine.commits <= other.head_seq - its.commits and mine.since <= its.since
        return is_as_long and mine.left is None and mine.cut.time <= its.cut.time


@dataclass(slots=True, kw_only=True)
class LiveMarker:
    """Marks all objects of one realm that stay.

    now, reader_cutoff, writer_cutoff   fixed once, at the start
    trace         remember what pointed to each object and where each commit was found, for explanations; takes much memory
    expected      an estimate of how many objects will be marked: the filter is sized by it
    look          called often during the marking; may raise to end it
    content       the ids of all content that kept commits hold: what the oldest of each line holds, and what later ones put
    """

    scope: CollectionScope
    now: Micros
    reader_cutoff: Micros
    writer_cutoff: Micros
    previous: CollectionRecord | None
    trace: bool = False
    expected: int = 0
    look: Callable[[], None] = lambda: None
    marks: LiveSet = field(init=False)
    cuts: dict[str, HistoryCut] = field(default_factory=dict)
    origins: dict[ObjectId, CommitOrigin] = field(default_factory=dict)
    parents: dict[ObjectId, ObjectId] = field(default_factory=dict)
    content: ContentIdSet = field(default_factory=ContentIdSet)
    # Invariant: the commits that some line keeps, exactly: whether a line is the first to have one decides whose content it adds.
    _walked: LiveSet = field(init=False)
    _contents: ContentVisit = field(init=False)
    # Invariant: by name, what a reference said when all that it keeps had been marked. Written after the walk, never before.
    _marked: dict[str, _KeptState] = field(default_factory=dict)
    _landmarks: dict[ObjectId, _Stretch] = field(default_factory=dict)
    # Invariant: what the commit that was marked last points to, all of which was pushed.
    _neighbours: set[ObjectId] = field(default_factory=set)
    # Invariant: leaves that were settled; nothing that points further, for what is in here is not walked.
    _recent: set[ObjectId] = field(default_factory=set)
    _why: KeepReason = KeepReason.HEAD

    def __post_init__(self) -> None:
        settings = self.scope.rows.settings
        self.marks = LiveSet(
            settings.mark_exact_bytes,
            expected=self.expected,
            fpp=settings.filter_fpp,
            refuse_fpp=settings.filter_refuse_fpp,
            salt=self.now,  # another salt for each run: garbage that one run keeps by mistake goes with the next
        )
        self._walked = LiveSet(settings.mark_exact_bytes)
        visited = LiveSet(settings.mark_exact_bytes)
        cold = self.scope.rows.without_cache()
        self._contents = ContentVisit(
            cold, is_new=lambda object_id: visited.mark(object_id, KeepReason.HEAD), was_met=visited.is_exact
        )

    def mark(self, rows: Iterable[tuple[ScopeEntry, Reference]]) -> None:
        """Mark what the references keep. A second call, with rows that were read later, adds what has changed since.

        raises        CorruptionError: a reference dangles, or something that is kept cannot be walked ·
                      RefusedError: a time that lies too far in the future
        """
        if self.previous is not None:
            self._check_known(COLLECTION_ID, self.previous)
        cuts = read_cuts(self.scope.rows, self.previous)
        rows = [(listed, row) for listed, row in rows if self._marked.get(row.name) != _kept_state(row)]
        walk = ReachabilityWalk(self.scope.rows, self)
        self._mark_lines([entry for entry in rows if entry[0].origin is ReferenceOrigin.OWN], cuts, walk)
        for listed, row in rows:
            if listed.origin is not ReferenceOrigin.OWN:
                self._mark_other(listed, row, cuts, walk)
        # The last run's cuts stay as well: somebody may have read the record that names them just now.
        if self.previous is not None and self.previous.cuts is not None:
            self._why = KeepReason.RECORD
            walk.push([self.previous.cuts], None)
            self._run(walk)
        # Only now: a marking that was ended by an error must not count as done for any of these.
        self._marked |= {row.name: _kept_state(row) for _, row in rows}

    def _mark_other(self, listed: ScopeEntry, row: Reference, cuts: CutLines, walk: ReachabilityWalk) -> None:
        """Mark what a reference keeps that is not Headwater's own. It may point to any object, perhaps of a type that cannot be walked."""
        try:
            self._why = KeepReason.HEAD
            walk.push(self.plain_roots(listed, row), None)
            self._run(walk)
            self._mark_lines([(listed, row)], cuts, walk)
        except CorruptionError as fault:
            who = (
                "of an extension" if listed.origin is ReferenceOrigin.EXTENSION else "of a kind that this release does not know"
            )
            raise CorruptionError(
                f"reference {row.name!r} of realm {self.scope.rows.realm!r}, {who}: {fault}; install the package that made it, or use the"
                " release that did"
            ) from fault

    def plain_roots(self, listed: ScopeEntry, row: Reference) -> list[ObjectId]:
        """What such a reference points to, or left within the grace, that is not a commit."""
        kinds = self._kinds(listed, row)
        return [pointer for pointer in self._pointers(row) if kinds.get(pointer) not in (None, Commit.type_name)]

    def _pointers(self, row: Reference) -> list[ObjectId]:
        """Where a reference points, and what it left since ``kept_since``."""
        left = [move.pointer for move in row.moves if move.time >= self.kept_since]
        is_kept = row.pointer is not None and (row.deleted is None or row.deleted >= self.kept_since)
        return [*([row.pointer] if is_kept and row.pointer is not None else []), *left]

    def _kinds(self, listed: ScopeEntry, row: Reference) -> dict[ObjectId, str | None]:
        """The types of what a reference points to, None where there is no object; empty for listed references of Headwater's own."""
        if listed.origin is ReferenceOrigin.OWN and not listed.is_unlisted:
            return {}
        pointers = self._pointers(row)
        read = self.scope.rows.read_pointing(pointers) if pointers else []
        return {pointer: None if seen is None else seen.type for pointer, seen in zip(pointers, read, strict=True)}

    def _mark_lines(self, rows: Sequence[tuple[ScopeEntry, Reference]], cuts: CutLines, walk: ReachabilityWalk) -> None:
        """Mark the commits of references that stay, and all that they lead to."""
        self._landmarks.clear()  # an earlier call walked its lines to their ends: a line that lands there now may keep less
        stretches = [
            _Stretch(line, listed, row, LinePosition(line.pointer, 0, line.left))
            for listed, row in rows
            for line in self.lines(listed, row, cuts)
        ]
        for why in _REASONS:
            self._why = why
            stretches.sort(key=lambda stretch: -stretch.head_seq)  # a line that keeps less of a shared history comes first
            for stretch in stretches:
                self._descend(stretch, walk)
            self._run(walk)
        for stretch in stretches:
            self._finish(stretch)

    def _check_known(self, object_id: ObjectId, value: StoredObject) -> None:
        """Refuse an object that a later release wrote: it may point to objects that this release does not see."""
        if why := unknown_pointers_reason(value):
            raise CorruptionError(
                f"object {id_text(object_id)} of realm {self.scope.rows.realm!r} {why}; nothing of the realm is deleted: use the"
                " release that wrote it"
            )

    def unseen(self, object_ids: Sequence[ObjectId]) -> list[ObjectId]:
        unmarked = self.marks.unmarked(object_ids)
        return [object_id for object_id in unmarked if object_id not in self._recent] if self._recent else unmarked

    def settle(self, object_ids: Sequence[ObjectId], *, are_leaves: bool) -> None:
        self.look()
        # Exactly, whatever the budget says: only leaves may go to the filter (see ``LiveSet``).
        if not are_leaves:
            self.marks.mark_many(object_ids, self._why)
            return
        self.marks.mark_leaves(object_ids, self._why)
        if self.marks.is_full:
            if len(self._recent) > _RECENT:
                self._recent.clear()
            self._recent.update(object_ids)

    def note(self, targets: Sequence[ObjectId], parent: ObjectId | None) -> None:
        if self.trace and parent is not None:
            for target in targets:
                self.parents.setdefault(target, parent)

    def chain(self, object_id: ObjectId) -> list[ObjectId]:
        """The path from an object up to the commit that keeps it. Needs ``trace``."""
        steps = [object_id]
        while steps[-1] in self.parents:
            steps.append(self.parents[steps[-1]])
        return steps

    def all_lines(self, rows: Iterable[tuple[ScopeEntry, Reference]]) -> Iterator[HistoryLine]:
        """The history lines of all these references."""
        cuts = read_cuts(self.scope.rows, self.previous)
        for listed, row in rows:
            yield from self.lines(listed, row, cuts)

    @property
    def kept_since(self) -> Micros:
        """What was HEAD by its recorded times at this moment or later stays."""
        # Earlier than the cut-off by the time-out: a commit may take effect that long after its own time. But never earlier than
        # what the last run kept: a longer grace or time-out would ask for commits that are deleted already.
        slack = round(self.scope.rows.settings.commit_timeout_seconds * 1_000_000)
        return Micros(max(self.reader_cutoff - slack, self.previous.gone_before if self.previous else 0))

    def lines(self, listed: ScopeEntry, row: Reference, cuts: CutLines) -> list[HistoryLine]:
        """The reference's own line if it is alive, and a line for each pointer that it left within the grace."""
        commits, age = self.scope.policy.history_kept(listed)
        credible, kept_since = self.scope.rows.credible_until(self.scope.rows.clock.now()), self.kept_since
        left = [move for move in row.moves if move.time >= kept_since and not self._was_let_go(move, row, cuts)]
        if row.deleted is not None and row.pointer is not None and row.deleted >= kept_since:
            left.append(ReferenceMove(row.pointer, row.deleted))
        kinds = self._kinds(listed, row)

        def is_line(pointer: ObjectId) -> bool:
            """Whether there is a history to walk. Of an own reference in no list an earlier release may have collected all."""
            kind = kinds.get(pointer, Commit.type_name)
            return kind == Commit.type_name or (kind is None and listed.origin is not ReferenceOrigin.OWN)

        def line(pointer: ObjectId, time: Micros | None) -> HistoryLine:
            return HistoryLine(
                name=row.name if time is None else left_line_name(row.name, pointer),
                pointer=pointer,
                left=time,
                reader_cutoff=kept_since,
                commits=commits,
                since=Micros(self.now - round(age * 1_000_000)) if age else self.now,
                cut=find_cut_point(self.scope.rows, row, cuts) if time is None else UNCUT,
                loaded=self.scope.loaded,
                credible=credible,
            )

        lines = [line(pointer, time) for pointer, time in left if is_line(pointer)]
        if row.deleted is None and row.pointer is not None and is_line(row.pointer):
            lines.insert(0, line(row.pointer, None))
        return lines

    def _was_let_go(self, move: ReferenceMove, row: Reference, cuts: CutLines) -> bool:
        """Whether a note names a commit that was garbage before: its commit took effect after the readers' grace."""
        if not is_note(move):
            return False
        commit = self.scope.rows.find_object(move.pointer, Commit)
        return commit is None or is_note_collected(row, move, commit, find_cut_point(self.scope.rows, row, cuts), cuts)

    def _descend(self, stretch: _Stretch, walk: ReachabilityWalk) -> None:
        """Mark the commits of a line that stay for the current reason, down to the first that stays for a later one."""
        while stretch.place is not None:
            try:
                if self._is_down(stretch, walk):
                    return
            except ExpiredError as fault:
                raise CorruptionError(
                    f"reference {stretch.line.name!r} of realm {self.scope.rows.realm!r} dangles: its commit"
                    f" {id_text(stretch.place.commit)} is not there; nothing is deleted until that is mended"
                    " (`headwater fsck` tells more)"
                ) from fault

    def _is_down(self, stretch: _Stretch, walk: ReachabilityWalk) -> bool:
        """Walk down without a leap. Returns False after a leap to another place, where the caller goes on."""
        for commit, why, place in kept_commits(self.scope.rows, stretch.line, stretch.place):
            stretch.place = place
            if why is not self._why:
                return True
            self._keep(commit, stretch, walk)
            if walk.waiting > _WAITING:
                self._run(walk)
            landing = self._landing(commit, stretch)
            if landing is not None:
                stretch.place = landing
                return False
        stretch.place = None
        return True

    def _landing(self, commit: Head, stretch: _Stretch) -> LinePosition | None:
        """Where to go on if another line was walked from here: at its oldest commit that stays, if this line keeps that one too.

        Branches share most of their history. Some commits remember which line walked them, so that shared history is walked once.
        """
        seq, position = commit.commit.seq, 0 if stretch.oldest is None else stretch.oldest.position
        # A leap skips commits: it may only skip those that the other line has marked, and that this line would keep as well.
        if self._why is KeepReason.HEAD or seq % _LANDMARK:
            return None
        other = self._landmarks.setdefault(commit.id, stretch)
        if other is stretch or other.oldest is None or other.oldest_seq >= seq or not stretch.keeps_what(other, self._why):
            return None
        return other.oldest._replace(position=position + seq - other.oldest_seq)

    def _keep(self, commit: Head, stretch: _Stretch, walk: ReachabilityWalk) -> None:
        self.look()
        assert stretch.place is not None
        value, name = commit.commit, stretch.line.name
        time = stretch.line.sound_time(value, stretch.place.superseded)
        # Before it is marked: a time that lies ahead makes every age below it meaningless.
        check_not_ahead(time, self.now, self.scope, f"commit {id_text(commit.id)} of reference {name!r}")
        stretch.head_seq, stretch.newest = max(stretch.head_seq, value.seq), max(stretch.newest, time)
        stretch.oldest, stretch.oldest_time, stretch.oldest_seq = stretch.place, time, value.seq
        stretch.is_oldest_new = self._walked.mark(commit.id, self._why)
        if stretch.is_oldest_new:
            if self.trace:
                self.origins[commit.id] = CommitOrigin(name, commit.id, self._why)
            if stretch.listed.is_content:
                self.content.add_ids(self._contents.put_ids(commit))
        self.parents.pop(commit.id, None)  # it stays by itself
        if self.marks.mark(commit.id, self._why):
            self._check_known(commit.id, value)
            targets = set(value.points_to())
            walk.push(targets - self._neighbours, commit.id)
            self._neighbours = targets

    def _run(self, walk: ReachabilityWalk) -> None:
        try:
            walk.run()
        except CorruptionError as fault:
            raise CorruptionError(
                f"{fault}; nothing of the realm is deleted until that is mended (`headwater fsck` tells which references need it)"
            ) from fault

    def _finish(self, stretch: _Stretch) -> None:
        """Note where a line that was walked to its end is cut, and the content that its oldest commit holds."""
        if stretch.oldest is None:
            return
        line, row = stretch.line, stretch.row
        self.cuts[line.name] = HistoryCut(
            time=stretch.oldest_time,
            head=line.pointer,
            seq=stretch.head_seq,
            moved=newest_move(row),
            newest=stretch.newest,
            oldest=stretch.oldest_seq,
        )
        if stretch.is_oldest_new and stretch.listed.is_content:  # the later commits hold the same, or what they have put
            self.content.add_ids(self._contents.held_ids(read_commit(self.scope.rows, stretch.oldest.commit)))


def check_not_ahead(time: Micros, now: Micros, scope: CollectionScope, what: str) -> None:
    """Refuse a time that lies further in the future than clocks may differ: a wrong clock would make ages meaningless.

    now           a moment that has passed; a later time is compared with the clock, because it may have been written since
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
