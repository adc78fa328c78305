"""What a change sees and edits: the head, its indexes, and the objects that it adds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar, cast

from headwater.clock import Clock, Micros
from headwater.commits.commit import Commit, Head
from headwater.errors import CorruptionError, RefusedError
from headwater.index import Index, IndexContainer, IndexEditor, IndexLimits, IndexValue, NewIndex
from headwater.settings import Settings
from headwater.store import ObjectId, RealmId, RealmKey, RealmReader, RealmStore, Reference, StoredObject, Versioned, id_text

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
        credible = now + round(rows.settings.clock_bound_seconds * 1_000_000)
        self.time = self.commit_time if self.commit_time <= credible else now
        self.is_mending = False
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

    def without_cache(self, *, budget_bytes: int = 0) -> RealmReader:
        return PendingReader(self._stored.without_cache(budget_bytes=budget_bytes), self._pending)

    # objects

    def find_object(self, object_id: ObjectId, cls: type[S]) -> S | None:
        return self._value(object_id, cls) if object_id in self._pending else self._stored.find_object(object_id, cls)

    def read_object(self, object_id: ObjectId, cls: type[S]) -> S:
        return self._value(object_id, cls) if object_id in self._pending else self._stored.read_object(object_id, cls)

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
        self._added = added

    def has(self, object_id: ObjectId) -> bool:
        if object_id in self._added or object_id in self.read:
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
