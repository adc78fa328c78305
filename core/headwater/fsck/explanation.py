"""Explain why an object is still there: the path from a reference to it, and when it will be deleted, as far as that is known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from headwater.clock import Micros, as_text
from headwater.commits import Commit, CommitPin
from headwater.errors import ExpiredError, HeadwaterError, NotFoundError, UnavailableError
from headwater.fsck.fsck_findings import use_text
from headwater.fsck.object_walk import ObjectUse, held_objects, read_with_faults
from headwater.gc.collector import open_marker
from headwater.gc.live_set import LiveSet
from headwater.gc.mark_phase import LiveMarker
from headwater.gc.retention import (
    CollectionScope,
    HistoryLine,
    KeepReason,
    LinePosition,
    ReferenceOrigin,
    describe_reference,
    kept_commits,
    open_scope,
)
from headwater.settings import duration_text
from headwater.store import (
    ObjectId,
    ObjectRow,
    Store,
    StoredObject,
    UnknownObject,
    id_text,
    is_fixed,
    registered_type,
    unknown_pointers_reason,
)
from headwater.tasks import TaskQueue

_BATCH = 100
_MESSAGE = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The verdict on one object.

    why           the reason in one word, as collections count it; empty for garbage
    chain         from the keeping commit down to the object, each as "type id"; empty when nothing keeps it
    path          the chain in words, starting at the reference: which commit, which index, which key
    goes          the first time at which a collection deletes it, if nothing else happens; None if unknown
    """

    realm: str
    object_id: str
    type: str
    is_kept: bool
    sentence: str
    chain: tuple[str, ...] = ()
    path: tuple[str, ...] = ()
    why: str = ""
    goes: Micros | None = None


@dataclass(frozen=True, slots=True)
class _Holder:
    """A kept commit that reaches the object, and the way. ``is_cut``: it lies before the line's cut, and only the grace keeps it."""

    line: HistoryLine
    place: LinePosition
    why: KeepReason
    way: tuple[ObjectId, ...]
    is_cut: bool


def explain(store: Store, realm_id: str, object_id: ObjectId) -> Explanation:
    """Judge one object as a collection that starts now would. Writes nothing.

    raises        NotFoundError when the object is not there; CorruptionError when a list of references cannot be read
    """
    scope = open_scope(store, realm_id)
    [row] = store.backend.read_objects(scope.rows.key, [(object_id, 0)])
    if row is None:
        raise NotFoundError(f"object {id_text(object_id)} is not in realm {realm_id!r}: it was collected, or never was")
    marker = open_marker(scope)
    if is_fixed(object_id):
        return _explained(scope, row, KeepReason.FIXED, "it stands under a fixed id, which is never collected")
    if _is_on_record(marker, object_id):
        return _explained(scope, row, KeepReason.RECORD, "the record of the last collection needs it")
    search = _Search(scope, marker, object_id)
    holders = search.holders()
    if holders:
        return _held_by(store, scope, row, holders)
    if name := search.plain_holder():
        sentence = f"reference {name!r}, which is none of Headwater's own, points to it"
        return _explained(scope, row, KeepReason.HEAD, sentence)
    return _unheld(scope, row, marker, search.faults)


def _explained(
    scope: CollectionScope, row: ObjectRow, why: KeepReason | None, sentence: str, *, goes: Micros | None = None
) -> Explanation:
    return Explanation(
        realm=scope.rows.realm,
        object_id=id_text(row.id),
        type=row.type,
        is_kept=why is not None,
        sentence=sentence,
        why="" if why is None else why.value,
        goes=goes,
    )


def _is_on_record(marker: LiveMarker, object_id: ObjectId) -> bool:
    record = marker.previous
    if record is None:
        return False
    return object_id == record.cuts or (record.sweep is not None and object_id in record.sweep.marks)


def _unheld(scope: CollectionScope, row: ObjectRow, marker: LiveMarker, faults: Sequence[str]) -> Explanation:
    """Explain an object that nothing reaches: it is young, of a type that cannot be judged, or garbage."""
    stops = f"; but a collection deletes nothing as long as {faults[0]}" if faults else ""
    if row.created > marker.writer_cutoff:
        after = Micros(row.created + _micros(scope.rows.settings.writer_grace_seconds))
        sentence = f"nothing keeps it; it is too young, and goes with the first collection after {as_text(after)}{stops}"
        return _explained(scope, row, KeepReason.YOUNG, sentence, goes=after)
    if registered_type(row.type) is None:
        sentence = f"nothing leads to it, but this release does not know its type {row.type!r}, and so leaves it alone"
        return _explained(scope, row, KeepReason.UNKNOWN, sentence)
    return _explained(scope, row, None, f"nothing keeps it: it goes with the next collection{stops}", goes=marker.now)


