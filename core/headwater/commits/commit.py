"""The commit: as it is stored, the indexes that hold at it, the ways to it, and the transaction in which a change makes one.

A commit carries its indexes, unless it is an inner member of a group: commits that were published together. Of a group only the
last member carries indexes; the others are read as the indexes beneath the group and the operations of its members from there on.

    base            carries indexes (or is the inner member of a group that a branch was put on)
      depth 1       operations
      depth 2       operations      reads as: base, the operations of depth 1, its own
      last, 0       carries indexes

A ``Transaction`` is what a change sees and edits: the head, its indexes, and the objects that it adds.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar, cast

import msgspec

from headwater.clock import Clock, Micros
from headwater.commits.gc_record import read_collection
from headwater.commits.staged_objects import StagedObjects
from headwater.errors import CorruptionError, ExpiredError, RefusedError, UnknownOutcomeError
from headwater.index import Index, IndexContainer, IndexEditor, IndexLimits, IndexValue, NewIndex
from headwater.settings import Settings
from headwater.store import (
    ObjectId,
    RealmId,
    RealmKey,
    RealmReader,
    RealmStore,
    Reference,
    StoredObject,
    Versioned,
    id_text,
    object_type,
)

_LOOKS = 3
TAIL = 20
"""How many ancestors a commit names, so that a walk reads them in one go."""


class Operation(msgspec.Struct, frozen=True, omit_defaults=True):
    """One change of one key of one index: put (with what it holds now) or removed."""

    index: str
    key: bytes
    object_id: ObjectId | None = None
    data: bytes = b""
    removed: bool = False

    @property
    def value(self) -> IndexValue | None:
        """What the key holds now; None when it was removed."""
        return None if self.removed else IndexValue(self.object_id, self.data)


@object_type("commit", compressed=False)
class Commit(StoredObject, frozen=True, kw_only=True):
    """One step of a reference's history: what it changed (``operations``) and what holds now (``indexes``).

    seq           1 for the first, then one more each
    tail          ids of up to 20 ancestors, nearest first; of one that mends the time, the parent's alone
    time          microseconds since 1970; later than the parent's, but for a commit that mends the time (see ``commit_log``)
    indexes       empty for an inner member of a group
    base          an inner member's: the commit beneath its group, over whose indexes its operations hold; None where the group
                  begins the history
    depth         an inner member's: how many commits there are from the base, exclusive, to this one, inclusive; otherwise 0
    """

    seq: int
    tail: tuple[ObjectId, ...] = ()
    time: Micros
    message: str = ""
    properties: dict[str, Any] = {}
    operations: tuple[Operation, ...] = ()
    indexes: dict[str, IndexContainer] = {}
    base: ObjectId | None = None
    depth: int = 0

    def points_to(self) -> Iterable[ObjectId]:
        """The objects in its indexes. An inner member points to the objects that it put, and to the commits that it is read from."""
        ids: list[ObjectId] = []
        if self.depth:
            ids += (operation.object_id for operation in self.operations if operation.object_id is not None)
            ids += self.beneath()
        for container in self.indexes.values():
            ids += container.points_to()
        return ids

    def beneath(self) -> tuple[ObjectId, ...]:
        """The commits that an inner member is read from, as far as its tail names them: the members before it, and the base."""
        # Pointed to as well: a collection that keeps an inner member must keep these, or it could not be read any more.
        members = self.tail[: max(self.depth - 1, 0)]
        return members if self.base is None else (*members, self.base)


_Layers = tuple[Commit | None, dict[str, dict[bytes, IndexValue | None]]]


@dataclass(frozen=True)
class Head:
    """A commit, its id, and the reader that it came from, which reads its indexes too."""

    id: ObjectId
    commit: Commit
    rows: RealmReader

    def index(self, name: str) -> Index:
        """What holds at this commit; empty when there never was an index of that name. Another one at every call.

        raises        for an inner member of a group: ExpiredError when it was collected, CorruptionError when it is there, but
                      not all that it is read from
        """
        if not self.commit.depth:
            return Index(self.commit.indexes.get(name), self.rows)
        base, changes = self._layers
        index = Index(None if base is None else base.indexes.get(name), self.rows)
        changed = changes.get(name)
        return index if changed is None else _changed(index, changed)

    @property
    def names(self) -> list[str]:
        """The names of all indexes that there are at this commit, in order. Raises as ``index`` does."""
        base, changes = self._layers
        return sorted({*(() if base is None else base.indexes), *changes})

    def is_collected(self) -> bool:
        """Whether the commit was collected since it was read, or may be just now. Ask when something that it needs is missing."""
        # The flag is read before the commit. A sweep that took what was missed, and is over by the first look, has deleted the commit
        # by the second. A sweep that is on, or was broken off, may have taken what the commit needs before the commit itself.
        record = read_collection(self.rows)
        is_sweeping = record is not None and record.value.sweeping
        return is_sweeping or self.rows.without_cache().find_object(self.id, Commit) is None

    @property
    def _layers(self) -> _Layers:
        """The nearest commit with indexes (None: there is none yet), and what changed from there on, by index and key. Read once."""
        known: _Layers | None = vars(self).get("_known")
        if known is None:
            known = vars(self)["_known"] = self._read_layers()  # a cached_property would lock all heads while one is read
        return known

    def _read_layers(self) -> _Layers:
        base, members = self._group()
        changes: dict[str, dict[bytes, IndexValue | None]] = {}
        for _, member in sorted(members.items()):
            for operation in member.operations:
                changes.setdefault(operation.index, {})[operation.key] = operation.value
        return base, changes

    def _group(self) -> tuple[Commit | None, dict[int, Commit]]:
        """The commit with indexes beneath, and the inner members from there to this one by seq. A base may be an inner member too."""
        members: dict[int, Commit] = {}
        below: Commit | None = self.commit
        while below is not None and below.depth:
            nearer, base = self._read_beneath(below)
            members |= {member.seq: member for member in (below, *nearer)}
            below = nearer[-1] if nearer and nearer[-1].depth > 1 else base
        return below, members

    def _read_beneath(self, member: Commit) -> tuple[list[Commit], Commit | None]:
        """The members before this one, nearest first, as many as its tail names; and the base. One round trip."""
        wanted = member.beneath()
        commits = []
        for commit_id, commit in zip(wanted, self.rows.read_many(wanted, Commit), strict=True):
            if commit is None:
                raise self._missing(f"commit {id_text(commit_id)}, which is not there")
            commits.append(commit)
        base = None if member.base is None else commits.pop()
        depths = [commit.depth for commit in commits if commit.base == member.base]
        if depths != list(range(member.depth - 1, 0, -1))[:TAIL] or member.seq - member.depth != (base.seq if base else 0):
            raise self._missing("commits that are not of its group")
        return commits, base

    def _missing(self, what: str) -> ExpiredError | CorruptionError:
        text = f"commit {id_text(self.id)} of realm {self.rows.realm!r}"
        if self.is_collected():
            return ExpiredError(f"{text} was collected: start again from a branch or a newer commit")
        return CorruptionError(f"{text} is read from {what}: run `headwater fsck`")


def _changed(base: Index, changes: Mapping[bytes, IndexValue | None]) -> Index:
    editor = IndexEditor(base)
    editor.get_many(changes)  # all that must be read to know the length, together
    for key, value in changes.items():
        if value is None:
            editor.remove(key)
        else:
            editor.put(key, value)
    return editor


def read_head(rows: RealmReader, reference: str, *, fresh: bool = False) -> Head | None:
    """The newest commit of a reference; None when it has none yet.

    fresh         ask the database; otherwise the reference may be as old as its time to live in the cache
    raises        NotFoundError: no such reference · CorruptionError: it points to a commit that is not there
    """
    for _ in range(_LOOKS):
        try:
            return load_head(rows, rows.read_reference(reference, fresh=fresh))
        except ExpiredError:
            fresh = True  # what the cache remembers was collected since, or this process was stopped for long
        except CorruptionError:
            if fresh:
                raise
            fresh = True
    return load_head(rows, rows.read_reference(reference, fresh=True))


def read_commit(rows: RealmReader, commit_id: ObjectId) -> Head:
    """A commit by its id.

    raises        ExpiredError when it is not there (any more)
    """
    commit = rows.find_object(commit_id, Commit)
    if commit is None:
        raise ExpiredError(f"commit {id_text(commit_id)} is not in realm {rows.realm!r}: it was collected, or never was")
    return Head(commit_id, commit, rows)


def load_head(rows: RealmReader, reference: Reference) -> Head | None:
    """The commit that a reference points to; None when it has none yet.

    raises        CorruptionError when it points to a commit that is not there: never to be taken for "no commit yet" ·
                  ExpiredError when it points elsewhere by now, or was deleted: read it again. Between the read of the row and this
                  one its process was stopped for longer than the reader's grace, or the row came from a cache
    """
    if reference.pointer is None:
        return None
    commit = rows.find_object(reference.pointer, Commit)
    if commit is None:
        now = rows.find_row(reference.name)
        if now is None or now.pointer != reference.pointer or now.deleted is not None:
            raise ExpiredError(
                f"reference {reference.name!r} of realm {rows.realm!r} has left commit {id_text(reference.pointer)}, which was collected"
                " since: read it again"
            )
        raise CorruptionError(
            f"reference {reference.name!r} of realm {rows.realm!r} points to commit {id_text(reference.pointer)}, which is not there;"
            f" recent pointers: {', '.join(id_text(i) for i in reference.recent[:3]) or 'none'}. Nothing was changed: run `headwater fsck`"
        )
    return Head(reference.pointer, commit, rows)


def descends(rows: RealmReader, start: ObjectId, wanted: ObjectId, seq: int) -> bool:
    """Whether ``wanted``, whose seq is known, is ``start`` or one of its ancestors. Reads one commit in twenty.

    raises        UnknownOutcomeError when history was cut before the answer was found
    """
    while True:
        commit = rows.find_object(start, Commit)
        if commit is None:
            raise UnknownOutcomeError(f"commit {id_text(start)} of realm {rows.realm!r} is not there any more")
        distance = commit.seq - seq
        if distance <= 0:
            return start == wanted
        if distance <= len(commit.tail):
            return commit.tail[distance - 1] == wanted
        if not commit.tail:
            return False
        start = commit.tail[-1]


T = TypeVar("T")
S = TypeVar("S", bound=StoredObject)
Memos = dict[str, tuple[object, object]]
"""Results that the runs of one change share: by name, the input and the result."""
Changes = dict[str, list[tuple[bytes, IndexValue | None]]]
"""Edits by index, in key order; None says removed."""


class Transaction:
    """One run of a change on one head. Nothing is written before the change has returned.

    A change reads through ``reader`` and edits through ``index`` and ``add_object``; it holds nothing with which it could write.
    The head may be a commit that is not written yet: one of another thread, in the same group. ``reader`` reads what such commits
    add as if it were written.

    commit_time   later than the head's, whatever clock made that
    time          the time that a change writes into its objects: ``commit_time``, unless the head is of a clock that was ahead
    commit_id     the id of the commit, if this run makes one; another one at every run
    """

    def __init__(
        self,
        rows: RealmStore,
        reference: str,
        head: Head | None,
        now: Micros,
        *,
        base: Callable[[str], Index],
        pending: Mapping[ObjectId, PendingObject],
        memos: Memos,
    ) -> None:
        self.reference = reference
        self.commit_time = now if head is None else Micros(max(now, head.commit.time + 1))
        self.time = self.commit_time if self.commit_time <= rows.credible_until(now) else now
        self.is_mending = False
        self.is_empty_allowed = False  # a change sets it to make a commit without an edit
        self.added: dict[ObjectId, StoredObject] = {}
        self.message: str | None = None
        self.properties: dict[str, Any] = {}
        self._rows = rows
        self._reader: PendingReader | None = None
        self._head = head
        self._base = base
        self._pending = pending
        self._memos = memos
        self._editors: dict[str, _Editor] = {}
        self._known = _Known(self.added)
        self._commit_id: ObjectId | None = None

    def mend_time(self, after: Micros) -> None:
        """Make a commit even without a change, with the time now, though the head's time lies ahead.

        after         the time of the last commit that is not ahead
        """
        assert not self._pending, "a commit that mends the time is the first of its group"
        self.is_mending, self.commit_time = True, Micros(max(self.time, after + 1))

    @property
    def reader(self) -> RealmReader:
        """A reader of the realm that also has what the commits beneath this one add."""
        if self._reader is None:
            self._reader = PendingReader(self._rows, self._pending)
        return self._reader

    @property
    def head(self) -> Commit | None:
        return None if self._head is None else self._head.commit

    @property
    def head_id(self) -> ObjectId | None:
        return None if self._head is None else self._head.id

    @property
    def commit_id(self) -> ObjectId:
        if self._commit_id is None:
            self._commit_id = self._rows.new_id()
        return self._commit_id

    def index(self, name: str) -> IndexEditor:
        """The index as the commit will hold it; edits show at once."""
        editor = self._editors.get(name)
        if editor is None:
            editor = self._editors[name] = _Editor(self._base(name), self._known)
        return editor

    def new_id(self) -> ObjectId:
        """An id that nobody else is given, for what a change creates inside its objects."""
        return self._rows.new_id()

    def add_object(self, value: StoredObject) -> ObjectId:
        """Add an object; it is written together with the commit, or not at all."""
        object_id = self._rows.new_id()
        self.added[object_id] = value
        return object_id

    def take_staged(self, staged: StagedObjects) -> bool:
        """Let this commit add objects that were written ahead. False when they are too old: then none may be pointed to."""
        is_taken = staged.are_young()
        if is_taken:
            self._known.staged.append(staged.ids)
        return is_taken

    def add_index(self, index: IndexEditor | NewIndex, limits: IndexLimits) -> IndexContainer:
        """Store an index that is to lie in an object which this change adds; what it spills into is added, too."""
        stored = index.stored(self._rows.new_ids, limits)
        self.added.update(stored.objects)
        return stored.container

    def memoize(self, name: str, of: object, make: Callable[[], T]) -> T:
        """What ``make`` returns, called once for all runs of this change, as long as ``of`` equals what it was then.

        For work that is worth keeping when the commit has to start over: parsing, planning, comparing. ``make`` must depend on
        nothing but ``of``, and so neither add objects nor edit indexes.

        name          of this piece of work, within the change
        of            all that it is derived from, compared by ``==``: values that do not change, such as ids and keys
        """
        known = self._memos.get(name)
        if known is None or known[0] != of:
            known = self._memos[name] = (of, make())
        return cast(T, known[1])

    def set_message(self, message: str) -> None:
        """Replace the message that ``commit_change`` was given. A run that edits and adds nothing makes no commit all the same."""
        self.message = message

    def set_property(self, key: str, value: Any) -> None:
        """Add a property to those that ``commit_change`` was given, or replace one."""
        self.properties[key] = value

    @property
    def has_edits(self) -> bool:
        """Whether this run makes a commit, by what it has edited and added so far."""
        is_forced = self.is_mending or self.is_empty_allowed
        return is_forced or bool(self.added) or any(editor.has_changes() for editor in self._editors.values())

    def changes(self) -> Changes:
        """The edits of this run, without indexes that are as before."""
        changed = {name: editor.changes() for name, editor in sorted(self._editors.items())}
        return {name: changes for name, changes in changed.items() if changes}

    def editor(self, name: str) -> IndexEditor:
        """An index that was edited."""
        return self._editors[name]


class PendingObject(NamedTuple):
    """An object that will be written together with its group, and what its row will say. ``token``: of an updateable one."""

    value: StoredObject
    token: str | None
    created: Micros


class PendingReader:
    """A ``RealmReader`` over another one that also finds what the earlier members of a group add, and writes nothing.

    It wraps the handle on the realm, and does not inherit from it: what is not written out here, a change cannot call.
    """

    __slots__ = ("_pending", "_stored")

    def __init__(self, stored: RealmReader, pending: Mapping[ObjectId, PendingObject]) -> None:
        self._stored = stored
        self._pending = pending

    @property
    def realm(self) -> RealmId:
        return self._stored.realm

    @property
    def key(self) -> RealmKey:
        return self._stored.key

    @property
    def settings(self) -> Settings:
        return self._stored.settings

    @property
    def clock(self) -> Clock:
        return self._stored.clock

    def credible_until(self, now: Micros) -> Micros:
        return self._stored.credible_until(now)

    def without_cache(self, *, budget_bytes: int = 0) -> RealmReader:
        return PendingReader(self._stored.without_cache(budget_bytes=budget_bytes), self._pending)

    # objects

    def find_object(self, object_id: ObjectId, cls: type[S]) -> S | None:
        return self._value(object_id, cls) if object_id in self._pending else self._stored.find_object(object_id, cls)

    def read_object(self, object_id: ObjectId, cls: type[S]) -> S:
        return self._value(object_id, cls) if object_id in self._pending else self._stored.read_object(object_id, cls)

    def find_derived(self, object_id: ObjectId, cls: type[T]) -> T | None:
        return self._stored.find_derived(object_id, cls)

    def keep_derived(self, object_id: ObjectId, value: object, *, weight_bytes: int) -> None:
        # of a pending object, too: no other object is ever given its id, whether it is written or not
        self._stored.keep_derived(object_id, value, weight_bytes=weight_bytes)

    def read_many(self, object_ids: Sequence[ObjectId], cls: type[S]) -> list[S | None]:
        return self._merge(object_ids, lambda ids: self._stored.read_many(ids, cls), lambda pending: self._value(pending, cls))

    def read_each(self, object_ids: Sequence[ObjectId], cls: type[S]) -> list[S | CorruptionError | None]:
        def pending_value(object_id: ObjectId) -> S | CorruptionError:
            try:
                return self._value(object_id, cls)
            except CorruptionError as fault:
                return fault

        return self._merge(object_ids, lambda ids: self._stored.read_each(ids, cls), pending_value)

    def find_versioned(self, object_id: ObjectId, cls: type[S]) -> Versioned[S] | None:
        if object_id in self._pending:
            return self._versioned(object_id, cls)
        return self._stored.find_versioned(object_id, cls)

    def read_versioned(self, object_id: ObjectId, cls: type[S]) -> Versioned[S]:
        if object_id in self._pending:
            return self._versioned(object_id, cls)
        return self._stored.read_versioned(object_id, cls)

    def read_many_versioned(self, object_ids: Sequence[ObjectId], cls: type[S]) -> list[Versioned[S] | None]:
        return self._merge(
            object_ids, lambda ids: self._stored.read_many_versioned(ids, cls), lambda pending: self._versioned(pending, cls)
        )

    # A group writes no reference before it is published, so these are read from the store alone.

    def find_reference(self, name: str, *, fresh: bool = False) -> Reference | None:
        return self._stored.find_reference(name, fresh=fresh)

    def read_reference(self, name: str, *, fresh: bool = False) -> Reference:
        return self._stored.read_reference(name, fresh=fresh)

    def find_row(self, name: str) -> Reference | None:
        return self._stored.find_row(name)

    def find_rows(self, names: Sequence[str]) -> list[Reference | None]:
        return self._stored.find_rows(names)

    def _merge(
        self,
        object_ids: Sequence[ObjectId],
        read_stored: Callable[[Sequence[ObjectId]], Sequence[T]],
        read_pending: Callable[[ObjectId], T],
    ) -> list[T]:
        """What is stored and what is pending, in the order of the ids; one call for all that is stored."""
        stored_ids = [object_id for object_id in object_ids if object_id not in self._pending]
        stored = dict(zip(stored_ids, read_stored(stored_ids), strict=True))
        return [stored[object_id] if object_id in stored else read_pending(object_id) for object_id in object_ids]

    def _value(self, object_id: ObjectId, cls: type[S]) -> S:
        value = self._pending[object_id].value
        if isinstance(value, cls):
            return value
        raise CorruptionError(
            f"object {id_text(object_id)} in realm {self.realm!r} is a {type(value).__name__}, not a {cls.__name__}"
        )

    def _versioned(self, object_id: ObjectId, cls: type[S]) -> Versioned[S]:
        value, token, created = self._value(object_id, cls), self._pending[object_id].token, self._pending[object_id].created
        if token is None:
            raise CorruptionError(f"object {id_text(object_id)} in realm {self.realm!r} has no version token")
        return Versioned(object_id, value, token, created)


class _Known:
    """The objects that a commit may point to: those that it adds, and those that it read in its parent's indexes.

    Listings are noted as calls, not entry by entry: they are read again if ever an object is asked for that nothing else tells of.
    """

    def __init__(self, added: Mapping[ObjectId, StoredObject]) -> None:
        self.read: set[ObjectId] = set()
        # Invariant: listings that were not read into ``read`` yet.
        self.listings: list[Callable[[], Iterator[tuple[bytes, IndexValue]]]] = []
        self.staged: list[Collection[ObjectId]] = []
        self._added = added

    def has(self, object_id: ObjectId) -> bool:
        if object_id in self._added or object_id in self.read or any(object_id in ids for ids in self.staged):
            return True
        while self.listings:
            listing = self.listings.pop()
            self.read.update(value.object_id for _, value in listing() if value.object_id is not None)
            if object_id in self.read:
                return True
        return False


class _Editor(IndexEditor):
    """Refuses values that point to an object which this commit neither adds nor found in the parent's indexes.

    A reader that kept an id from an older commit could otherwise bring back what the collector is about to delete. What one
    index holds may move into another.
    """

    def __init__(self, base: Index, known: _Known) -> None:
        super().__init__(base)
        self._known = known

    def get(self, key: bytes) -> IndexValue | None:
        value = super().get(key)
        if value is not None and value.object_id is not None:
            self._known.read.add(value.object_id)
        return value

    def range(
        self, start: bytes | None = None, end: bytes | None = None, *, reverse: bool = False, limit: int | None = None
    ) -> Iterator[tuple[bytes, IndexValue]]:
        base, wide = self._base, None if limit is None else limit + len(self._changes)  # as many may hide behind a change
        self._known.listings.append(lambda: base.range(start, end, reverse=reverse, limit=wide))
        return super().range(start, end, reverse=reverse, limit=limit)

    def put(self, key: bytes, value: IndexValue) -> bool:
        if not isinstance(value.data, bytes):  # found only when the whole group is written, it would be told to another member
            raise RefusedError(f"what an index holds under {key!r} is bytes, not {type(value.data).__name__}")
        if value.object_id is not None and not self._known.has(value.object_id):
            self._find(key)
            held = self._before[key]  # what the key holds in the parent is known as well
            if held is None or held.object_id != value.object_id:
                raise RefusedError(
                    f"object {id_text(value.object_id)} is neither added by this commit nor held by its parent:"
                    " add it, or read it here first"
                )
        return super().put(key, value)