def _held_by(store: Store, scope: CollectionScope, row: ObjectRow, holders: Sequence[_Holder]) -> Explanation:
    """Explain an object that commits hold. The first reason counts; the holder that lasts longest gives the time of deletion."""
    first = min(holders, key=lambda holder: list(KeepReason).index(holder.why))
    ends = [_end(scope, holder) for holder in holders]
    last = max((end for end, _ in ends), default=Micros(0))
    further = max((commits for _, commits in ends), default=0)
    is_open = any(holder.why is KeepReason.HEAD for holder in holders)
    goes = None if is_open or further else max(last, Micros(row.created + _micros(scope.rows.settings.writer_grace_seconds)))
    reference = describe_reference(scope.rows, first.line.name)
    grace = duration_text(scope.rows.settings.reader_grace_seconds)
    sentence = {
        KeepReason.HEAD: f"the commit is the head of {reference}",
        KeepReason.GRACE: f"the commit was the head of {reference} within the readers' grace of {grace}",
    }.get(first.why, f"the retention of history keeps the commit on {reference}")
    pin = _pinned(store, scope, first.way)
    return Explanation(
        realm=scope.rows.realm,
        object_id=id_text(row.id),
        type=row.type,
        is_kept=True,
        sentence=sentence + (pin or _until(is_open, further, last, goes)),
        chain=tuple(_shown(scope.rows.find_object(step, StoredObject), step) for step in first.way),
        path=(reference, *_path(scope, first.way)),
        why=first.why.value,
        goes=goes,
    )


def _end(scope: CollectionScope, holder: _Holder) -> tuple[Micros, int]:
    """When a commit stops being kept whatever is committed on top, and for how many further commits it is kept beyond that."""
    line, place, settings = holder.line, holder.place, scope.rows.settings
    if place.superseded is None:
        return Micros(0), 0
    slack = settings.reader_grace_seconds + settings.commit_timeout_seconds
    end = Micros(place.superseded + _micros(slack))
    if line.left is not None or holder.is_cut:
        return end, 0
    now = scope.rows.clock.now()
    return Micros(max(end, place.superseded + max(now - line.since, 0))), max(line.commits - place.position, 0)


def _until(is_open: bool, further: int, last: Micros, goes: Micros | None) -> str:
    if is_open:
        return ""
    if further:
        return f": until {further} more commits are made there, and not before {as_text(last)}"
    return "" if goes is None else f": until {as_text(goes)}"


def _pinned(store: Store, scope: CollectionScope, way: Sequence[ObjectId]) -> str:
    """The task whose pin keeps the object, if a pin is on the way."""
    for step in way:
        pin = scope.rows.find_object(step, StoredObject)
        if isinstance(pin, CommitPin):
            try:
                task = TaskQueue(store).read_task(pin.owner).value
                who = f"task {id_text(pin.owner)} ({task}, {task.state})"
            except NotFoundError:
                who = f"task {id_text(pin.owner)}, which is gone"
            return f": {who} has pinned commit {id_text(pin.commit)} since {as_text(pin.time)}, until it ends and for the readers' grace"
    return ""


def _path(scope: CollectionScope, way: Sequence[ObjectId]) -> Iterator[str]:
    """Describe each object of a way in words, with the index and the key under which its parent holds it."""
    way_in, before = ObjectUse("", b""), None
    for step in way:
        value = scope.rows.find_object(step, StoredObject)
        text = _shown(value, step)
        if isinstance(value, Commit):
            message = value.message if len(value.message) <= _MESSAGE else value.message[:_MESSAGE] + "..."
            text += f": seq {value.seq}, {as_text(value.time)}" + (f", {message!r}" if message else "")
            way_in = ObjectUse("", b"")
        elif before is not None:
            use = next((use for use, target in held_objects(before, way_in) if target == step), None)
            if use is not None:
                way_in = use
                text += _used(use)
        yield text
        before = value


def _used(use: ObjectUse) -> str:
    if use.of:
        return f": {use_text(use)}"
    return f": key {use_text(use)}" if use.key else f": of index {use.index!r}" if use.index else ""


def _shown(value: StoredObject | None, object_id: ObjectId) -> str:
    name = value.name if isinstance(value, UnknownObject) else "object" if value is None else value.type_name
    return f"{name} {id_text(object_id)}"


def _micros(seconds: float) -> int:
    return round(seconds * 1_000_000)


class _Search:
    """Searches for one object below the kept commits. What does not reach it is walked only once.

    faults        objects on the way that could not be read; a collection would refuse because of them
    """

    def __init__(self, scope: CollectionScope, marker: LiveMarker, wanted: ObjectId) -> None:
        self._scope = scope
        self._marker = marker
        self._wanted = wanted
        self._barren = LiveSet(scope.rows.settings.mark_exact_bytes)
        self._next: dict[ObjectId, ObjectId] = {}
        """The next step towards the object, by the id of each object that is known to reach it."""
        self.faults: list[str] = []

    def holders(self) -> list[_Holder]:
        """One head if any reaches the object; otherwise the newest such commit of every line."""
        lines = list(self._marker.all_lines(self._scope.find_references()))
        heads = (holder for line in lines for holder in self._of(line, heads=True))
        head = next(heads, None)
        if head is not None:
            return [head]
        return [holder for line in lines for holder in self._of(line, heads=False)]

    def plain_holder(self) -> str:
        """A reference of an extension, or of unknown kind, that reaches the object without a commit; empty if none does."""
        return next(
            (
                row.name
                for listed, row in self._scope.find_references()
                if listed.origin is not ReferenceOrigin.OWN
                and any(self._way(root) for root in self._marker.plain_roots(listed, row))
            ),
            "",
        )

    def _of(self, line: HistoryLine, *, heads: bool) -> Iterator[_Holder]:
        """The newest commit of a line that reaches the object: its head or an earlier one."""
        try:
            for commit, why, place in kept_commits(self._scope.rows, line):
                if (why is KeepReason.HEAD) is not heads:
                    if heads:
                        return
                    continue
                way = self._way(commit.id)
                if way:
                    yield _Holder(line, place, why, way, line.cut.lets_go(commit.commit))
                    return
        except ExpiredError:
            self.faults.append(f"reference {line.name!r} dangles: its commit {id_text(line.pointer)} is not there")
        except UnavailableError:
            raise  # whether this reference keeps it is unknown, so "nothing keeps it" would be a guess
        except HeadwaterError as fault:
            self.faults.append(str(fault))

    def _way(self, root: ObjectId) -> tuple[ObjectId, ...]:
        """The way from a commit to the object; empty when the commit does not reach it."""
        if root == self._wanted:
            return (root,)
        parents: dict[ObjectId, ObjectId] = {}
        waiting = [] if self._barren.is_exact(root) else [root]
        walked: list[ObjectId] = []
        while waiting:
            batch, waiting = waiting[-_BATCH:], waiting[:-_BATCH]
            walked += batch
            for object_id, value in read_with_faults(self._scope.rows, batch):
                if not isinstance(value, StoredObject):
                    self.faults.append(str(value or f"object {id_text(object_id)} is referred to, but not there"))
                    continue
                if why := unknown_pointers_reason(value):
                    self.faults.append(f"object {id_text(object_id)} {why}")
                targets = list(value.points_to())
                goal = next((target for target in targets if target == self._wanted or target in self._next), None)
                if goal is not None:
                    return self._found(root, object_id, goal, parents)
                fresh = [child for child in self._barren.unmarked(targets) if child not in parents and child != root]
                parents.update(dict.fromkeys(fresh, object_id))
                waiting += fresh
        self._barren.mark_many(walked, KeepReason.HEAD)
        return ()

    def _found(self, root: ObjectId, last: ObjectId, goal: ObjectId, parents: dict[ObjectId, ObjectId]) -> tuple[ObjectId, ...]:
        step, following = last, goal
        while True:
            self._next[step] = following
            if step == root:
                break
            step, following = parents[step], step
        way = [root]
        while way[-1] != self._wanted:
            way.append(self._next[way[-1]])
        return tuple(way)
